//go:build servers

package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hostdbtest"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/linkdb/linkdbtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
	"github.com/recrawl/recrawl/stores/pgstore/pgtest"
)

// rig makes crawls on a server for the kits.
type rig struct {
	server *pgtest.Server
	proxy  *proxy // nil for none
	next   atomic.Int64
}

// The kits of the four contracts share a server.
func TestKits(t *testing.T) {
	r := &rig{server: pgtest.Start(t, "fsync = off")}
	t.Run("of the kits", func(t *testing.T) {
		for name, kit := range map[string]func(*testing.T, *rig){"crawl": crawlKit, "hosts": hostKit, "links": linkKit, "segments": segmentKit, "usage": checkUsage} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				kit(t, r)
			})
		}
	})
}

// handle is a DB with the connection string to open it again.
type handle struct {
	*DB
	dsn string
}

// newDSN returns the connection string of a new crawl.
func (r *rig) newDSN() string {
	crawl := fmt.Sprintf("kit%d", r.next.Add(1))
	if r.proxy != nil {
		return pgtest.DSNAt(r.proxy.address, crawl) + "&pool_max_conn_idle_time=200ms&pool_health_check_period=200ms"
	}
	return r.server.DSN(crawl) + " pool_max_conn_idle_time=200ms pool_health_check_period=200ms"
}

func (r *rig) open() (handle, error) { return reopen(handle{dsn: r.newDSN()}) }

func reopen(h handle) (_ handle, err error) {
	h.DB, err = Open(context.Background(), h.dsn, Options{leaseTime: 100 * time.Millisecond})
	return h, err
}

// crash ends the use of a DB as a kill does.
func crash(h handle) (handle, error) {
	h.release()
	return reopen(h)
}

// crawlOfDB is a crawl db that closes its DB.
type crawlOfDB struct {
	*crawlStore
	db *DB
}

func (s *crawlOfDB) Close() error { return s.db.Close() }

func crawlKit(t *testing.T, r *rig) {
	broken := &rig{server: r.server, proxy: newProxy(t, r.server.Address())}
	broken.next.Store(1 << 20) // not the crawls of the other kits
	stores := newStores[crawldb.Store](broken, func(h handle) crawldb.Store { return &crawlOfDB{&h.crawl, h.DB} })
	crawldbtest.Run(t, crawldbtest.Harness{Open: stores.open, Reopen: stores.reopen, Crash: stores.crash, LoseAnswer: func(_ crawldb.Store, applied bool) {
		broken.proxy.next.Store(int32(map[bool]cut{true: afterCommit, false: beforeCommit}[applied]))
	}})
}

type hostsOfDB struct {
	*hostStore
	db *DB
}

func (s *hostsOfDB) Close() error { return s.db.Close() }

func hostKit(t *testing.T, r *rig) {
	stores := newStores[hostdb.Store](r, func(h handle) hostdb.Store { return &hostsOfDB{&h.hosts, h.DB} })
	hostdbtest.Run(t, hostdbtest.Harness{Open: stores.open, Reopen: stores.reopen, Crash: stores.crash})
}

type linksOfDB struct {
	*linkStore
	db *DB
}

func (s *linksOfDB) Close() error { return s.db.Close() }

func linkKit(t *testing.T, r *rig) {
	stores := newStores[linkdb.Store](r, func(h handle) linkdb.Store { return &linksOfDB{&h.links, h.DB} })
	linkdbtest.Run(t, linkdbtest.Harness{Open: stores.open, Reopen: stores.reopen, Crash: stores.crash})
}

func segmentKit(t *testing.T, r *rig) {
	stores := newStores[segment.Store](r, func(h handle) segment.Store { return h.Segments() })
	segmenttest.Run(t, segmenttest.Harness{
		Open: stores.open, Reopen: stores.reopen, Crash: stores.crash,
		Close: func(s segment.Store) error { return stores.handles[s].Close() },
		// The last block is torn, with those that it has at the end of the part.
		Tear: func(s segment.Store, seg, part string, n int) error {
			db := stores.handles[s].DB
			p, err := db.segments.find(t.Context(), partName{seg, part})
			for err == nil && n > 0 {
				var number, size int
				if err = db.pool.QueryRow(t.Context(), `SELECT number, length(data) FROM block WHERE part = $1 ORDER BY number DESC LIMIT 1`, p.id).Scan(&number, &size); err != nil {
					if errors.Is(err, pgx.ErrNoRows) {
						err = nil
					}
					break
				}
				query := `UPDATE block SET data = substring(data for length(data) - $3::int) WHERE part = $1 AND number = $2`
				if n > size {
					query = `DELETE FROM block WHERE part = $1 AND number = $2 AND $3::int = $3`
				}
				_, err = db.pool.Exec(t.Context(), query, p.id, number, n)
				n -= size + 1
			}
			clear(db.segments.sound)
			return err
		},
		Damage: func(s segment.Store, seg, part string, at int) error {
			db := stores.handles[s].DB
			p, err := db.segments.find(t.Context(), partName{seg, part})
			if err != nil {
				return err
			}
			at %= int(p.bytes)
			for number := 0; ; number++ {
				var data []byte
				if err := db.pool.QueryRow(t.Context(), `SELECT data FROM block WHERE part = $1 AND number = $2`, p.id, number).Scan(&data); err != nil {
					return err
				}
				if at -= len(data); at < 0 {
					data[at+len(data)] ^= 1 << (number % 8)
					_, err := db.pool.Exec(t.Context(), `UPDATE block SET data = $3 WHERE part = $1 AND number = $2`, p.id, number, data)
					return err
				}
			}
		},
	})
}

// stores remembers the handle of each store of one kind.
type stores[S comparable] struct {
	rig     *rig
	part    func(handle) S
	handles map[S]handle
}

func newStores[S comparable](r *rig, part func(handle) S) *stores[S] {
	return &stores[S]{r, part, map[S]handle{}}
}

func (s *stores[S]) keep(h handle, err error) (S, error) {
	if err != nil {
		var none S
		return none, err
	}
	store := s.part(h)
	s.handles[store] = h
	return store, nil
}

func (s *stores[S]) open() (S, error) { return s.keep(s.rig.open()) }

func (s *stores[S]) reopen(store S) (S, error) {
	return s.keep(reopen(s.handles[store]))
}

func (s *stores[S]) crash(store S) (S, error) { return s.keep(crash(s.handles[store])) }
