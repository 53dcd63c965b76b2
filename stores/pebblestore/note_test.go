package pebblestore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A note exists as long as its process has the store open. That of a killed process is not
// read, and is removed when the store is opened again.
func TestNote(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	none := func(when string) {
		t.Helper()
		if n, err := pebblestore.ReadNote(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %+v, %v", when, n, err)
		}
	}
	none("without a store")
	open := func() *pebblestore.DB {
		t.Helper()
		db, err := pebblestore.Open(dir, pebblestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	db := open()
	none("before there is one")
	for _, text := range []string{"a longer one\n", "short", ""} {
		if err := db.WriteNote([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if n, err := pebblestore.ReadNote(dir); err != nil || string(n.Text) != text || n.Process != os.Getpid() || n.Time.IsZero() {
			t.Errorf("%q: %+v, %v", text, n, err)
		}
	}
	killed := filepath.Join(t.TempDir(), "killed")
	if err := db.CopyKilled(killed); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	none("when the store is closed")
	if _, err := os.Stat(filepath.Join(dir, "NOTE")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left behind: %v", err)
	}
	if err := db.WriteNote(nil); !errors.Is(err, crawldb.ErrClosed) {
		t.Errorf("note of a store that is closed: %v", err)
	}

	dir = killed
	none("when the process was killed")
	if err := os.WriteFile(filepath.Join(dir, "NOTE.new"), []byte("12"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := pebblestore.Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) {
		if !f.Harmless {
			t.Error(f)
		}
	}}); err != nil {
		t.Error(err)
	}
	db = open()
	none("when the store was opened again")
	if left, _ := filepath.Glob(filepath.Join(dir, "NOTE*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	ro, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := ro.WriteNote(nil); !errors.Is(err, pebblestore.ErrReadOnly) {
		t.Errorf("note of a store open for reading: %v", err)
	}
	ro.Close()
}

// Whoever reads a note while it is replaced reads the one or the other.
func TestNoteIsReplacedWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(i int) string { return fmt.Sprintf("%0*d", 1+i%7*100, i) }
	valid := map[string]bool{}
	for i := range 40 {
		valid[text(i)] = true
	}
	var notes sync.WaitGroup
	done := make(chan struct{})
	notes.Go(func() {
		defer close(done)
		for i := range 40 {
			if err := db.WriteNote([]byte(text(i))); err != nil {
				t.Error(err)
			}
		}
	})
	for read := 0; ; {
		n, err := pebblestore.ReadNote(dir)
		if err == nil && !valid[string(n.Text)] || err != nil && (read > 0 || !errors.Is(err, fs.ErrNotExist)) {
			t.Errorf("read %q, %v", n.Text, err)
		}
		if err == nil {
			read++
		}
		select {
		case <-done:
			if read == 0 {
				continue // there is one now
			}
		default:
			continue
		}
		break
	}
	notes.Wait()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
