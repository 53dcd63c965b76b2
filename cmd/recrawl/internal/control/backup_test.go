package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

const pages = 100

// newStore opens a new store with some pages.
func newStore(t *testing.T) (dir string, db *pebblestore.DB) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var urls []string
	for i := range pages {
		urls = append(urls, fmt.Sprintf("http://a.example/%03d", i))
	}
	err = db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{URL: urls[i], Status: crawldb.Unfetched, FetchTime: time.UnixMilli(int64(i)).UTC()}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return dir, db
}

// checkBackup checks that a directory is a store with all pages.
func checkBackup(t *testing.T, dir string) {
	t.Helper()
	db, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
	if err != nil {
		t.Error(err)
		return
	}
	defer db.Close()
	n := 0
	for _, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != pages {
		t.Errorf("%s has %d pages of %d", dir, n, pages)
	}
}

// answering answers requests until the returned function is called.
func answering(t *testing.T, db *pebblestore.DB) (stop func()) {
	t.Helper()
	run := pebblestore.RunDir(db.Dir())
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var answers sync.WaitGroup
	answers.Go(func() { answerBackups(ctx, db, run) })
	return func() { cancel(); answers.Wait() }
}

// The process that has the store open makes backups for others: several at once, and one to
// an impossible place, whose error the requesting process gets.
func TestRequestedBackupsAreMade(t *testing.T) {
	dir, db := newStore(t)
	above := t.TempDir()
	stop := answering(t, db)
	defer stop()
	var requests sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		requests.Go(func() {
			r, err := RequestBackup(t.Context(), dir, filepath.Join(above, name), pebblestore.BackupOptions{Copy: true})
			if err != nil || r.Files == 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	requests.Wait()
	if _, err := RequestBackup(t.Context(), dir, filepath.Join(above, "not", "there"), pebblestore.BackupOptions{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("to a directory that does not exist: %v", err)
	}
	stop()
	if left, err := os.ReadDir(pebblestore.RunDir(dir)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	checkBackup(t, filepath.Join(above, "a"))
	checkBackup(t, filepath.Join(above, "b"))
}

// A process that gives up removes its request.
func TestCancelledRequestIsRemoved(t *testing.T) {
	dir, db := newStore(t)
	run := pebblestore.RunDir(db.Dir())
	if err := os.MkdirAll(run, 0o755); err != nil { // and nothing replies
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var request sync.WaitGroup
	request.Go(func() {
		if _, err := RequestBackup(ctx, dir, filepath.Join(t.TempDir(), "to"), pebblestore.BackupOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("RequestBackup: %v", err)
		}
	})
	for {
		if _, err := os.Stat(filepath.Join(run, requestFile)); err == nil {
			break
		}
	}
	cancel()
	request.Wait()
	if left, err := os.ReadDir(run); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Without a process that has the store open there is nothing to wait for.
func TestRequestWithoutAProcess(t *testing.T) {
	dir, db := newStore(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, t.TempDir()} {
		if _, err := RequestBackup(t.Context(), dir, filepath.Join(t.TempDir(), "to"), pebblestore.BackupOptions{}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("RequestBackup: %v", err)
		}
	}
}

// A request counts as one of a dead process when it was not touched for some time.
func TestUntouchedRequestIsOfADeadProcess(t *testing.T) {
	touched := time.Now()
	var l liveness
	if l.dead("a", touched) {
		t.Error("a request seen for the first time")
	}
	l.since = l.since.Add(-2 * requestPatience)
	if !l.dead("a", touched) {
		t.Error("a request that was not touched is not dead")
	}
	if l.dead("a", touched.Add(time.Second)) || l.dead("b", touched.Add(time.Second)) {
		t.Error("a request that was touched, or another, is dead")
	}
}
