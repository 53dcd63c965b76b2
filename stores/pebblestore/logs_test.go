package pebblestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// heldTables makes no table until release is closed, so that all logs are needed.
type heldTables struct {
	vfs.FS
	release chan struct{}
}

func (h heldTables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if failfs.IsTable(name) {
		<-h.release
	}
	return h.FS.Create(name, c)
}

// killedWithLogs is a store that was killed when it had written several logs.
func killedWithLogs(t *testing.T) (dir string, logs []string) {
	t.Helper()
	live := filepath.Join(t.TempDir(), "live")
	held := heldTables{storedir.Machine(), make(chan struct{})}
	o := small()
	o.fs = held
	db, err := Open(live, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		err = errors.Join(err, db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("job", fmt.Sprint(i, strings.Repeat("x", minMemTableSize*3/4)))}))
	}
	dir = filepath.Join(t.TempDir(), "copy")
	err = errors.Join(err, db.Crawl().Sync(t.Context()), db.CopyKilled(dir))
	close(held.release)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if logs, err = filepath.Glob(filepath.Join(dir, databaseName, "*.log")); err != nil || len(logs) < 3 {
		t.Fatalf("there are too few logs for this test: %v, %v", logs, err)
	}
	return dir, logs
}

// No log of a store that was killed can go, be it the first, the last or one between.
func TestEveryLogIsMissed(t *testing.T) {
	dir, logs := killedWithLogs(t)
	all := func() (files []string) {
		if _, err := Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) { files = append(files, f.File) }}); err != nil {
			t.Fatal(err)
		}
		return files
	}
	if found := all(); len(found) > 0 {
		t.Errorf("of a store that was killed: %v", found)
	}
	for i, log := range logs {
		text, err := os.ReadFile(log)
		if err := errors.Join(err, os.Remove(log)); err != nil {
			t.Fatal(err)
		}
		if found := all(); len(found) != 1 || found[0] != log {
			t.Errorf("without %s verify names %v", log, found)
		}
		db, err := Open(dir, small())
		if err == nil {
			db.Close()
		}
		var damage *crawldb.CorruptError
		if !errors.As(err, &damage) || damage.File != log {
			t.Errorf("without %s it is opened: %v", log, err)
		}
		var lost []string
		if _, err := Salvage(t.Context(), dir, filepath.Join(t.TempDir(), fmt.Sprint(i)), SalvageOptions{Lost: func(l Loss) { lost = append(lost, l.File) }}); err != nil || len(lost) != 1 || lost[0] != log {
			t.Errorf("without %s salvage loses %v, %v", log, lost, err)
		}
		if err := os.WriteFile(log, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	if mark, err := db.Crawl().Mark(t.Context(), "job"); !strings.HasPrefix(mark, "2") || err != nil {
		t.Errorf("the mark is %.9q, %v", mark, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if found := all(); len(found) > 0 {
		t.Errorf("of a store that was closed: %v", found)
	}
	if named, err := filepath.Glob(filepath.Join(dir, databaseName, logcheck.LogsPrefix+"*")); err != nil || len(named) != 1 {
		t.Errorf("%v, %v", named, err)
	}
}
