package pebblestore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// The inlinks of a page lie in several tables and in the log, and all of them count,
// whether or not there is a manifest.
func TestSalvageOfLinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const pages = 3000
	for round, size := range []int{pages, pages, 10, 10} { // tables, then the log
		var entries []linkdb.Entry
		for i := range size {
			e := linkdb.Entry{URL: fmt.Sprintf("http://h.example/%06d", i)}
			for k := range 4 {
				e.Inlinks = append(e.Inlinks, linkdb.Inlink{From: fmt.Sprintf("http://h.example/and/a/long/path/that/is/of/the/page/%06d/%02d", i, 3*round+k), Anchor: fmt.Sprint(round)})
			}
			entries = append(entries, e)
		}
		if err := db.Links().Merge(t.Context(), entries, 14); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	links := func(db *pebblestore.DB) map[string][]linkdb.Inlink {
		all := map[string][]linkdb.Inlink{}
		for e, err := range db.Links().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			all[e.URL] = e.Inlinks
		}
		return all
	}
	want := links(db)
	if a, b := want["http://h.example/000000"], want["http://h.example/000020"]; len(a) != 14 || len(b) != 8 {
		t.Fatalf("%d and %d inlinks", len(a), len(b))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got, losses, r := salvaged(t, dir)
	if again := links(got); !reflect.DeepEqual(again, want) || len(losses) > 0 || r.Targets != pages {
		t.Errorf("%d pages of %d, %v", len(again), len(want), losses)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "db", "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, name := range manifests {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	got, losses, _ = salvaged(t, dir)
	// A bound may have been exceeded by what had been left out.
	all := links(got)
	for url, list := range want {
		if again := linkdb.Union(nil, all[url], 14); !reflect.DeepEqual(again, list) {
			t.Fatalf("%s has %v and had %v", url, again, list)
		}
	}
	if len(losses) == 0 {
		t.Error("the loss of the manifest is not reported")
	}
}
