package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

var _ hostdb.Store = (*hostStore)(nil)

// hostStore is the host db. An update reads a host, and writes it if its version is still the
// one that was read. A version is a random number, by which an update recognizes a write whose
// answer was lost. The commits are synchronous: if the server crashed and forgot the last
// requests, a process that goes on would ask hosts too soon.
type hostStore struct {
	view
	ending  sync.RWMutex // held by Close, which waits for updates
	details *detailCache
	// fence is that of a group whose lease this store is for; nil without groups.
	fence *fence

	mu    sync.Mutex
	alive time.Time // the last sign of life that this DB has written; zero if the state may be clean
}

// aliveEvery is how often the sign of life is renewed while hosts change.
const aliveEvery = time.Second

// Get implements [hostdb.Store].
func (s *hostStore) Get(ctx context.Context, name string) (hostdb.Host, error) {
	x, err := s.load(ctx, name)
	var h hostdb.Host
	switch {
	case err != nil:
	case !x.exists:
		err = hostdb.ErrNotFound
	default:
		h, err = s.decode(name, x.record, x.detail, hostdb.DecodeDetail)
	}
	if err != nil {
		return hostdb.Host{}, fmt.Errorf("pgstore: get host %q: %w", name, err)
	}
	return h, nil
}

// decode makes a host. Its details are read by [hostdb.DecodeDetail] or [hostdb.BorrowDetail].
func (s *hostStore) decode(name string, record, detail []byte, readDetail func(*hostdb.Host, []byte) error) (hostdb.Host, error) {
	h, has, err := hostdb.DecodeHost(name, record)
	if err == nil && has {
		err = readDetail(&h, detail)
	}
	if err != nil {
		return hostdb.Host{}, s.db.damaged("host", name, err)
	}
	return h, nil
}

// hostRow is a row of the table of hosts.
type hostRow struct {
	exists                 bool
	version, detailVersion int64
	record, detail         []byte
}

// load reads a host, and tries again while the server cannot be reached.
func (s *hostStore) load(ctx context.Context, name string) (x hostRow, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		x, err = s.query(ctx, name)
		return err
	})
	return x, err
}

// query reads a host. Its details, which may be large, come from the cache if they have not
// changed.
func (s *hostStore) query(ctx context.Context, name string) (x hostRow, err error) {
	index, _ := indexed([]byte(name))
	cached := s.details.get(name)
	err = s.db.pool.QueryRow(ctx, `SELECT version, detail_version, record, CASE WHEN detail_version = $2 THEN NULL ELSE detail END FROM host WHERE key = $1`, index, cached.version).
		Scan(&x.version, &x.detailVersion, &x.record, &x.detail)
	if errors.Is(err, pgx.ErrNoRows) {
		return hostRow{}, nil
	}
	if err != nil {
		return hostRow{}, err
	}
	if x.exists = true; x.detail == nil {
		x.detail = cached.detail
	} else {
		s.details.put(name, cachedDetail{x.detailVersion, x.detail})
	}
	return x, nil
}

// hostSource is the table of hosts; a row may have a megabyte.
var hostSource = source{table: "host", values: "record, detail", two: true, rows: 100}

