package pebblestore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// betweenFlushAndIngest is the copy of a store whose host "h" was changed, in the log only,
// after an UpdateAll wrote out what was in memory and before its tables were taken: these
// and what they were compacted with are younger than that change.
func betweenFlushAndIngest(t *testing.T) (dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	live := filepath.Join(t.TempDir(), "live")
	db, err := Open(live, Options{})
	must(err)
	must(db.Close()) // from here on the manifest says which logs it needs
	db, err = Open(live, Options{})
	must(err)
	defer db.Close()
	db.crawl.bulkLeast = 1
	load := func(odd int) {
		b := crawldb.Batch{}
		for i := range 1000 {
			b.URLs = append(b.URLs, fmt.Sprintf("http://h.example/%06d", 2*i+odd))
		}
		b.Next = func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{URL: b.URLs[i], Status: crawldb.Unfetched, Score: 2}, nil
		}
		must(crawldb.UpdateAll(ctx, db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }))
	}
	load(0)
	// Somebody reads, so what is compacted keeps its numbers.
	snapshot := db.db.NewSnapshot()
	defer snapshot.Close()
	must(db.Hosts().Update(ctx, "h", func(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{Homepage: "http://h/"}, nil }))
	db.unflushed.Store(false)
	load(1)
	must(db.db.Compact(ctx, []byte{byte(codec.CrawlTable)}, []byte{byte(codec.CrawlTable) + 1}, false))
	must(db.Crawl().Sync(ctx))
	dir = filepath.Join(t.TempDir(), "copy")
	must(db.CopyKilled(dir))
	return dir
}

// Changes that were logged before tables were ingested are only in the log, and are kept.
func TestSalvageBetweenFlushAndIngest(t *testing.T) {
	dir := betweenFlushAndIngest(t)
	counts, err := sstables.LiveTables(storedir.Machine(), filepath.Join(dir, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	younger := false
	for _, l := range counts {
		younger = younger || l.Smallest != l.Largest
	}
	if !younger {
		t.Error("no table has steps of several numbers, so this is not the case that is meant")
	}
	to := filepath.Join(t.TempDir(), "new")
	if _, err := Salvage(t.Context(), dir, to, SalvageOptions{Lost: func(l Loss) { t.Error(l) }}); err != nil {
		t.Fatal(err)
	}
	db, err := Open(to, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	h, err := db.Hosts().Get(t.Context(), "h")
	if err != nil || h.Homepage != "http://h/" {
		t.Errorf("%+v, %v", h, err)
	}
	if d, err := db.Crawl().Get(t.Context(), "http://h.example/000007"); err != nil || d.Score != 2 {
		t.Errorf("%+v, %v", d, err)
	}
}
