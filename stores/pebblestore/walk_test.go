package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
)

// An update finds what Get finds, wherever its URLs lie: side by side, far apart, now
// the one and now the other, and some that are not there.
func TestUpdateReadsTheRecordsOfGet(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shortSteps(db, 1)
	ctx := t.Context()
	const n = 6000
	url := func(i int) string { return fmt.Sprintf("http://h%02d.example/%05d", i/500, i) }
	r := rand.New(rand.NewPCG(1, 2))
	one := func(b crawldb.Batch) func(func(crawldb.Batch, error) bool) {
		return func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }
	}
	// Odd ones are not there. Tables of UpdateAll and of memtables lie above one another.
	for round := range 6 {
		var urls []string
		for i := 0; i < n; i += 2 {
			if round == 0 || r.IntN(3) == 0 {
				urls = append(urls, url(i))
			}
		}
		b := crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if round == 4 && i%5 == 0 {
				return nil, nil
			}
			return &crawldb.Datum{Retries: round, Score: r.Float32(), Priority: r.Float32()}, nil
		}}
		if round%3 == 2 {
			err = db.Crawl().Update(ctx, b)
		} else {
			err = crawldb.UpdateAll(ctx, db.Crawl(), one(b))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for trial := range 60 {
		// With few keys, as if they lay far apart and as they lie.
		db.crawl.farKeys, db.crawl.farBytes = 2, uint64(trial%2)*farBytes
		var at []int
		for i := r.IntN(50); i < n; {
			at = append(at, i)
			if trial%3 == 2 && len(at)/40%2 == 0 {
				i++
			} else {
				i += 1 + r.IntN([]int{2, 20, 200}[trial%3])
			}
		}
		var urls []string
		for _, i := range at {
			urls = append(urls, url(i))
		}
		got := make([]*crawldb.Datum, len(urls))
		err := db.Crawl().Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old != nil {
				d := *old
				got[i] = &d
			}
			return old, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i, u := range urls {
			want, err := db.Crawl().Get(ctx, u)
			if (err != nil) != (got[i] == nil) || err != nil && !errors.Is(err, crawldb.ErrNotFound) || err == nil && !reflect.DeepEqual(want, *got[i]) {
				t.Fatalf("trial %d: %s: update found %+v, Get %+v, %v", trial, u, got[i], want, err)
			}
		}
		// A key that comes too late is out of order, and is not looked up.
		if len(urls) > 20 {
			wrong := slices.Clone(urls)
			wrong[len(wrong)/2] = url(n + trial)
			if err := db.Crawl().Update(ctx, crawldb.Batch{URLs: wrong, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) { return old, nil }}); !errors.Is(err, crawldb.ErrOrder) {
				t.Fatalf("trial %d: out of order: %v", trial, err)
			}
		}
	}
}
