package pebblestore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/dirstore/dirstoretest"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
)

// never is a lag of the host db after which no test is waiting any more. A sync by
// a timer, while a commit waits for room inside the engine, waits for a mutex of
// the engine, and in a bubble no time passes while anybody waits for a mutex.
const never = 10_000 * time.Hour

// TestFullDiskPausesTheCrawl fills the disk a hundred times while a site is crawled, to the last
// byte or to MinFree, and makes room again. Reads still work, nothing has to be done, and the
// result of the crawl is the same.
func TestFullDiskPausesTheCrawl(t *testing.T) {
	s := newSite(20)
	want := s.undisturbed(t)
	rounds := 0
	for seed := range 18 {
		synctest.Test(t, func(t *testing.T) {
			disk := dirstoretest.NewDisk()
			disk.Resize(1 << 30)
			var db *DB
			var mu sync.Mutex
			n, full, filled := 0, false, 0
			var reads sync.WaitGroup
			disk.OnOp = func(op dirstoretest.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if n++; !op.Kind.Changes() || full || db == nil || (n+seed*7)%(29+seed) != 0 {
					return nil
				}
				full = true
				filled++
				used, _ := disk.Usage()
				left := int64(0)
				if filled%3 == 0 {
					left = 30_000 // less than is to be left
				}
				disk.Resize(used + left)
				reads.Add(1)
				filling := db
				time.AfterFunc(3*time.Second, func() { // of the bubble: when all wait
					defer reads.Done()
					_, err := everything(t.Context(), filling)
					if err == nil {
						_, err = filling.Hosts().Get(t.Context(), s.web.Host(0))
					}
					if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
						t.Errorf("reading from a full disk: %v", err)
					}
					mu.Lock()
					defer mu.Unlock()
					disk.Resize(1 << 30)
					full = false
				})
				return nil
			}
			o := onDisk(small(), disk)
			o.MinFree, o.lag = 60_000, never
			var events []Room
			o.OnRoom = func(r Room) { events = append(events, r) }
			opened, err := Open(memPath, o)
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			db = opened
			mu.Unlock()
			if err := s.crawl(t.Context(), opened, nil); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			db = nil // from here on the disk, which the engine still works with, is not filled
			mu.Unlock()
			reads.Wait()
			got, err := dump(t.Context(), opened)
			if err != nil || got != want {
				t.Errorf("%v: it comes to something else: %s", err, difference(got, want))
			}
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
			rounds += filled
			if len(events) == 0 || len(events)%2 != 0 {
				t.Errorf("%d events", len(events))
			}
			for i, e := range events {
				if e.Paused != (i%2 == 0) || e.Paused && e.Free >= 60_000 && e.Err == nil || !e.Paused && e.Free < e.Need {
					t.Errorf("event %d: %+v", i, e)
				}
			}
		})
	}
	if t.Logf("the disk was full %d times", rounds); rounds < 100 {
		t.Error("that is too few")
	}
}

// TestWaitingForRoomEnds shows that a crawl that waits for room can be stopped, wherever it
// waits, within two seconds, and continues when there is room.
func TestWaitingForRoomEnds(t *testing.T) {
	s := newSite(20)
	want := s.undisturbed(t)
	for _, left := range []int64{0, 30_000} {
		for at := 90; at <= 250; at += 80 {
			synctest.Test(t, func(t *testing.T) {
				disk := dirstoretest.NewDisk()
				disk.Resize(1 << 30)
				var mu sync.Mutex
				n := 0
				disk.OnOp = func(op dirstoretest.Op) error {
					mu.Lock()
					defer mu.Unlock()
					if op.Kind.Changes() {
						n++
					}
					if n == at {
						used, _ := disk.Usage()
						disk.Resize(used + left)
					}
					return nil
				}
				o := onDisk(small(), disk)
				o.MinFree, o.lag = 60_000, never
				db, err := Open(memPath, o)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var ended time.Time
				time.AfterFunc(time.Hour, func() { ended = time.Now(); cancel() })
				err = s.crawl(ctx, db, nil)
				if ended.IsZero() {
					t.Errorf("the crawl was not paused: %v", errors.Join(err, db.Close()))
					return
				}
				if !errors.Is(err, context.Canceled) && !errors.Is(err, ErrFailed) {
					t.Errorf("at %d with %d free: %v", at, left, err)
				}
				closed := db.Close()
				if took := time.Since(ended); took > 2*time.Second {
					t.Errorf("at %d with %d free: it took %v to stop", at, left, took)
				}
				if closed != nil && !failfs.IsFull(closed) {
					t.Errorf("at %d with %d free: %v", at, left, closed)
				}
				disk.OnOp = nil
				disk.Resize(0)
				if err := newDurableMarks().check(t.Context(), s, disk, want); err != nil {
					t.Errorf("at %d with %d free: %v", at, left, err)
				}
			})
		}
	}
}

