package pebblestore

import (
	"context"
	"fmt"
	"iter"
	"math"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/linklayers"
)

// joinInBackground joins layers if there are many, and deletes remainders. The caller has entered
// the store.
func (s *linkStore) joinInBackground(ctx context.Context) {
	select {
	case s.joining <- struct{}{}:
	default:
		return
	}
	s.db.ingests.Go(func() {
		defer func() { <-s.joining }()
		ctx, stop := s.db.whileOpen(context.WithoutCancel(ctx), &s.view, nil)
		defer stop()
		err := s.deleteRemainders(ctx)
		for err == nil {
			var some []codec.Layer
			if some, err = s.layersToJoin(); err != nil || len(some) == 0 {
				break
			}
			err = s.joinLayers(ctx, some)
		}
		if err != nil && ctx.Err() == nil {
			if !failfs.IsFull(err) {
				// It is tried again when there are twice as many: what cannot be read stays so.
				s.joinAgainAt = 2 * len(*s.layers.Load())
			}
			s.db.log.Warn("pebblestore: layers of the link db were not joined", "dir", s.db.dir, "error", err)
		}
	})
}

// layersToJoin returns the layers to be joined, none if there are few. joining must be held.
func (s *linkStore) layersToJoin() ([]codec.Layer, error) {
	list := *s.layers.Load()
	closed := list[:len(list)-1]
	if len(closed) <= max(s.mostLayers, s.joinAgainAt) {
		return nil, nil
	}
	i, all := len(closed), uint64(0)
	for i > 0 {
		size, err := s.sizeOf(closed[i-1])
		if err != nil {
			return nil, err
		}
		if len(closed)-i >= 2 && size > all {
			break
		}
		i, all = i-1, all+size
	}
	return closed[i:], nil
}

// sizeOf returns about how many bytes a layer takes.
func (s *linkStore) sizeOf(l codec.Layer) (uint64, error) {
	size, err := s.db.db.EstimateDiskUsage(l.AppendKey(nil, ""), l.End())
	return size, s.db.outcome("link db", err)
}

// errNoRoom says that layers were not joined, as the disk would be full. Waiting for room, as
// changes do, would keep the room that the new layer already takes from other changes that wait.
var errNoRoom = fmt.Errorf("no room to join layers of the link db: %w", syscall.ENOSPC)

// hasRoom returns errNoRoom unless there is room for so much more, and changes do not wait then.
func (s *linkStore) hasRoom(more uint64) error {
	free, least := s.db.space.Usage()
	if free == 0 && least == 0 || free-max(failfs.Needed(least), 0) >= int64(more) { // or the disk does not say
		return nil
	}
	return errNoRoom
}

// joinLayers makes one of layers that are no longer written to. joining must be held, and the engine not
// be closed before it returns.
func (s *linkStore) joinLayers(ctx context.Context, some []codec.Layer) error {
	all := uint64(0)
	for _, l := range some {
		size, err := s.sizeOf(l)
		if err != nil {
			return err
		}
		all += size
	}
	if err := s.hasRoom(all); err != nil {
		return err
	}
	to := codec.Layer{From: some[0].From, To: some[len(some)-1].To}
	var failed error
	t := tables{store: "layers-", size: lookEvery, filtered: filtered(to), fresh: true, aside: true, rows: s.joinedTables(ctx, some, to, &failed), err: &failed}
	if err := s.db.ingest(ctx, &s.view, t); err != nil {
		return err
	}
	s.replaceLayers(some, to)
	s.remainders, s.joinAgainAt = append(s.remainders, some...), 0
	s.hasRemainders.Store(true)
	return s.deleteRemainders(ctx)
}

// filtered reports whether tables of the layer need a filter: most pages that are asked for are
// in the oldest, if in any.
func filtered(l codec.Layer) bool { return l.From > 0 }

// joinedTables yields the tables of a layer that is made of others. These are no longer written to, so
// each table may be read at another moment, and files that have become obsolete meanwhile are not kept.
func (s *linkStore) joinedTables(ctx context.Context, some []codec.Layer, to codec.Layer, failed *error) iter.Seq[iter.Seq2[[]byte, []byte]] {
	return func(yield func(iter.Seq2[[]byte, []byte]) bool) {
		key := to.AppendKey(nil, "")
		prefix := len(key)
		for from, more := "", true; more && *failed == nil; {
			m := linklayers.Read(s.db.db, some, from, "")
			page, value, ok := m.Next()
			table := func(yield func(key, value []byte) bool) {
				for size, n := 0, 0; ok && size < joinedTable; page, value, ok = m.Next() {
					if url, is := m.Unreadable(); is {
						*failed = s.db.damaged("the inlinks of", url, codec.ErrInlinks)
						return
					}
					if n++; n%checkEvery == 0 {
						if *failed = s.db.goingOn(ctx, &s.view); *failed != nil {
							return
						}
					}
					key = append(key[:prefix], page...)
					if size += len(key) + len(value); !yield(key, value) {
						return
					}
				}
			}
			more = ok && yield(table) && ok
			from = string(key[prefix:]) + "\x00"
			if err := m.Close(); *failed == nil {
				*failed = s.db.outcome("link db", err)
			}
			if more && *failed == nil {
				*failed = s.hasRoom(joinedTable) // others may have filled the disk meanwhile
			}
		}
	}
}

// deleteRemainders deletes the remainders of layers that were joined. joining must be held.
func (s *linkStore) deleteRemainders(ctx context.Context) error {
	if len(s.remainders) == 0 {
		return nil
	}
	t := tables{store: "layers-", size: 0}
	for _, l := range s.remainders {
		t.cleared = append(t.cleared, pebble.KeyRange{Start: l.AppendKey(nil, ""), End: l.End()})
	}
	if err := s.db.ingest(ctx, &s.view, t); err != nil {
		return err
	}
	s.remainders = nil
	s.hasRemainders.Store(false)
	return nil
}

// joinAll joins all layers; Merges that come meanwhile go to another. The engine must not be
// closed before it returns.
func (s *linkStore) joinAll(ctx context.Context) error {
	select {
	case s.joining <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.joining }()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	closed, err := s.closeNewest()
	<-s.turn
	if err == nil {
		err = s.deleteRemainders(ctx)
	}
	if err == nil && len(closed) > 1 {
		err = s.joinLayers(ctx, closed)
	}
	return err
}

// closeNewest begins another layer if there are several and the newest is not empty, and returns all
// but the newest. The turn must be held.
func (s *linkStore) closeNewest() ([]codec.Layer, error) {
	list, err := s.currentLayers()
	if err != nil || len(*list) == 1 {
		return nil, err
	}
	l := (*list)[len(*list)-1]
	some, err := s.hasPagesAfter(l, "")
	if err := s.db.outcome("link db", err); err != nil {
		return nil, err
	}
	if some && l.To < math.MaxUint32 {
		s.replaceLayers(nil, codec.Layer{From: l.To + 1, To: l.To + 1})
	}
	layers := *s.layers.Load()
	return layers[:len(layers)-1], nil
}
