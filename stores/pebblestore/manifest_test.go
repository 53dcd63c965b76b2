package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/verify"
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
		if err := db.Crawl().Update(t.Context(), crawldb.Batch{Job: "job", Cursor: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if err := db.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
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
	if mark, err := db.Crawl().Progress(t.Context(), "job"); mark != "99" || err != nil {
		t.Errorf("the mark is %q, %v", mark, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// killedWithTables is a store that was killed behind several updates that left tables.
func killedWithTables(t *testing.T) (dir, manifest string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		err = errors.Join(err, db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(i*countBatches, i+1, nil)))
	}
	if err != nil {
		t.Fatal(err)
	}
	names := kill(t, db)
	return dir, filepath.Join(dir, databaseName, currentManifest(names))
}

// kill leaves the files of a store as they are, and returns their names.
func kill(t *testing.T, db *DB) []string {
	t.Helper()
	killed := errors.New("killed")
	db.fence.fail(killed)
	if err := db.Close(); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	names, err := machine().List(db.path)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// No change of the manifest of a store that was killed can go, wherever it is cut off.
func TestManifestEndIsMissed(t *testing.T) {
	dir, manifest := killedWithTables(t)
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int
	for at := 0; at < len(text); {
		n, ok := chunk(text[at:], 0)
		if !ok {
			t.Fatalf("the manifest is damaged at %d of %d", at, len(text))
		}
		ends = append(ends, at)
		at += n
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
			if files := found(); !slices.Contains(files, fmt.Sprint(manifest, end)) {
				t.Errorf("up to %d of %d verify names %q", end, len(text), files)
			}
			var lost []string
			to := filepath.Join(t.TempDir(), "salvaged")
			if _, err := Salvage(t.Context(), dir, to, SalvageOptions{Lost: func(l Loss) { lost = append(lost, l.What) }}); err != nil || !slices.Contains(lost, "state") {
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
		if _, err := fmt.Sscanf(filepath.Base(manifest), manifestPrefix+"%d", &number); err != nil {
			t.Fatal(err)
		}
		for n := range 60 {
			name := fmt.Sprintf("%s%06d-%d", syncedPrefix, number+1+n, 1<<20)
			if err := os.WriteFile(filepath.Join(filepath.Dir(manifest), name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		db, err := Open(dir, small())
		if err != nil {
			t.Fatal(err)
		}
		names := kill(t, db)
		manifest = filepath.Join(dir, databaseName, currentManifest(names))
		if info, err := os.Stat(manifest); err != nil || syncedSize(names, filepath.Base(manifest)) != info.Size() {
			t.Errorf("%v, %v of %q", info.Size(), err, names)
		}
	}
}
