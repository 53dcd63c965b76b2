package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
)

// breaker fails the operations that writes picks, from the one numbered at on;
// once only if once is set.
type breaker struct {
	at    int64
	once  bool
	cause error
	bare  bool // the error does not say on which file it was
	picks func(errorfs.Op) bool
	n     atomic.Int64
	hits  atomic.Int64
}

func (b *breaker) String() string { return "breaker" }

func (b *breaker) MaybeError(op errorfs.Op) error {
	if !b.picks(op) || failfs.IsFull(b.cause) && strings.HasPrefix(path.Base(op.Path), logcheck.SyncedPrefix) { // no caller sees this error
		return nil
	}
	if n := b.n.Add(1) - 1; n < b.at || b.once && n > b.at {
		return nil
	}
	b.hits.Add(1)
	if b.bare {
		return b.cause
	}
	return fmt.Errorf("operation %d on %s: %w", op.Kind, op.Path, b.cause)
}

// writes are all changes but the removal of what is no longer needed.
func writes(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpLock, errorfs.OpRemove, errorfs.OpRemoveAll, errorfs.OpFilePreallocate:
		return false
	}
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite
}

func reads(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsRead }

// A trial uses a store until something fails or all is done, and keeps account
// of what was acknowledged.
type trial struct {
	round  int // updates that returned nil
	synced int // updates before the last Sync that returned nil
}

const (
	trialURLs   = 400
	trialRounds = 12
)

func trialBatch(round int) crawldb.Batch {
	var b crawldb.Batch
	for i := range trialURLs {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h%02d.example/%04d", i/50, i))
	}
	b.Marks = crawldb.Mark("trial", fmt.Sprint(round))
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := crawldb.Datum{}
		if old != nil {
			d = *old
		}
		d.Retries = round
		// Its entry in the index of due records moves now and then.
		d.FetchTime, d.Priority = dueEpoch.Add(time.Duration((i*13+round*31)%97)*time.Hour), float32((i+round/2)%50)
		d.LeasedUntil = time.Time{}
		if (i+round)%4 == 0 {
			d.LeasedUntil = d.FetchTime.Add(50 * time.Hour)
		}
		d.ETag = strings.Repeat(string(rune('a'+(i*7+round)%26)), 40+(i*round)%60)
		return &d, nil
	}
	return b
}

