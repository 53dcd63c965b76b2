package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/stores/dirstore/dirstoretest"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// The manifest does not grow for as long as a store is open.
func TestManifestIsBegunAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := small()
	o.manifest = 2 << 10
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("job", fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
		if err := db.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// Of the manifest in use, and of the one before.
	if synced, err := filepath.Glob(filepath.Join(dir, databaseName, logcheck.SyncedPrefix+"*")); err != nil || len(synced) > 3 {
		t.Errorf("%q, %v", synced, err)
	}
	manifests, _ := filepath.Glob(filepath.Join(dir, databaseName, "MANIFEST-*"))
	size := int64(0)
	for _, name := range manifests {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	if len(manifests) == 0 || size > 8<<10 {
		t.Errorf("%d bytes in %q", size, manifests)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(dir, o); err != nil {
		t.Fatal(err)
	}
	if mark, err := db.Crawl().Mark(t.Context(), "job"); mark != "99" || err != nil {
		t.Errorf("the mark is %q, %v", mark, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// killedWithTables is a store that was killed behind several updates that left tables. It
// names a log that is not there, as it is not needed.
func killedWithTables(t *testing.T) (dir, manifest string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db, err := Open(dir, small())
	if err == nil {
		err = errors.Join(db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("job", "1")}), db.flush())
	}
	if err != nil {
		t.Fatal(err)
	}
	db.crawl.bulkLeast = 1
	for i := range 3 {
		err = errors.Join(err, db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(i*countBatches, i+1, nil)))
	}
	if err != nil {
		t.Fatal(err)
	}
	names := kill(t, db)
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, logcheck.LogsPrefix) })
	least, err := logcheck.LeastLog(storedir.Machine(), db.path)
	if i < 0 || err != nil || least < 3 {
		t.Fatalf("logs are needed from %d on, %v: %q", least, err, names)
	}
	logs := filepath.Join(db.path, names[i])
	if err := os.Rename(logs, fmt.Sprintf("%s-%06d", logs, least-1)); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, databaseName, logcheck.CurrentManifest(names))
}

// kill leaves the files of a store as they are, and returns their names.
func kill(t *testing.T, db *DB) []string {
	t.Helper()
	killed := errors.New("killed")
	db.fs.Fail(killed)
	if err := db.Close(); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	names, err := storedir.Machine().List(db.path)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// No change of the manifest of a store that was killed can go, wherever it is cut off.
func TestManifestEndIsMissed(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	dir, manifest := killedWithTables(t)
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int
	for at := range len(text) {
		if r, err := logcheck.Read(bytes.NewReader(text[:at]), int64(at), 0); err != nil {
			t.Fatal(err)
		} else if r.End == int64(at) {
			ends = append(ends, at)
		}
	}
	if len(ends) < 4 {
		t.Fatalf("%d changes are too few for this test", len(ends))
	}
	// The records are not those of a crawl, so only findings in files count.
	found := func() (files []string) {
		if _, err := Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) {
			if f.File != "" {
				files = append(files, fmt.Sprint(f.File, f.Offset))
			}
		}}); err != nil {
			t.Error(err)
		}
		return files
	}
	for _, end := range ends {
		for _, filled := range []int{0, len(text) - end} {
			if err := os.WriteFile(manifest, append(bytes.Clone(text[:end]), make([]byte, filled)...), 0o644); err != nil {
				t.Fatal(err)
			}
			var damage *crawldb.CorruptError
			db, err := Open(dir, small())
			if err == nil {
				db.Close()
			}
			if !errors.Is(err, ErrDamaged) || !errors.As(err, &damage) || damage.File != manifest || damage.Offset != int64(end) {
				t.Fatalf("up to %d of %d it is opened: %v", end, len(text), err)
			}
			files := found()
			// Opening reports it, too.
			if files = slices.Compact(files); len(files) != 1 || files[0] != fmt.Sprint(manifest, end) {
				t.Errorf("up to %d of %d verify names %q", end, len(text), files)
			}
			var lost []string
			to := filepath.Join(t.TempDir(), "salvaged")
			if _, err := Salvage(t.Context(), dir, to, SalvageOptions{Lost: func(l Loss) { lost = append(lost, l.What) }}); err != nil || !slices.Equal(lost, []string{"state"}) {
				t.Errorf("up to %d of %d salvage loses %q, %v", end, len(text), lost, err)
			}
			if db, err = Open(to, small()); err != nil {
				t.Fatal(err)
			}
			if n := checkCounted(t, db); n != 3*countBatches {
				t.Errorf("up to %d of %d salvage keeps %d updates", end, len(text), n)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(manifest, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if files := found(); len(files) > 0 {
		t.Errorf("of the whole store verify names %q", files)
	}
}

// A manifest that a crash left unfinished says nothing of the next one of its number.
func TestUnfinishedManifestIsForgotten(t *testing.T) {
	dir, manifest := killedWithTables(t)
	for range 3 {
		var number int
		if _, err := fmt.Sscanf(filepath.Base(manifest), logcheck.ManifestPrefix+"%d", &number); err != nil {
			t.Fatal(err)
		}
		for n := range 60 {
			name := fmt.Sprintf("%s%06d-%d", logcheck.SyncedPrefix, number+1+n, 1<<20)
			if err := os.WriteFile(filepath.Join(filepath.Dir(manifest), name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		db, err := Open(dir, small())
		if err != nil {
			t.Fatal(err)
		}
		names := kill(t, db)
		manifest = filepath.Join(dir, databaseName, logcheck.CurrentManifest(names))
		if n := len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, logcheck.SyncedPrefix) })); n > 2 {
			t.Errorf("there are %d names in %q", n, names)
		}
		if info, err := os.Stat(manifest); err != nil || logcheck.SyncedSize(names, filepath.Base(manifest)) != info.Size() {
			t.Errorf("%v, %v of %q", info.Size(), err, names)
		}
	}
}

// A compaction gives room when its change of the manifest is durable, and does not wait for it
// then.
func TestManifestIsNamedWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := dirstoretest.NewDisk()
		disk.Resize(1 << 30)
		var armed, full atomic.Bool
		disk.OnOp = func(op dirstoretest.Op) error {
			// All that the compaction writes is there, and others take the rest.
			if op.Kind == dirstoretest.Sync && strings.HasPrefix(path.Base(op.Name), logcheck.ManifestPrefix) && armed.CompareAndSwap(true, false) {
				used, _ := disk.Usage()
				disk.Resize(used)
				full.Store(true)
			}
			return nil
		}
		o := onDisk(small(), disk)
		o.manifest, o.MinFree = 0, 1
		db, err := Open(memPath, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		// The engine may have compacted all before Compact does.
		for try := 0; try < 10 && !full.Load(); try++ {
			armed.Store(false)
			for i := 2 * try; i < 2*try+2; i++ {
				for b := range counting(i*countBatches, i+1, nil) {
					if err := db.Crawl().Update(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
				if err := db.flush(); err != nil {
					t.Fatal(err)
				}
			}
			armed.Store(true)
			if err := db.Compact(ctx); err != nil {
				t.Error(err)
			}
		}
		if !full.Load() {
			t.Error("the disk was never full")
		}
		disk.Resize(1 << 30)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}
