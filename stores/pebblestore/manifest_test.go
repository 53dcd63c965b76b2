package pebblestore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
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
