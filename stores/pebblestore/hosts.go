package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

var _ hostdb.Store = (*hostStore)(nil)

// What the host db remembers about itself. The clean mark exists while nothing
// has changed since the last orderly close; the first update removes it in the
// same step. The sign of life is the time of an update, renewed at most once in
// signEvery.
var (
	cleanKey = codec.StateTable.Key("hosts.clean")
	aliveKey = codec.StateTable.Key("hosts.alive")
)

const (
	signEvery = time.Second
	// lag is how long after an update it is durable without a Sync.
	lag = time.Second
)

// hostStore is the host db. Updates take turns, which are short.
type hostStore struct {
	db   *DB
	view view
	turn chan struct{}

	// These belong to the update that has the turn.
	clean bool
	alive time.Time
	cache hostCache
	enc   []byte // the value that is being written

	// timer is set while a sync is pending; late counts the timer until it has
	// run or was stopped.
	mu    sync.Mutex
	timer *time.Timer
	late  sync.WaitGroup
	lag   time.Duration
}

// recover handles a close that was not orderly: see hostdb.Host.AfterCrash. It
// runs before anyone else has the store.
func (s *hostStore) recover() error {
	ctx := context.Background()
	mark, err := rows.Get(s.db.db, cleanKey)
	if err != nil {
		return s.db.outcome("host db", err)
	}
	if mark != nil {
		s.clean = true
		return nil
	}
	sign, err := rows.Get(s.db.db, aliveKey)
	if err != nil || sign == nil {
		return s.db.outcome("host db", err)
	}
	ms, n := binary.Varint(sign)
	if n != len(sign) {
		return s.db.damaged("the state", string(aliveKey), hostdb.ErrEncoding)
	}
	alive, now := time.UnixMilli(ms), time.Now()
	batch := s.db.db.NewBatch()
	defer batch.Close()
	var enc []byte
	for r, err := range s.db.scan(ctx, &s.view, codec.HostTable, 0, "", "") {
		if err != nil {
			return err
		}
		h, side, err := hostdb.DecodeHost(r.key, r.value)
		if err != nil {
			return s.db.damaged("the record of host", r.key, err)
		}
		if side { // AppendHost only checks whether there is one
			h.Robots = make([]hostdb.Robots, 1)
		}
		h = h.AfterCrash(alive, now)
		if enc = hostdb.AppendHost(enc[:0], &h); bytes.Equal(enc, r.value) {
			continue
		}
		if err := batch.Set(codec.HostTable.Key(r.key), enc, nil); err != nil {
			return err
		}
	}
	// With the mark in the same step this happens once per crash: a second time
	// would count the time in between as part of the pause.
	if err := batch.Set(cleanKey, nil, nil); err != nil {
		return err
	}
	if err := s.db.outcome("host db", batch.Commit(pebble.Sync)); err != nil {
		return err
	}
	s.clean = true
	return nil
}

func (s *hostStore) Get(ctx context.Context, name string) (hostdb.Host, error) {
	h, err := s.get(ctx, name)
	if err != nil {
		return hostdb.Host{}, fmt.Errorf("pebblestore: get host %q: %w", name, err)
	}
	return h, nil
}

func (s *hostStore) get(ctx context.Context, name string) (hostdb.Host, error) {
	if err := s.db.enter(ctx, &s.view); err != nil {
		return hostdb.Host{}, err
	}
	defer s.db.leave()
	h, err := s.load(name)
	if err == nil && h == nil {
		err = hostdb.ErrNotFound
	}
	if err != nil {
		return hostdb.Host{}, err
	}
	return *h, nil
}

