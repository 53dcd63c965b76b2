package control

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A status is there as long as its process has the store open; that of a killed process is
// not read.
func TestRunStatus(t *testing.T) {
	dir, db := newStore(t)
	none := func(when string) {
		t.Helper()
		if w, _, err := ReadRunStatus(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %+v, %v", when, w, err)
		}
	}
	none("before there is one")
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	crawler, err := recrawl.New(stores, recrawl.Options{Agent: "test-agent"})
	if err != nil {
		t.Fatal(err)
	}
	stop := Announce(db, crawler, "crawl")
	for {
		if w, asOf, err := ReadRunStatus(dir); err == nil {
			if w.Process != os.Getpid() || w.Verb != "crawl" || w.Began.IsZero() || asOf.IsZero() {
				t.Errorf("%+v as of %v", w, asOf)
			}
			break
		}
	}
	stop()
	if err := writeJSON(pebblestore.RunDir(dir), statusFile, []int{1}); err != nil {
		t.Fatal(err)
	}
	none("that is not one")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	none("when the store is closed")
	if err := errors.Join(os.Mkdir(pebblestore.RunDir(dir), 0o755), writeJSON(pebblestore.RunDir(dir), statusFile, &RunStatus{})); err != nil {
		t.Fatal(err)
	}
	none("when its process was killed")
	db, err = pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	none("when the store was opened again")
}

// A reader sees a file before it is replaced or after, and nothing between.
func TestFileIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	text := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), 1+i%7*1000) }
	var writes sync.WaitGroup
	done := make(chan struct{})
	writes.Go(func() {
		defer close(done)
		for i := range 200 {
			if err := writeJSON(dir, statusFile, text(i)); err != nil {
				t.Error(err)
			}
		}
	})
	for read := false; ; {
		var got string
		_, err := readJSON(dir, statusFile, &got)
		if err == nil {
			read = true
			if strings.Trim(got, got[:1]) != "" || (len(got)-1)%1000 != 0 {
				t.Errorf("read %d bytes of several files", len(got))
			}
		} else if read || !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		select {
		case <-done:
			if read {
				writes.Wait()
				return
			}
		default:
		}
	}
}

// A file that is not one is not read, and nothing waits for it.
func TestDirectoryInPlaceOfFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, statusFile), 0o755); err != nil {
		t.Fatal(err)
	}
	var v any
	if _, err := readJSON(dir, statusFile, &v); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("readJSON: %v", err)
	}
}
