//go:build unix && !solaris && !aix

package pebblestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recrawl/recrawl/crawldb/verify"
)

// Whoever waits for the end of a Verify does not get the lock in the middle of it.
func TestVerifyKeepsTheLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := Open(dir, Options{})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stray := filepath.Join(dir, "db", "stray")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		var waiting sync.WaitGroup
		_, err := Verify(t.Context(), dir, verify.Options{Found: func(verify.Finding) { // the stray file, while files are checked
			waiting.Go(func() {
				for errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
				}
			})
		}})
		if err != nil {
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
			t.Fatal(err)
		}
		waiting.Wait()
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
			t.Fatal(err)
		}
	}
}

// An opening for changes fails with this reason while other processes read the store. The number in the lock is
// that of an earlier owner then, and says nothing.
func TestReadersKeepWritersOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := Open(dir, Options{})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		reader, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if db, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "others are reading it") {
			t.Errorf("a writer beside a reader: %v, %v", db, err)
		}
		another, err := Open(dir, Options{ReadOnly: true})
		if err := errors.Join(err, another.Close(), reader.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if db, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if db, err := Open(dir, Options{ReadOnly: true}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "by process") {
		t.Errorf("a reader beside a writer: %v, %v", db, err)
	}
}