// load returns the record of a host, nil if there is none. The two values of a
// host must be from one snapshot, for which an iterator is enough: closing a
// snapshot of the engine waits for its writes, and so for room on a full disk.
func (s *hostStore) load(name string) (*hostdb.Host, error) {
	it, err := s.db.db.NewIter(nil)
	if err != nil {
		return nil, s.db.outcome("host db", err)
	}
	defer it.Close()
	at := rows.NewCursor(it)
	value, err := at.Find(codec.HostTable.Key(name))
	if err := s.db.outcome("host db", err); err != nil || value == nil {
		return nil, err
	}
	value = bytes.Clone(value)
	if h, has, err := hostdb.DecodeHost(name, value); err == nil && !has {
		return &h, nil
	}
	side, err := at.Find(codec.HostDetailTable.Key(name))
	if err := s.db.outcome("host db", err); err != nil {
		return nil, err
	}
	h, err := s.decode(name, value, bytes.Clone(side))
	return &h, err
}

func (s *hostStore) decode(name string, value, side []byte) (hostdb.Host, error) {
	h, has, err := hostdb.DecodeHost(name, value)
	if err == nil && has {
		err = hostdb.DecodeDetail(&h, side)
	}
	if err != nil {
		return hostdb.Host{}, s.db.damaged("the record of host", name, err)
	}
	return h, nil
}

