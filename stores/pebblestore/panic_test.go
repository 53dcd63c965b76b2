package pebblestore_test

import (
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// TestPanicOfTheCaller checks that after a caller has panicked in the middle of an update, and
// recovered, the store is without it: the next update gets its turn, and Close does not hang.
func TestPanicOfTheCaller(t *testing.T) {
	db, err := pebblestore.Open(t.TempDir()+"/db", pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	recovered := func(f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		f()
	}
	batch := func(at int) crawldb.Batch {
		return crawldb.Batch{URLs: []string{"http://a.test/", "http://b.test/"}, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			if i == at {
				panic("a fault of the caller")
			}
			return &crawldb.Datum{Status: crawldb.Unfetched}, nil
		}}
	}
	recovered(func() { _ = db.Crawl().Update(t.Context(), batch(1)) })
	recovered(func() {
		_ = db.Hosts().Update(t.Context(), "a.test", func(*hostdb.Host) (*hostdb.Host, error) { panic("a fault of the caller") })
	})
	for d := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		t.Errorf("%s was kept", d.URL)
	}
	recovered(func() {
		if err := db.Crawl().Update(t.Context(), batch(-1)); err != nil {
			t.Fatal(err)
		}
		for range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			panic("a fault of the caller")
		}
	})
	if err := db.Hosts().Update(t.Context(), "a.test", func(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{Name: "a.test"}, nil }); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
