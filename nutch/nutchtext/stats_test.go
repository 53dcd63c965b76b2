package nutchtext_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/nutch/nutchtext"
)

func TestStats(t *testing.T) {
	at := time.Date(2026, 1, 5, 8, 0, 30, 0, time.UTC)
	st := crawldb.Stats{
		Total: 5, Asked: []float64{.01, .5}, Statuses: map[crawldb.Status]int{crawldb.Unfetched: 2, crawldb.Fetched: 3}, Retries: map[int]int{0: 2, 2: 1, 10: 2}, NaN: 1,
		HostStatuses: map[string]map[crawldb.Status]int{"b.example": {crawldb.Fetched: 1, crawldb.Unfetched: 2}, "a.example": {crawldb.Fetched: 2}},
		Score:        crawldb.Distribution{Min: float64(float32(.05)), Mean: .25, Max: 1, Quantiles: []float64{0, float64(float32(.05))}}, Interval: crawldb.Distribution{Min: 3661, Mean: 86400.9, Max: 31536001},
		EarliestFetch: at, MeanFetch: at.Truncate(time.Minute), LatestFetch: at.Add(time.Hour),
	}
	const (
		head = "TOTAL urls:\t5\nshortest fetch interval:\t01:01:01\navg fetch interval:\t1 days, 00:00:00\nlongest fetch interval:\t365 days, 00:00:01\n" +
			"earliest fetch time:\tMon Jan 05 08:00:00 UTC 2026\navg of fetch times:\tMon Jan 05 08:00:00 UTC 2026\nlatest fetch time:\tMon Jan 05 09:00:00 UTC 2026\n" +
			"retry 0:\t2\nretry 10:\t2\nretry 2:\t1\nscore == NaN:\t1\nscore quantile 0.01:\t0.0\nscore quantile 0.5:\t0.05000000074505806\nmin score:\t0.05000000074505806\navg score:\t0.25\nmax score:\t1.0\n"
		plain  = "status 1 (db_unfetched):\t2\nstatus 2 (db_fetched):\t3\n"
		sorted = "status 1 (db_unfetched):\t2\n   b.example :\t2\nstatus 2 (db_fetched):\t3\n   a.example :\t2\n   b.example :\t1\n"
	)
	if got := string(nutchtext.AppendStats(nil, &st, false)); got != head+plain {
		t.Errorf("%s\nwant\n%s", got, head+plain)
	}
	if got := string(nutchtext.AppendStats(nil, &st, true)); got != head+sorted {
		t.Errorf("with hosts: %s\nwant\n%s", got, head+sorted)
	}
	if got := string(nutchtext.AppendStats(nil, &crawldb.Stats{}, true)); got != "TOTAL urls:\t0\n" {
		t.Errorf("of nothing: %q", got)
	}
	if got := nutchtext.Float(math.SmallestNonzeroFloat32); got != "1.4E-45" {
		t.Errorf("the floor of Nutch's best score is %s", got)
	}
}

// A third, as in Nutch for three scores of which one is 1, and the mean of a sum that does
// not fit 32 bits.
func TestMeanScore(t *testing.T) {
	for mean, want := range map[float64]string{1. / 3: "0.3333333333333333", 155.398472 / 3: "51.79948933919271"} {
		st := crawldb.Stats{Total: 3, Score: crawldb.Distribution{Mean: mean, Max: 1}}
		if got := string(nutchtext.AppendStats(nil, &st, false)); !strings.Contains(got, "\navg score:\t"+want+"\n") {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}
