package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
)

const (
	// rewriteStep is about how many bytes a rewriting puts in the place of others at one
	// go, in tables of lastTable bytes, which is what the engine has in the last level.
	rewriteStep = 32 << 20
	lastTable   = 8 << 20
	// A span is rewritten if what lies there above the last level has so much of the size
	// of what the last level has there. The entries of the index that a step brings lie
	// above those of all other steps, so they cannot wait; the records of an update lie
	// above those of the update before, and of two or three that is read all the same.
	heavyIndex   = 0.25
	heavyRecords = 1
	// Nothing is, behind an UpdateAll whose steps had less than a rewriteLeast-th of the
	// bytes that there are: what small updates bring is collected in the level between.
	rewriteLeast = 4
)

// A rewriting brings what an UpdateAll has left above the last level of the engine into
// it where it is much of what is there: all that is in a span of keys is read, and
// written into tables that take the place of whatever lies in that span, on all levels.
// The engine would take it through the level between, and write each table of that and
// of the last level as often as something passes it; this does it once. Nothing
// changes that anyone can see, so a rewriting may end, or the machine fail, at any
// moment.
type rewriting struct {
	mu             sync.Mutex
	running, again bool
}

// rewritten returns the tables of which an UpdateAll may change much.
func rewritten() [3]table { return [...]table{readyTable, wheelTable, crawlTable} }

// errPutOff ends a rewriting that would harm others, or has no room. What it leaves is
// the engine's business.
var errPutOff = errors.New("rewriting was put off")

// span is a range of keys from lower up to upper.
type span struct{ lower, upper []byte }

// rewriteBehind begins a rewriting behind an UpdateAll of so many bytes, if that may be
// worth it. One that is at work looks again in the end.
func (s *crawlStore) rewriteBehind(ingested int64) {
	if ingested == 0 || s.db.enter(context.Background(), &s.view) != nil {
		return
	}
	defer s.db.leave()
	size := uint64(0)
	for _, t := range rewritten() {
		n, err := s.db.db.EstimateDiskUsage([]byte{byte(t)}, []byte{byte(t) + 1})
		if err != nil {
			return // who reads there is told
		}
		size += n
	}
	if uint64(ingested) < size/rewriteLeast {
		return
	}
	r := &s.rewriting
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.again = r.running; r.running {
		return
	}
	r.running = true
	s.db.pacer.rewriting(true)
	s.db.ingests.Go(func() {
		for s.rewriteOnce() {
		}
	})
}

// rewriteOnce reports whether to look again.
func (s *crawlStore) rewriteOnce() (again bool) {
	err := s.rewrite(context.Background())
	if err != nil && !errors.Is(err, errPutOff) && !errors.Is(err, crawldb.ErrClosed) && !errors.Is(err, ErrFailed) {
		s.db.log.Error("pebblestore: rewriting failed", "dir", s.db.dir, "error", err)
	}
	r := &s.rewriting
	r.mu.Lock()
	defer r.mu.Unlock()
	again = r.again && err == nil
	r.running, r.again = again, false
	s.db.pacer.rewriting(again)
	return again
}