// TestOtherFailuresDoNotWait: errors that time does not cure are reported at once, and so is a
// full disk if MinFree is negative.
func TestOtherFailuresDoNotWait(t *testing.T) {
	for _, tt := range []struct {
		name  string
		least int64
		kind  dirstoretest.Kind
		cause error
	}{
		{"broken", 0, dirstoretest.Write, syscall.EIO},
		{"read-only", 0, dirstoretest.Write, syscall.EROFS},
		{"a sync on a full disk", 0, dirstoretest.Sync, syscall.ENOSPC},
		{"no waiting", -1, dirstoretest.Write, syscall.EDQUOT},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := dirstoretest.NewDisk()
				o := onDisk(small(), disk)
				o.MinFree = tt.least
				db, err := Open(memPath, o)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				disk.OnOp = func(op dirstoretest.Op) error {
					if op.Kind == tt.kind && strings.Contains(op.Name, "/db/") {
						return tt.cause
					}
					return nil
				}
				err = db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("job", "here")})
				if err == nil {
					err = db.Crawl().Sync(t.Context())
				}
				if !errors.Is(err, ErrFailed) || !errors.Is(err, tt.cause) {
					t.Error(err)
				}
				if err := db.Close(); !errors.Is(err, tt.cause) {
					t.Errorf("Close: %v", err)
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Closing a store when there is room again, before the engine has noticed, loses nothing.
func TestCloseWhenThereIsRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := dirstoretest.NewDisk()
		disk.Resize(1 << 30)
		db, err := Open(memPath, onDisk(small(), disk))
		if err != nil {
			t.Fatal(err)
		}
		const name = "a.example.test"
		err = db.Hosts().Update(t.Context(), name, func(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{Name: name}, nil })
		if err != nil {
			t.Fatal(err)
		}
		used, _ := disk.Usage()
		disk.Resize(used)
		synced := make(chan error, 1)
		go func() { synced <- db.Hosts().Sync(t.Context()) }()
		synctest.Wait()
		disk.Resize(1 << 30)
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-synced; err != nil {
			t.Errorf("sync: %v", err)
		}
	})
}

// While the engine waits to write its manifest, the end of a snapshot waits for it. Reads still
// work, including records with leases and due selections.
func TestLeasesAreReadFromAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := dirstoretest.NewDisk()
		var filled, waits atomic.Bool
		disk.OnOp = func(op dirstoretest.Op) error {
			if !filled.Load() || !strings.Contains(op.Name, "MANIFEST") {
				return nil
			}
			waits.Store(true)
			return syscall.ENOSPC
		}
		db, err := Open(memPath, onDisk(small(), disk))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		urls := []string{"http://a.example/", "http://b.example/"}
		err = db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			d := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: now.Add(-time.Hour), Score: 1}
			if i == 0 {
				d.LeasedUntil, d.LeasedBy = now.Add(time.Hour), "segment"
			}
			return &d, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		next := time.Time{}
		due := func() (n int, err error) {
			q := crawldb.DueQuery{Now: now, NotDue: func(d *crawldb.Datum) { next = d.FetchTime }}
			for _, err := range db.crawl.Due(t.Context(), q) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		}
		if _, err := due(); err != nil { // the first makes changes
			t.Fatal(err)
		}
		filled.Store(true)
		flushed := make(chan error, 1)
		go func() { flushed <- db.flush() }()
		synctest.Wait()
		if !waits.Load() {
			t.Fatal("nothing is written to a manifest")
		}
		read := make(chan bool, 1)
		go func() {
			defer close(read)
			for _, url := range urls {
				if d, err := db.Crawl().Get(t.Context(), url); err != nil || (d.LeasedBy != "") != (url == urls[0]) {
					t.Errorf("%s: %+v, %v", url, d, err)
				}
			}
			if n, err := due(); n != 1 || err != nil || !next.Equal(now.Add(time.Hour).Truncate(time.Millisecond)) {
				t.Errorf("%d are due, the next at %v: %v", n, next, err)
			}
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Error(err)
			}
			if err := db.checkKeys(t.Context(), func(err error) { t.Error(err) }); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		select {
		case <-read:
		default:
			t.Error("a read waits for the disk")
		}
		filled.Store(false)
		<-read
		if err := <-flushed; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}
