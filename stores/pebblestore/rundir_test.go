package pebblestore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// The directory for files of a process goes when the store is closed, and when it is opened
// after a kill, with the files that earlier versions had in its place. Verify ignores all of them.
func TestRunDirIsRemovedByCloseAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	run := pebblestore.RunDir(dir)
	files := []string{filepath.Join(run, "status"), filepath.Join(dir, "NOTE"), filepath.Join(dir, "NOTE.new"), filepath.Join(dir, "ASK"), filepath.Join(dir, "ANSWER"), filepath.Join(dir, "ANSWER.new")}
	write := func(files []string) {
		t.Helper()
		for _, name := range files {
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("x"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func(files []string, when string) {
		t.Helper()
		for _, name := range files {
			if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s: %v", when, name, err)
			}
		}
	}
	inUse := func(want bool) {
		t.Helper()
		if is, err := pebblestore.InUse(dir); is != want || err != nil {
			t.Errorf("InUse is %t, %v", is, err)
		}
	}
	open := func(o pebblestore.Options) *pebblestore.DB {
		t.Helper()
		db, err := pebblestore.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	inUse(false)
	db := open(pebblestore.Options{})
	inUse(true)
	if real, err := filepath.EvalSymlinks(dir); err != nil || db.Dir() != real {
		t.Errorf("Dir is %s, want %s, %v", db.Dir(), real, err)
	}
	write(files[:1])
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	gone([]string{run}, "after Close")
	inUse(false)

	write(files)
	if _, err := pebblestore.Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) { t.Error(f) }}); err != nil {
		t.Error(err)
	}
	if err := open(pebblestore.Options{ReadOnly: true}).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(files[0]); err != nil {
		t.Errorf("an opening for reading: %v", err)
	}
	open(pebblestore.Options{})
	gone(append(files, run), "after Open")
}

// A process that puts requests into the directory at this moment is no reason for Close to fail.
func TestRunDirIsRemovedWhileOthersWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	run := pebblestore.RunDir(dir)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	for i := range 2 {
		writers.Go(func() {
			name := filepath.Join(run, strconv.Itoa(i))
			for ctx.Err() == nil {
				_ = os.WriteFile(name, nil, 0o666)
				_ = os.Remove(name)
			}
		})
	}
	for range 30 {
		db, err := pebblestore.Open(dir, pebblestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(run, 0o777), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