// rewrite rewrites what is worth it.
func (s *crawlStore) rewrite(ctx context.Context) error {
	for _, t := range rewritten() {
		spans, err := s.heavy(ctx, t)
		if err != nil {
			return err
		}
		for _, sp := range spans {
			for more := true; more; {
				if sp.lower, more, err = s.rewriteSpan(ctx, sp); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// heavy returns the spans of a table that are worth it.
func (s *crawlStore) heavy(ctx context.Context, t table) ([]span, error) {
	if err := s.db.enter(ctx, &s.view); err != nil {
		return nil, err
	}
	defer s.db.leave()
	levels, err := s.db.db.SSTables()
	if err := s.db.outcome("rewrite", err); err != nil {
		return nil, err
	}
	share := heavyIndex
	if t == crawlTable {
		share = heavyRecords
	}
	// Spans begin where tables of the last level do: none of these is cut.
	type part struct {
		span
		above, below float64
	}
	var parts []part
	last := levels[len(levels)-1]
	for i := range last {
		lower := last[i].Smallest.UserKey
		if table(lower[0]) != t {
			continue
		}
		if n := len(parts); n == 0 || parts[n-1].below >= float64(s.rewriteStep) {
			parts = append(parts, part{span: span{lower: bytes.Clone(lower)}})
			if n > 0 {
				parts[n-1].upper = parts[n].lower
			}
		}
		parts[len(parts)-1].below += float64(last[i].Size)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	parts[0].lower, parts[len(parts)-1].upper = []byte{byte(t)}, []byte{byte(t) + 1}
	for _, level := range levels[:len(levels)-1] {
		for i := range level {
			lower, upper := level[i].Smallest.UserKey, level[i].Largest.UserKey
			from, to := 0, len(parts)
			for from < to && bytes.Compare(parts[from].upper, lower) <= 0 {
				from++
			}
			for from < to && bytes.Compare(parts[to-1].lower, upper) > 0 {
				to--
			}
			for j := from; j < to; j++ { // as if it had the same everywhere
				parts[j].above += float64(level[i].Size) / float64(to-from)
			}
		}
	}
	var out []span
	for _, p := range parts {
		if p.above > share*p.below {
			out = append(out, p.span)
		}
	}
	return out, nil
}

// rewriteSpan rewrites a span, or the first part of one that has become large, and
// returns where the rest begins. It has the turn meanwhile: nobody else writes there.
func (s *crawlStore) rewriteSpan(ctx context.Context, sp span) (rest []byte, more bool, err error) {
	d := s.db
	if err := d.take(ctx, &s.view, s.turn); err != nil {
		return nil, false, err
	}
	defer d.give(s.turn)
	if !d.space.fits(3 * int64(s.rewriteStep)) {
		return nil, false, errPutOff
	}
	if err := d.writeOut(); err != nil {
		return nil, false, err
	}
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: sp.lower, UpperBound: sp.upper})
	if err != nil {
		return nil, false, d.outcome("rewrite", err)
	}
	defer it.Close()
	var names []string
	taken := false
	defer func() {
		if !taken {
			for _, name := range names {
				_ = d.fence.Remove(name) // or at the next opening
			}
		}
	}()
	size := uint64(0)
	for ok := it.First(); ok && !more; ok = it.Valid() {
		name := d.under.PathJoin(d.path, fmt.Sprint(bulkPrefix, "rewrite-", len(names)))
		names = append(names, name)
		n, err := s.copyTable(ctx, name, it)
		if err != nil {
			return nil, false, d.outcome("rewrite", err)
		}
		size += n
		more = size > 2*uint64(s.rewriteStep) && it.Valid()
	}
	if err := it.Error(); err != nil {
		return nil, false, d.outcome("rewrite", err)
	}
	if more {
		rest = bytes.Clone(it.Key())
		sp.upper = rest
	}
	if !d.tables.TryLock() {
		return nil, false, errPutOff
	}
	defer d.tables.Unlock()
	err = d.outcome("rewrite", d.takeTables(names, pebble.KeyRange{Start: sp.lower, End: sp.upper}))
	taken = err == nil
	return rest, more && taken, err
}

// copyTable writes a table of what an iterator stands on and what follows, and leaves it
// on what comes behind that. It returns how large the table is, about.
func (s *crawlStore) copyTable(ctx context.Context, name string, it *pebble.Iterator) (size uint64, err error) {
	w, err := s.db.newTable(name, false)
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := true; ok; ok = it.Next() {
		if n++; n%checkEvery == 0 {
			if w.Raw().EstimatedSize() >= uint64(s.lastTable) {
				break
			}
			if err = s.db.goingOn(ctx, &s.view); err != nil {
				break
			}
		}
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = w.Set(it.Key(), value)
		}
		if err != nil {
			break
		}
	}
	size = w.Raw().EstimatedSize()
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return size, err
}
