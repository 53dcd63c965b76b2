package pebblestore

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// tourStore has records of unequal hosts, some of them keyed by their URLs.
func tourStore(t *testing.T, n int) (*DB, []string) {
	t.Helper()
	db := leaseStore(t)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var urls []string
	for i := range n {
		host := int(math.Exp(r.Float64() * math.Log(60)))
		switch url := fmt.Sprintf("http://h%d.example/%d", host, i); i % 11 {
		case 0:
			urls = append(urls, fmt.Sprintf("http://user@h%d.example/%d", host, i))
		case 1:
			urls = append(urls, fmt.Sprintf("http://h%d.example:81/%d", host, i))
		case 2:
			urls = append(urls, fmt.Sprintf("about:%d", i))
		case 3:
			urls = append(urls, fmt.Sprintf("https://[::%d]/%d", host, i))
		default:
			urls = append(urls, url)
		}
	}
	slices.SortFunc(urls, crawldb.Compare)
	err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		d := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch.Add(-time.Hour), Priority: float32(math.Exp(r.NormFloat64()))}
		if i%13 == 0 {
			d.FetchTime = dueEpoch.Add(time.Hour)
		}
		return &d, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return db, urls
}

// limited returns the candidates with at most most of a host, with a tour once so
// much was spent on passing.
func limited(t *testing.T, db *DB, from, most int, each func()) []crawldb.Candidate {
	t.Helper()
	db.crawl.due.tour = from
	taken := map[string]int{}
	var all []crawldb.Candidate
	q := crawldb.DueQuery{Now: dueEpoch, WantHost: func(host string) bool { return host == "" || taken[host] < most }}
	for c, err := range db.crawl.Due(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		taken[crawldb.Host(c.URL)]++
		all = append(all, c)
		if each != nil {
			each()
		}
	}
	return all
}

// A tour shows what passing shows, in the same order.
func TestTourShowsWhatPassingShows(t *testing.T) {
	db, _ := tourStore(t, 6000)
	for _, most := range []int{1, 2, 7, 50} {
		want := limited(t, db, math.MaxInt, most, nil)
		for _, from := range []int{1, 10, 100} {
			if got := limited(t, db, from, most, nil); !slices.Equal(got, want) {
				t.Errorf("limit %d, a tour from %d on: %d candidates, want %d", most, from, len(got), len(want))
			}
		}
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
}

// Entries that become due while a tour is under way are not missed.
func TestTourWhileEntriesMove(t *testing.T) {
	db, urls := tourStore(t, 3000)
	n := 0
	got := limited(t, db, 1, 3, func() {
		if n++; n == 100 {
			if err := db.crawl.prepare(t.Context(), dueEpoch.Add(3*time.Hour).UnixMilli()); err != nil {
				t.Fatal(err)
			}
		}
	})
	if want := limited(t, db, math.MaxInt, 3, nil); len(got) < len(want) || len(urls) < len(got) {
		t.Errorf("%d candidates, want %d", len(got), len(want))
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
}

// The tallies follow whatever happens to records, and what the engine does with them.
func TestTalliesFollow(t *testing.T) {
	db, urls := tourStore(t, 2000)
	r := rand.New(rand.NewPCG(3, 3))
	now := dueEpoch
	for round := range 6 {
		var some []string
		for _, u := range urls {
			if r.IntN(3) == 0 {
				some = append(some, u)
			}
		}
		err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: some, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			d := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: now.Add(time.Duration(r.IntN(9)-4) * time.Hour), Priority: r.Float32()}
			switch r.IntN(6) {
			case 0:
				return nil, nil
			case 1:
				d.LeasedUntil = now.Add(5 * time.Hour)
			}
			return &d, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
		if err := db.crawl.prepare(t.Context(), now.UnixMilli()); err != nil {
			t.Fatal(err)
		}
		if round%2 == 1 {
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	db.crawl.due.late.Store(true) // built anew
	if err := db.crawl.prepare(t.Context(), now.UnixMilli()); err != nil {
		t.Fatal(err)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCheckIndexFindsTallies(t *testing.T) {
	one := tally{{level(1), 1}}
	for _, test := range []struct {
		name, group string
		value       []byte
	}{
		{"of nobody", "com,example)", one.append(nil)},
		{"one too many", "example,a)", tally{{level(1), 2}}.append(nil)},
		{"of another level", "example,a)", tally{{level(9), 1}}.append(nil)},
		{"damaged", "example,a)", []byte{0xff}},
		{"none", "example,a)", nil},
	} {
		db := leaseStore(t)
		put(t, db, "http://a.example/1", func(*crawldb.Datum) *crawldb.Datum {
			return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch, Priority: 1}
		})
		if err := db.crawl.prepare(t.Context(), dueEpoch.Add(2*time.Hour).UnixMilli()); err != nil {
			t.Fatal(err)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := db.db.Set(codec.TallyTable.Key(test.group), test.value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if err := db.CheckIndex(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func FuzzTally(f *testing.F) {
	f.Add([]byte{})
	f.Add(tally{{3, 7}, {lastLevel, -1}}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a, again tally
		if a.addFrom(b) != nil {
			return
		}
		if err := again.addFrom(a.append(nil)); err != nil || !slices.Equal(a, again) {
			t.Errorf("%v, %v, %v", a, again, err)
		}
	})
}
