package crawldb_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

func TestReadStats(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	day := 24 * time.Hour
	s := storeOf(t,
		crawldb.Datum{URL: "http://a.example/", Status: crawldb.Fetched, FetchTime: at(90 * time.Second), Interval: day, Score: 1},
		crawldb.Datum{URL: "http://a.example/1", Status: crawldb.Unfetched, FetchTime: at(0), Interval: 30 * day, Score: -2, Retries: 2},
		crawldb.Datum{URL: "http://b.example/", Status: crawldb.Unfetched, FetchTime: at(-time.Minute), Interval: 30 * day, Score: float32(math.NaN()), LeasedUntil: at(day), LeasedBy: "x"},
		crawldb.Datum{URL: "https://b.example/", Status: crawldb.Gone, FetchTime: at(30 * day), Interval: 365*day + time.Second, Score: 0.5},
	)
	st, err := crawldb.ReadStats(t.Context(), s, now, 0, .25, .34, .5, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := crawldb.Stats{
		Total: 4, Due: 1, Leased: 1, NaN: 1, Asked: []float64{0, .25, .34, .5, 1},
		Statuses: map[crawldb.Status]int{crawldb.Fetched: 1, crawldb.Unfetched: 2, crawldb.Gone: 1}, Retries: map[int]int{0: 3, 2: 1},
		Hosts: map[string]int{"a.example": 2, "b.example": 2},
		HostStatuses: map[string]map[crawldb.Status]int{
			"a.example": {crawldb.Fetched: 1, crawldb.Unfetched: 1}, "b.example": {crawldb.Unfetched: 1, crawldb.Gone: 1},
		},
		Score:         crawldb.Distribution{Min: -2, Mean: -.5 / 3, Max: 1, Quantiles: []float64{-2, -2, .5, .5, 1}},
		Interval:      crawldb.Distribution{Min: 86400, Mean: 106.5*86400 + .25, Max: 365*86400 + 1, Quantiles: []float64{86400, 30 * 86400, 30 * 86400, 30 * 86400, 365*86400 + 1}},
		EarliestFetch: at(-time.Minute), LatestFetch: at(30 * day), MeanFetch: at(30 * day / 4),
	}
	if !reflect.DeepEqual(st, want) {
		t.Errorf("stats are\n%+v, want\n%+v", st, want)
	}
}

// The maximum of a db whose scores are zero, or below, is what it is. (Nutch has
// 1.4E-45.)
func TestStatsOfScores(t *testing.T) {
	for _, test := range []struct {
		scores         []float32
		min, mean, max float64
	}{
		{nil, 0, 0, 0},
		{[]float32{0, 0}, 0, 0, 0},
		{[]float32{-2, -1}, -2, -1.5, -1},
		{[]float32{1e8, 1, 1, 1, 1}, 1, 20000000.8, 1e8}, // a float32 sum stays 1e8
	} {
		var records []crawldb.Datum
		for i, score := range test.scores {
			records = append(records, crawldb.Datum{URL: fmt.Sprint("http://a.example/", i), Score: score})
		}
		st, err := crawldb.ReadStats(t.Context(), storeOf(t, records...), time.Time{})
		if err != nil || st.Score.Min != test.min || st.Score.Mean != test.mean || st.Score.Max != test.max {
			t.Errorf("%v: %+v, %v", test.scores, st.Score, err)
		}
		if got := len(st.Asked); got != 15 || len(test.scores) > 0 && len(st.Score.Quantiles) != got {
			t.Errorf("%v: %d quantiles of %d", test.scores, len(st.Score.Quantiles), got)
		}
	}
}

func TestStatsErrors(t *testing.T) {
	s := storeOf(t, crawldb.Datum{URL: "http://a.example/"})
	for _, q := range []float64{-.1, 1.1, math.NaN(), math.Inf(1)} {
		if _, err := crawldb.ReadStats(t.Context(), s, time.Time{}, .5, q); err == nil {
			t.Errorf("%v is taken for a quantile", q)
		}
	}
	if _, err := crawldb.ReadStats(t.Context(), &breaking{s, 0}, time.Time{}); !errors.Is(err, errBroken) {
		t.Errorf("a store that fails: %v", err)
	}
}