func (s *hostStore) Scan(ctx context.Context) iter.Seq2[hostdb.Host, error] {
	return func(yield func(hostdb.Host, error) bool) {
		for r, err := range s.db.scan(ctx, &s.view, codec.HostTable, codec.HostDetailTable, "", "") {
			var h hostdb.Host
			if err == nil {
				h, err = s.decode(r.key, r.value, r.joined)
			}
			if err != nil {
				yield(hostdb.Host{}, fmt.Errorf("pebblestore: scan of hosts: %w", err))
				return
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}

// check finds every host that cannot be read, and what is kept of a host that is not there.
func (s *hostStore) check(ctx context.Context, found func(error)) error {
	return s.db.eachRow(ctx, []codec.Table{codec.HostTable, codec.HostDetailTable}, func(now rows.Snapshot, key, value []byte) error {
		name := string(key[1:])
		other := codec.HostDetailTable
		if codec.Table(key[0]) == codec.HostDetailTable {
			other = codec.HostTable
		}
		beside, err := rows.Get(now, other.Key(name))
		switch {
		case err != nil:
		case other == codec.HostDetailTable:
			if _, err := s.decode(name, value, beside); err != nil {
				found(err)
			}
		case beside == nil:
			found(s.db.damaged("the robots.txt files of host", name, errNoHost))
		}
		return s.db.outcome("host db", err)
	})
}

var errNoHost = errors.New("there is no such host")

func (s *hostStore) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	if err := s.update(ctx, name, next); err != nil {
		return fmt.Errorf("pebblestore: update host %q: %w", name, err)
	}
	return nil
}

func (s *hostStore) update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	if err := s.db.take(ctx, &s.view, s.turn); err != nil {
		return err
	}
	defer s.db.give(s.turn)
	batch := s.db.db.NewBatch()
	defer batch.Close()
	after, same, err := s.step(batch, name, next)
	if same || err != nil {
		return err
	}
	now := time.Now()
	if s.clean {
		err = batch.Delete(cleanKey, nil)
	}
	sign := s.clean || now.Sub(s.alive).Abs() >= signEvery
	if err == nil && sign {
		err = batch.Set(aliveKey, binary.AppendVarint(nil, now.UnixMilli()), nil)
	}
	if err != nil {
		return err
	}
	if err := s.db.commit(ctx, &s.view, batch, pebble.NoSync); err != nil {
		s.cache.forget(name)
		return err
	}
	if after.value == nil {
		s.cache.forget(name)
	} else {
		s.cache.put(name, after)
	}
	if s.clean = false; sign {
		s.alive = now
	}
	s.syncSoon()
	return nil
}

// step calls next with a host and writes the result to the batch; same says
// that nothing changes. The robots.txt files, of which there may be a megabyte,
// are not copied for that: next sees them in the memory of the engine or of the
// cache. after has the values once the batch is committed, none if the host is
// deleted.
func (s *hostStore) step(batch *pebble.Batch, name string, next func(*hostdb.Host) (*hostdb.Host, error)) (after hostValues, same bool, err error) {
	old, values, side, err := s.lend(name)
	if side != nil {
		defer func() {
			if e := s.db.outcome("host db", side.Close()); err == nil {
				err = e
			}
		}()
	}
	if err != nil {
		return after, false, err
	}
	h, err := next(old)
	if err != nil {
		return after, false, err
	}
	if h == old {
		return after, true, nil
	}
	after, err = s.put(batch, name, values, old, h)
	return after, false, err
}

// lend returns the record of a host and its values, nil if there is none. The
// bodies of its robots.txt files belong to the engine until side, unless nil,
// is closed.
func (s *hostStore) lend(name string) (h *hostdb.Host, v hostValues, side io.Closer, err error) {
	v, cached := s.cache.get(name)
	if !cached {
		value, err := rows.Get(s.db.db, codec.HostTable.Key(name))
		if err := s.db.outcome("host db", err); err != nil || value == nil {
			return nil, v, nil, err
		}
		v.value = value
	}
	host, has, err := hostdb.DecodeHost(name, v.value)
	if err == nil && has {
		b := v.side
		if b == nil {
			b, side, err = s.db.db.Get(codec.HostDetailTable.Key(name))
			if err != nil && err != pebble.ErrNotFound {
				return nil, v, nil, s.db.outcome("host db", err)
			}
			if len(b) <= maxCachedSide { // to lend it from the cache next time
				v.side = append(make([]byte, 0, len(b)), b...)
			}
		}
		err = hostdb.BorrowDetail(&host, b)
	}
	if err != nil {
		return nil, v, side, s.db.damaged("the record of host", name, err)
	}
	return &host, v, side, nil
}

// put writes a changed host, and returns its values. A turn at a host changes a few
// times and counters; the side value, which may be half a megabyte, is written only
// if it has changed.
func (s *hostStore) put(batch *pebble.Batch, name string, v hostValues, old, h *hostdb.Host) (hostValues, error) {
	key, sideKey := codec.HostTable.Key(name), codec.HostDetailTable.Key(name)
	if h == nil {
		return hostValues{}, errors.Join(batch.Delete(key, nil), batch.Delete(sideKey, nil))
	}
	s.enc = hostdb.AppendHost(s.enc[:0], h)
	v.value = s.enc
	err := batch.Set(key, v.value, nil)
	if old == nil {
		old = new(hostdb.Host)
	}
	switch {
	case err != nil || hostdb.SameDetail(old, h):
		return v, err
	case !hostdb.HasDetail(h):
		v.side = nil
		return v, batch.Delete(sideKey, nil)
	}
	v.side = hostdb.AppendDetail(nil, h)
	return v, batch.Set(sideKey, v.side, nil)
}

// syncSoon makes sure that what was just committed becomes durable soon.
func (s *hostStore) syncSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		return
	}
	s.late.Add(1)
	s.timer = time.AfterFunc(s.lag, func() {
		defer s.late.Done()
		s.mu.Lock()
		s.timer = nil
		s.mu.Unlock()
		// A failure stops the store and is reported to its next user.
		_ = s.db.sync(context.Background(), &s.view)
	})
}

func (s *hostStore) Sync(ctx context.Context) error { return s.db.sync(ctx, &s.view) }

// Close ends with the clean mark, so no update may come after it: it takes the
// last turn.
func (s *hostStore) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.view.closed.Swap(true) {
		return nil
	}
	s.mu.Lock()
	if s.timer != nil && s.timer.Stop() {
		s.late.Done()
	}
	s.mu.Unlock()
	s.late.Wait()

	s.db.use.RLock()
	defer s.db.use.RUnlock()
	if s.db.closed {
		return nil
	}
	if s.db.fs.Failure() != nil {
		return s.db.failed()
	}
	if s.clean || s.db.readOnly {
		return s.db.syncInside()
	}
	s.db.dirty.Store(true)
	if err := s.db.outcome("host db", s.db.db.Set(cleanKey, nil, pebble.Sync)); err != nil {
		return err
	}
	s.clean = true
	return nil
}