// Scan implements [hostdb.Store].
func (s *hostStore) Scan(ctx context.Context) iter.Seq2[hostdb.Host, error] {
	return func(yield func(hostdb.Host, error) bool) {
		for x, err := range s.scan(ctx, hostSource, crawldb.Range{}) {
			var h hostdb.Host
			if err == nil {
				h, err = s.decode(string(x.key), x.value, x.detail, hostdb.DecodeDetail)
			}
			if err != nil {
				yield(hostdb.Host{}, fmt.Errorf("pgstore: scan of hosts: %w", err))
				return
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}

// Update implements [hostdb.Store].
func (s *hostStore) Update(ctx context.Context, name string, next func(old *hostdb.Host) (*hostdb.Host, error)) error {
	if err := s.update(ctx, name, next); err != nil {
		return fmt.Errorf("pgstore: update host %q: %w", name, err)
	}
	return nil
}

func (s *hostStore) update(ctx context.Context, name string, next func(old *hostdb.Host) (*hostdb.Host, error)) error {
	s.ending.RLock()
	defer s.ending.RUnlock()
	version := newVersion()
	var refused error // by next, which is not tried again
	err := s.read(ctx, func(ctx context.Context) error {
		for {
			x, err := s.query(ctx, name)
			if err != nil || x.exists && x.version == version { // the answer to the last attempt was lost
				return err
			}
			old, h, err := s.next(name, x, next)
			if err != nil || h == old {
				refused = err
				return nil
			}
			if err := s.signLife(ctx); err != nil {
				return err
			}
			written, err := s.put(ctx, name, x, version, old, h)
			if written || err != nil {
				return err
			}
		}
	})
	return cmp.Or(refused, err)
}

// newVersion returns a version that no other update has; 0 is that of no host.
func newVersion() int64 { return rand.Int64() + 1 }

// next calls next with a host as it was read.
func (s *hostStore) next(name string, x hostRow, next func(old *hostdb.Host) (*hostdb.Host, error)) (old, h *hostdb.Host, err error) {
	if x.exists {
		lent, err := s.decode(name, x.record, x.detail, hostdb.BorrowDetail)
		if err != nil {
			return nil, nil, err
		}
		old = &lent
	}
	h, err = next(old)
	if err == nil && h != old && s.db.readOnly {
		err = ErrReadOnly
	}
	return old, h, err
}

// put writes a host if it still has the version that was read.
func (s *hostStore) put(ctx context.Context, name string, x hostRow, version int64, old, h *hostdb.Host) (written bool, err error) {
	index, tail := indexed([]byte(name))
	var query string
	var args []any
	var record, detail []byte
	newDetail := h != nil && (old == nil || !hostdb.SameDetail(old, h))
	if newDetail {
		if detail = []byte{}; hostdb.HasDetail(h) {
			detail = hostdb.AppendDetail(nil, h)
		}
	}
	if h != nil {
		record = hostdb.AppendHost(nil, h)
	}
	switch {
	case h == nil:
		query, args = `DELETE FROM host WHERE key = $1 AND version = $2`, []any{index, x.version}
	case !x.exists:
		query = `INSERT INTO host (key, tail, version, detail_version, record, detail) SELECT $1::bytea, $2::bytea, $3::bigint, $3::bigint, $4::bytea, $5::bytea WHERE true ON CONFLICT (key) DO NOTHING`
		args = []any{index, tail, version, record, detail}
	case newDetail:
		query, args = `UPDATE host SET version = $3, record = $4, detail_version = $3, detail = $5 WHERE key = $1 AND version = $2`, []any{index, x.version, version, record, detail}
	default:
		query, args = `UPDATE host SET version = $3, record = $4 WHERE key = $1 AND version = $2`, []any{index, x.version, version, record}
	}
	if s.fence != nil {
		query, args = s.fence.guard(query, args)
	}
	tag, err := s.db.pool.Exec(ctx, query, args...)
	if err == nil && tag.RowsAffected() == 0 && s.fence != nil {
		err = s.fence.check(ctx, s.db)
	}
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	if newDetail {
		s.details.put(name, cachedDetail{version, detail})
	}
	return true, nil
}

// signLife writes that hosts change, before the first change and then every second.
func (s *hostStore) signLife(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.alive.IsZero() && now.Sub(s.alive).Abs() < aliveEvery {
		return nil
	}
	_, err := s.db.pool.Exec(ctx, `UPDATE host_state SET clean = false, alive = $1 WHERE id = 0`, now.UnixMilli())
	if err == nil {
		s.alive = now
	}
	return err
}

// recover handles a close that was not orderly: see [hostdb.Host.AfterCrash]. The state is
// clean in the same step, since a second time would count the time in between as part of the
// pauses.
func (s *hostStore) recover(ctx context.Context) error {
	return s.read(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
			var clean bool
			var alive int64
			if err := tx.QueryRow(ctx, `SELECT clean, alive FROM host_state WHERE id = 0 FOR UPDATE`).Scan(&clean, &alive); err != nil || clean {
				return err
			}
			keys, records, err := s.afterCrash(ctx, time.UnixMilli(alive), time.Now())
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE host h SET version = $3, record = u.record FROM unnest($1::bytea[], $2::bytea[]) AS u (key, record) WHERE h.key = u.key`, keys, records, newVersion()); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `UPDATE host_state SET clean = true WHERE id = 0`)
			return err
		})
	})
}

// afterCrash returns the hosts that a crash changes.
func (s *hostStore) afterCrash(ctx context.Context, alive, now time.Time) (keys, records [][]byte, err error) {
	for x, err := range s.scan(ctx, source{table: "host", values: "record", rows: 4000}, crawldb.Range{}) {
		if err != nil {
			return nil, nil, err
		}
		h, has, err := hostdb.DecodeHost(string(x.key), x.value)
		if err != nil {
			return nil, nil, s.db.damaged("host", string(x.key), err)
		}
		if has { // AppendHost only checks whether there are details
			h.Robots = make([]hostdb.Robots, 1)
		}
		h = h.AfterCrash(alive, now)
		record := hostdb.AppendHost(nil, &h)
		if string(record) != string(x.value) {
			index, _ := indexed(x.key)
			keys, records = append(keys, index), append(records, record)
		}
	}
	return keys, records, nil
}

// Sync implements [hostdb.Store]. Every update is durable when it returns.
func (s *hostStore) Sync(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("pgstore: sync: %w", err)
	}
	return nil
}

// closePatience is how long Close tries to reach a server that is not there.
const closePatience = 10 * time.Second

// Close implements [hostdb.Store]. It waits for updates and then notes that it was orderly.
func (s *hostStore) Close() error {
	s.end()
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.alive.IsZero() {
		return nil
	}
	s.alive = time.Time{}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	err := s.db.retry(ctx, func(ctx context.Context) error {
		_, err := s.db.pool.Exec(ctx, `UPDATE host_state SET clean = true WHERE id = 0`)
		return err
	})
	if err != nil {
		return fmt.Errorf("pgstore: close hosts: %w", err)
	}
	return nil
}

// detailCache holds encoded details of hosts, so that a turn at a host with a large robots.txt
// does not read it again.
type detailCache struct {
	mu    sync.Mutex
	hosts map[string]cachedDetail
	size  int
}

// cachedDetail is an encoding that is never changed, and its version.
type cachedDetail struct {
	version int64
	detail  []byte
}

// mostCached is how many bytes of details are kept.
const mostCached = 16 << 20

func (c *detailCache) get(name string) cachedDetail {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[name]
}

// put keeps details; if there is no room, any others go.
func (c *detailCache) put(name string, d cachedDetail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const overhead = 100
	if c.hosts == nil {
		c.hosts = map[string]cachedDetail{}
	}
	remove := func(name string) {
		if old, ok := c.hosts[name]; ok {
			c.size -= len(name) + len(old.detail) + overhead
			delete(c.hosts, name)
		}
	}
	remove(name)
	size := len(name) + len(d.detail) + overhead
	for other := range c.hosts {
		if c.size+size <= mostCached {
			break
		}
		remove(other)
	}
	c.hosts[name] = d
	c.size += size
}
