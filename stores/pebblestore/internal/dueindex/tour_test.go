package dueindex

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// tourStore has records of unequal hosts, some of them keyed by their URLs.
func tourStore(t *testing.T, n int) (*testStore, []string) {
	t.Helper()
	db := newStore(t)
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
	err := db.tryUpdate(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		d := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: epoch.Add(-time.Hour), Priority: float32(math.Exp(r.NormFloat64()))}
		if i%13 == 0 {
			d.FetchTime = epoch.Add(time.Hour)
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
func limited(t *testing.T, db *testStore, from, most int, each func()) []crawldb.Candidate {
	t.Helper()
	db.TourCost = from
	taken := map[string]int{}
	var all []crawldb.Candidate
	q := crawldb.DueQuery{Now: epoch, WantHost: func(host string) bool { return host == "" || taken[host] < most }}
	for c, err := range db.Due(t.Context(), q) {
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

// A tour yields what a selection without one yields, in the same order.
func TestTourYieldsTheSame(t *testing.T) {
	db, _ := tourStore(t, 6000)
	for _, most := range []int{1, 2, 7, 50} {
		want := limited(t, db, math.MaxInt, most, nil)
		for _, from := range []int{1, 10, 100} {
			if got := limited(t, db, from, most, nil); !slices.Equal(got, want) {
				t.Errorf("limit %d, a tour from %d on: %d candidates, want %d", most, from, len(got), len(want))
			}
		}
	}
	if err := db.checkError(t); err != nil {
		t.Error(err)
	}
}

// Entries that become due while a tour is under way are not missed.
func TestEntriesMoveDuringTour(t *testing.T) {
	db, urls := tourStore(t, 3000)
	n := 0
	got := limited(t, db, 1, 3, func() {
		if n++; n == 100 {
			if err := db.Prepare(t.Context(), epoch.Add(3*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	})
	if want := limited(t, db, math.MaxInt, 3, nil); len(got) < len(want) || len(urls) < len(got) {
		t.Errorf("%d candidates, want %d", len(got), len(want))
	}
	if err := db.checkError(t); err != nil {
		t.Error(err)
	}
}
