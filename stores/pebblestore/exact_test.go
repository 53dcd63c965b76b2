package pebblestore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// bare hides the index of a store.
type bare struct{ crawldb.Store }

// TestSelectionIsTheScans generates round after round from two stores with the same records,
// from the index of one and by scanning the other, with options of all kinds and a clock that
// jumps: the lists are the same, and so are the stores afterwards.
func TestSelectionIsTheScans(t *testing.T) {
	testlevel.SkipInRace(t)
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		var urls []string
		for i := range 400 {
			urls = append(urls, fmt.Sprintf("http://h%d.example/%03d", r.IntN(1+i/7)%40, i))
		}
		slices.SortFunc(urls, crawldb.Compare)
		now := dueEpoch
		var sides [2]struct {
			db       *DB
			crawl    crawldb.Store
			segments memstore.Segments
		}
		data := make([]crawldb.Datum, len(urls))
		for i := range data {
			data[i] = randomDue(r, crawldb.Datum{Interval: time.Duration(r.IntN(200)) * time.Hour}, now)
			if r.IntN(3) > 0 {
				data[i].Priority = float32(math.Exp(r.NormFloat64()))
			}
		}
		for i := range sides {
			db, err := Open(t.TempDir(), small())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			sides[i].db, sides[i].crawl = db, db.Crawl()
			if i == 1 {
				sides[i].crawl = bare{db.Crawl()}
			}
			if err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }}); err != nil {
				t.Fatal(err)
			}
		}
		for round := range 8 {
			o := generate.Options{TopN: r.IntN(60), MaxPerHost: r.IntN(5), Segments: r.IntN(3), Now: func() time.Time { return now }}
			if r.IntN(3) == 0 {
				o.MinScore = float32(r.IntN(3)) - 0.5
			}
			if r.IntN(4) == 0 {
				o.Ahead = time.Duration(r.IntN(60)) * time.Hour
			}
			if r.IntN(5) == 0 {
				o.Status = crawldb.Unfetched
			}
			if r.IntN(5) == 0 {
				o.Where = func(d *crawldb.Datum) (bool, error) { return d.Retries > 0, nil }
			}
			var lists [2][][]string
			for i := range sides {
				s := &sides[i]
				rep, err := generate.Run(t.Context(), s.crawl, &s.segments, o)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range rep.Segments {
					var list []string
					for d, err := range segment.Records[crawldb.Datum](t.Context(), &s.segments, name) {
						if err != nil {
							t.Fatal(err)
						}
						list = append(list, d.URL)
					}
					lists[i] = append(lists[i], list)
					visitAll(t, s.crawl, slices.Sorted(slices.Values(list)), now, uint64(round))
				}
				if err := s.db.CheckIndex(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.EqualFunc(lists[0], lists[1], slices.Equal) {
				t.Fatalf("seed %d, round %d, %+v:\nby the index %v\nby scanning %v", seed, round, o, lists[0], lists[1])
			}
			now = now.Add(time.Duration(r.IntN(90)-20) * time.Hour)
		}
	}
}

// visitAll does to two in three of the URLs what an update does; the rest stay leased.
func visitAll(t *testing.T, crawl crawldb.Store, urls []string, now time.Time, round uint64) {
	t.Helper()
	slices.SortFunc(urls, crawldb.Compare)
	err := crawl.Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		r := rand.New(rand.NewPCG(round, uint64(len(urls[i]))+uint64(i)))
		d := *old
		if r.IntN(3) == 0 {
			return old, nil
		}
		d.Status, d.LastFetch, d.LeasedUntil, d.LeasedBy = crawldb.Fetched, now, time.Time{}, ""
		d.FetchTime = now.Add(time.Duration(r.IntN(100)) * time.Hour)
		d.Priority *= 0.5 + r.Float32()
		return &d, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}
