package pebblestore

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hostdbtest"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
)

// rig makes stores for the kits and takes them through ends of all kinds.
type rig struct {
	dir   string
	next  atomic.Int64
	power bool // a crash is one of the machine: what was not synced may be lost
}

func newRig(t *testing.T) *rig { return &rig{dir: t.TempDir()} }

// sequences is the long form of the random steps of the crawl kit, over engines of
// any size:
//
//	go test . -run 'TestCrawlKit/.*/any_sequence' -sequences 10000 -timeout 0
var sequences = flag.Int("sequences", 0, "how many sequences of steps are compared with a map; 0 is a few")

// small makes tables and their compaction a matter of a few hundred records.
func small() Options { return Options{CacheSize: 2 << 20, MemTableSize: 64 << 10} }

// A handle is a DB with the options to open it again.
type handle struct {
	*DB
	path string
	o    Options
}

func (r *rig) open() (handle, error) {
	n := r.next.Add(1)
	h := handle{path: filepath.Join(r.dir, fmt.Sprint(n)), o: small()}
	if *sequences > 0 {
		rnd := rand.New(rand.NewPCG(uint64(n), 8))
		h.o.CacheSize, h.o.MemTableSize = 1<<(20+rnd.IntN(4)), 1<<(16+rnd.IntN(5))
		h.o.Compression = Compression(rnd.IntN(2))
	}
	if r.power {
		h.path, h.o = memPath, inMemory(small(), vfs.NewCrashableMem())
	}
	return h.reopen()
}

func (h handle) reopen() (handle, error) {
	var err error
	if h.DB, err = Open(h.path, h.o); err == nil {
		h.crawl.bulkStep, h.crawl.bulkLeast = 32<<10, 1 // tables, and many steps
		h.crawl.index.StepBytes, h.crawl.index.LeastTables = 32<<10, 1
		h.links.leastTable = 512 // some are tables
	}
	return h, err
}

var errCrash = errors.New("the test crashed")

// crash freezes the disk in the state in which it is, which is all that an end
// of the process does, or in one that an end of the machine may leave.
func (h handle) crash() (handle, error) {
	if mem, ok := h.o.fs.(*vfs.MemFS); ok {
		h.o.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 2))})
	}
	h.fs.Fail(errCrash)
	if err := h.DB.Close(); err != nil && !errors.Is(err, errCrash) {
		return h, err
	}
	return h.reopen()
}

// The four stores of a handle, each with the handle to close and reopen; pointers to them
// are handed to kits, which forget a closed store by comparing it.
type (
	crawlHandle struct {
		crawldb.Store
		h handle
	}
	hostHandle struct {
		hostdb.Store
		h handle
	}
	linkHandle struct {
		linkdb.Store
		h handle
	}
	segmentHandle struct {
		segment.Store
		h handle
	}
)

func (c *crawlHandle) Close() error          { return c.h.Close() }
func (c *crawlHandle) Unwrap() crawldb.Store { return c.Store } // it is a DueStore and a BulkStore
func (c *hostHandle) Close() error           { return c.h.Close() }
func (c *linkHandle) Close() error           { return c.h.Close() }

func asCrawl(h handle, err error) (crawldb.Store, error) {
	if err != nil {
		return nil, err
	}
	return &crawlHandle{h.Crawl(), h}, nil
}

func asHosts(h handle, err error) (hostdb.Store, error) {
	if err != nil {
		return nil, err
	}
	return &hostHandle{h.Hosts(), h}, nil
}

func asLinks(h handle, err error) (linkdb.Store, error) {
	if err != nil {
		return nil, err
	}
	return &linkHandle{h.Links(), h}, nil
}

func asSegments(h handle, err error) (segment.Store, error) {
	if err != nil {
		return nil, err
	}
	return &segmentHandle{h.Segments(), h}, nil
}

// overEnds runs a test with both kinds of crash.
func overEnds(t *testing.T, f func(*testing.T, *rig)) {
	t.Run("of the process", func(t *testing.T) {
		testlevel.SkipInRace(t) // that of the machine has the same calls
		f(t, newRig(t))
	})
	t.Run("of the machine", func(t *testing.T) {
		r := newRig(t)
		r.power = true
		f(t, r)
	})
}

func TestCrawlKit(t *testing.T) {
	t.Parallel()
	overEnds(t, func(t *testing.T, r *rig) {
		crawldbtest.Run(t, crawldbtest.Harness{
			Sequences: *sequences,

			Open:   func() (crawldb.Store, error) { return asCrawl(r.open()) },
			Reopen: func(s crawldb.Store) (crawldb.Store, error) { return asCrawl(s.(*crawlHandle).h.reopen()) },
			Crash:  func(s crawldb.Store) (crawldb.Store, error) { return asCrawl(s.(*crawlHandle).h.crash()) },
		})
	})
}

func TestHostKit(t *testing.T) {
	t.Parallel()
	overEnds(t, func(t *testing.T, r *rig) {
		hostdbtest.Run(t, hostdbtest.Harness{
			Open:   func() (hostdb.Store, error) { return asHosts(r.open()) },
			Reopen: func(s hostdb.Store) (hostdb.Store, error) { return asHosts(s.(*hostHandle).h.reopen()) },
			Crash:  func(s hostdb.Store) (hostdb.Store, error) { return asHosts(s.(*hostHandle).h.crash()) },
		})
	})
}

// The engine of the segments runs its own kit with damage and torn files; here
// is shown that the store in front of it changes nothing.
func TestSegmentKit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	segmenttest.Run(t, segmenttest.Harness{
		Open:   func() (segment.Store, error) { return asSegments(r.open()) },
		Close:  func(s segment.Store) error { return s.(*segmentHandle).h.Close() },
		Reopen: func(s segment.Store) (segment.Store, error) { return asSegments(s.(*segmentHandle).h.reopen()) },
		Crash: func(s segment.Store) (segment.Store, error) {
			h := s.(*segmentHandle).h
			t.Cleanup(func() { _ = h.Close() })
			h.fs.Fail(errCrash)
			copied := fmt.Sprint(h.path, "-", r.next.Add(1))
			if err := h.CopyKilled(copied); err != nil {
				return nil, err
			}
			h.path = copied
			return asSegments(h.reopen())
		},
	})
}
