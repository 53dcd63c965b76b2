package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore/dirstoretest"
)

const backupPath = "/b"

// A hook is what a disk calls before each operation, and may be changed while the disk is
// in use.
type hook struct {
	mu sync.RWMutex
	f  func(dirstoretest.Op) error
}

// set makes f what is called; what was is not running any more then.
func (h *hook) set(f func(dirstoretest.Op) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.f = f
}

func (h *hook) call(op dirstoretest.Op) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.f == nil {
		return nil
	}
	return h.f(op)
}

// growingStore is a store in the midst of things on a disk of tests: a part is being
// written, and nothing of the last step is durable.
func growingStore(t *testing.T) (*dirstoretest.Disk, *hook, *DB, string) {
	t.Helper()
	ctx, disk, onOp := t.Context(), dirstoretest.NewDisk(), &hook{}
	disk.OnOp = onOp.call
	db, err := Open(memPath, onDisk(small(), disk))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := newSite(8).crawl(ctx, db, nil); err != nil {
		t.Fatal(err)
	}
	w, err := db.Segments().Append(ctx, "growing", "content", -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	for i := range 3 {
		if err := w.Append(ctx, []byte(fmt.Sprint("block ", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Crawl().Update(ctx, crawldb.Batch{Marks: crawldb.Mark("growing", "begun")}); err != nil {
		t.Fatal(err)
	}
	want, err := grown(ctx, db)
	if err != nil || !strings.HasSuffix(want, "block 2 begun") {
		t.Fatal(want, err)
	}
	return disk, onOp, db, want
}

// grown is all that is in such a store.
func grown(ctx context.Context, db *DB) (string, error) {
	text, err := dump(ctx, db)
	for block, e := range db.Segments().Read(ctx, "growing", "content", 0) {
		if errors.Is(e, segment.ErrNotFound) { // its name was not durable
			break
		}
		text, err = text+string(block)+" ", errors.Join(err, e)
	}
	mark, e := db.Crawl().Mark(ctx, "growing")
	return text + mark, errors.Join(err, e)
}

func grownAt(ctx context.Context, disk *dirstoretest.Disk, name string) (text string, err error) {
	db, err := Open(name, onDisk(small(), disk))
	if err != nil {
		return "", err
	}
	text, err = grown(ctx, db)
	return text, errors.Join(err, db.Close())
}

func there(disk *dirstoretest.Disk, name string) bool {
	_, err := disk.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// The power fails before each change that a backup makes: a backup with its name is complete,
// and the store is unchanged, whatever is left beside it.
func TestPowerLossInABackup(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for _, o := range []BackupOptions{{}, {Copy: true}} {
		disk, onOp, db, want := growingStore(t)
		if err := db.Crawl().Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu, rng, n, whole := sync.Mutex{}, rand.New(rand.NewPCG(1, 1)), 0, 0
		check := func(left *dirstoretest.Disk, what string) {
			if there(left, backupPath) {
				whole++
				if got, err := grownAt(t.Context(), left, backupPath); err != nil || got != want {
					t.Errorf("%s: of the backup: %v; %s", what, err, difference(got, want))
				}
			}
			// Of the part that is not synced some may be gone.
			got, err := grownAt(t.Context(), left, memPath)
			if end := len(want) - len("block 0 block 1 block 2 begun"); err != nil || !strings.HasPrefix(got, want[:end]) || !strings.HasSuffix(got, "begun") {
				t.Errorf("%s: of the store: %v; %s", what, err, difference(got, want))
			}
			if there(left, path.Join(memPath, stagingName)) {
				t.Errorf("%s: what was left is there", what)
			}
		}
		onOp.set(func(op dirstoretest.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if !op.Kind.Changes() {
				return nil
			}
			n++
			survives := float64(n%3) / 2
			check(disk.Crash(survives, rng), fmt.Sprintf("%+v, before operation %d, %v, %v survive", o, n, op, survives))
			return nil
		})
		_, err := db.Backup(t.Context(), backupPath, o)
		onOp.set(nil)
		if err != nil {
			t.Fatal(err)
		}
		check(disk.Crash(0, rng), "at the end")
		if n < 50 || whole == 0 {
			t.Errorf("%d changes, %d times there was a backup", n, whole)
		}
		t.Logf("%+v: %d changes, %d times there was a backup", o, n, whole)
	}
}

// While a backup gives files second names, no record and no segment changes; changes that wait
// continue afterwards.
func TestBackupHoldsChangesWhileItLinksFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		disk, onOp, db, want := growingStore(t)
		old := ""
		for name, err := range db.Segments().List(ctx) {
			if err != nil || name != "growing" {
				old = name
				break
			}
		}
		ended := make(chan error, 3)
		change := func(f func() error) { go func() { ended <- f() }() }
		mu, first, held := sync.Mutex{}, true, 0
		onOp.set(func(op dirstoretest.Op) error {
			mu.Lock()
			begin := first && op.Kind == dirstoretest.Link && strings.Contains(op.To, stagingName)
			first = first && !begin
			mu.Unlock()
			if begin {
				change(func() error { return db.Crawl().Update(ctx, crawldb.Batch{Marks: crawldb.Mark("growing", "later")}) })
				change(func() error {
					w, err := db.Segments().Append(ctx, "other", "content", -1)
					if err != nil {
						return err
					}
					return errors.Join(w.Append(ctx, []byte("later")), w.Close())
				})
				change(func() error { return db.Segments().Remove(ctx, old) })
				synctest.Wait()
				held = cap(ended) - len(ended)
			}
			return nil
		})
		_, err := db.Backup(ctx, backupPath, BackupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		onOp.set(nil)
		if held != cap(ended) {
			t.Errorf("%d of %d changes waited", held, cap(ended))
		}
		if got, err := grownAt(ctx, disk, backupPath); err != nil || got != want {
			t.Errorf("%v; %s", err, difference(got, want))
		}
		if mark, err := db.Crawl().Mark(ctx, "growing"); err != nil || mark != "later" {
			t.Errorf("after it the mark is %q, %v", mark, err)
		}
	})
}

// Each operation of a backup fails in turn, or its context ends there: the store continues,
// unless its own log could not be synced, and nothing is left that looks like a backup.
func TestEveryOperationOfABackupFails(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for _, o := range []BackupOptions{{}, {Copy: true}} {
		for _, cause := range []error{syscall.EIO, syscall.ENOSPC, context.Canceled} {
			failures := 0
			disk, onOp, db, want := growingStore(t)
			stride := 7
			if testlevel.Exhaustive {
				stride = 1
			}
			for at := 1; ; at += stride {
				mu, n, hit := sync.Mutex{}, 0, dirstoretest.Op{}
				ctx, cancel := context.WithCancel(t.Context())
				onOp.set(func(op dirstoretest.Op) error {
					mu.Lock()
					defer mu.Unlock()
					// The rest is the store's own, and what cannot be removed is left.
					ours := strings.HasPrefix(op.Name, backupPath) || strings.HasPrefix(op.Name, path.Join(memPath, segmentsName)) || strings.Contains(op.Name+op.To, stagingName)
					if !ours || op.Kind == dirstoretest.Remove || op.Kind == dirstoretest.Stat {
						return nil
					}
					if n++; n != at {
						return nil
					}
					hit = op
					if cause == context.Canceled {
						cancel()
						return nil
					}
					return cause
				})
				_, err := db.Backup(ctx, backupPath, o)
				onOp.set(nil)
				cancel()
				if n < at {
					if err != nil || failures*stride < 50 {
						t.Errorf("%d operations failed, then: %v", failures, err)
					}
					break
				}
				failures++
				what := fmt.Sprintf("%+v, operation %d, %v: %v", o, at, hit, cause)
				if e := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("after", fmt.Sprint(at))}); e != nil {
					t.Fatalf("%s: the store has failed: %v", what, e)
				}
				if err != nil && !errors.Is(err, cause) {
					t.Errorf("%s: %v", what, err)
				}
				if err == nil || there(disk, backupPath) {
					if got, err := grownAt(t.Context(), disk, backupPath); err != nil || got != want {
						t.Errorf("%s: %v; %s", what, err, difference(got, want))
					}
					if err := (&diskFS{Disk: disk}).RemoveAll(backupPath); err != nil {
						t.Fatal(err)
					}
				}
				if there(disk, path.Join(memPath, stagingName)) && cause == context.Canceled {
					t.Errorf("%s: what was left is there", what)
				}
				if err := (&diskFS{Disk: disk}).RemoveAll(backupPath + ".backup"); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := grown(t.Context(), db); err != nil || got != want {
				t.Errorf("%v; %s", err, difference(got, want))
			}
		}
	}
}

// A store whose opening or closing was cut short, at each change, can be backed up.
func TestBackupAfterAKill(t *testing.T) {
	disk, onOp, db, want := growingStore(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var killed []*dirstoretest.Disk
	var what []string
	mu := sync.Mutex{}
	onOp.set(func(op dirstoretest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.Changes() {
			killed, what = append(killed, disk.Crash(1, nil)), append(what, op.String())
		}
		return nil
	})
	if _, err := grownAt(t.Context(), disk, memPath); err != nil {
		t.Fatal(err)
	}
	for i, disk := range killed {
		db, err := Open(memPath, onDisk(small(), disk))
		if err == nil {
			_, err = db.Backup(t.Context(), backupPath, BackupOptions{})
			err = errors.Join(err, db.Close())
		}
		if err != nil {
			t.Errorf("killed before %s: %v", what[i], err)
			continue
		}
		if got, err := grownAt(t.Context(), disk, backupPath); err != nil || got != want {
			t.Errorf("killed before %s: %v; %s", what[i], err, difference(got, want))
		}
	}
	t.Logf("%d kills", len(killed))
}