func (tr *trial) run(t *testing.T, db *DB) error {
	ctx := t.Context()
	for tr.round < trialRounds {
		if err := db.Crawl().Update(ctx, trialBatch(tr.round+1)); err != nil {
			return err
		}
		tr.round++
		for _, err := range db.crawl.Due(ctx, crawldb.DueQuery{Now: dueEpoch.Add(time.Duration(tr.round) * 5 * time.Hour), Limit: 1}) {
			if err != nil {
				return err
			}
		}
		name := fmt.Sprintf("h%02d.example", tr.round)
		err := db.Hosts().Update(ctx, name, func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{NextFetch: time.UnixMilli(5)}, nil
		})
		if err != nil {
			return err
		}
		if tr.round%3 == 0 {
			if err := db.Crawl().Sync(ctx); err != nil {
				return err
			}
			tr.synced = tr.round
		}
		if tr.round == 8 {
			// A merge is durable, and so is what was before it.
			if err := db.Links().Merge(ctx, []linkdb.Entry{{URL: "http://a.example/"}}, 0); err != nil {
				return err
			}
			tr.synced = tr.round
			if err := db.Compact(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// check opens the store on a sound disk and compares it with the account.
func (tr *trial) check(t *testing.T, path string, o Options) {
	t.Helper()
	db, err := Open(path, o)
	if err != nil {
		t.Fatalf("after %d updates: %v", tr.round, err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	cursor, err := db.Crawl().Mark(t.Context(), "trial")
	if err != nil {
		t.Fatal(err)
	}
	round := 0
	fmt.Sscan(cursor, &round)
	// The update that failed may be there.
	if round < tr.synced || round > tr.round+1 {
		t.Errorf("the mark is %d; %d were synced and %d returned", round, tr.synced, tr.round)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Errorf("at mark %d: %v", round, err)
	}
	want := trialBatch(round)
	n := 0
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		w, _ := want.Next(n, nil)
		if !d.FetchTime.Equal(w.FetchTime) || !d.LeasedUntil.Equal(w.LeasedUntil) || d.Priority != w.Priority {
			t.Fatalf("at mark %d record %d is %+v", round, n, d)
		}
		if d.URL != want.URLs[n] || d.Retries != round || d.ETag != w.ETag {
			t.Fatalf("at mark %d record %d is %+v", round, n, d)
		}
		n++
	}
	if round > 0 && n != trialURLs {
		t.Errorf("at mark %d there are %d records", round, n)
	}
}

// after returns what comes after an operation that was made to fail: the next one, or behind
// the first so many not each, as appends to files are alike.
func after(at, first int64) int64 {
	if at++; at > first && !testlevel.Exhaustive {
		at += at / 6
	}
	return at
}

// causes are reasons for a write to fail.
func causes() []error {
	if testlevel.Exhaustive {
		return []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS}
	}
	return []error{syscall.ENOSPC}
}

// TestEveryWriteFails makes each write fail in turn, once or from then on. The process lives,
// the error is reported, and nothing acknowledged is lost.
func TestEveryWriteFails(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for i := range 2 * len(causes()) {
		once, cause := i%2 == 0, causes()[i/2]
		t.Run(fmt.Sprintf("once=%t, %v", once, cause), func(t *testing.T) {
			failed := 0
			for at := int64(0); ; at = after(at, 60) {
				b := &breaker{at: at, once: once, cause: cause, picks: writes}
				mem := vfs.NewCrashableMem()
				o := inMemory(small(), errorfs.Wrap(mem, b))
				o.MinFree = -1 // no write waits for room
				var tr trial
				db, err := Open(memPath, o)
				if err == nil {
					err = tr.run(t, db)
					if err != nil && !errors.Is(err, ErrFailed) {
						t.Errorf("write %d: %v", at, err)
					}
					if err != nil {
						if _, err := db.Crawl().Get(t.Context(), "http://h00.example/0000"); !errors.Is(err, ErrFailed) {
							t.Errorf("write %d: Get after the failure: %v", at, err)
						}
						if err := db.Crawl().Sync(t.Context()); !errors.Is(err, ErrFailed) {
							t.Errorf("write %d: Sync after the failure: %v", at, err)
						}
					}
					err = errors.Join(err, db.Close())
				}
				if b.hits.Load() == 0 {
					t.Logf("%d writes; %d trials failed", at, failed)
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil {
					t.Errorf("write %d failed without an error", at)
				} else if !errors.Is(err, cause) {
					t.Errorf("write %d: %v", at, err)
				}
				failed++
				for _, fs := range []vfs.FS{mem.CrashClone(vfs.CrashCloneCfg{}), mem} {
					tr.check(t, memPath, inMemory(small(), fs))
				}
			}
		})
	}
}

// What fails is named, also by calls that do not say it themselves.
func TestAFailureNamesTheFile(t *testing.T) {
	syncs := func(op errorfs.Op) bool {
		return strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
	}
	b := &breaker{at: 3, cause: syscall.EIO, bare: true, picks: syncs}
	db, err := Open(memPath, inMemory(small(), errorfs.Wrap(vfs.NewMem(), b)))
	if err != nil {
		t.Fatal(err)
	}
	err = (&trial{}).run(t, db)
	if !errors.Is(err, syscall.EIO) || !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), ".log: ") {
		t.Errorf("a sync failed: %v", err)
	}
	if err := db.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
}

// TestOpenOnAFullDisk reopens, after a crash, a store whose log has to become
// tables for which there is no room: at each write of the opening in turn.
func TestOpenOnAFullDisk(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db, err := Open(memPath, inMemory(small(), mem))
	if err != nil {
		t.Fatal(err)
	}
	var tr trial
	if err := tr.run(t, db); err != nil {
		t.Fatal(err)
	}
	crashed := func() vfs.FS {
		return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	}
	defer db.Close()
	for at := int64(0); ; at++ {
		b := &breaker{at: at, cause: syscall.ENOSPC, picks: writes}
		again, err := Open(memPath, inMemory(small(), errorfs.Wrap(crashed(), b)))
		if err == nil {
			err = again.Close() // what fails now comes behind the opening
		}
		if b.hits.Load() == 0 {
			if err != nil || at < 5 {
				t.Fatal(at, err)
			}
			return
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("write %d: %v", at, err)
		}
	}
}
