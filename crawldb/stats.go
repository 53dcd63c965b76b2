package crawldb

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Stats summarizes what a crawl db holds.
type Stats struct {
	// Total counts the records; Due those whose fetch time has come, Leased those
	// that a segment has.
	Total, Due, Leased int
	// Sitemaps counts the records of sitemaps, which the other figures include.
	Sitemaps int
	// Statuses, Retries and Hosts count the records by status, by the number of
	// failures in a row, and by host.
	Statuses map[Status]int
	Retries  map[int]int
	Hosts    map[string]int
	// HostStatuses counts the records of a host by status.
	HostStatuses map[string]map[Status]int
	// Score, and Interval in seconds, are distributions over the records; a
	// score that is not a number counts only in NaN.
	Score, Interval Distribution
	NaN             int
	// Asked lists the quantiles that the distributions have.
	Asked []float64
	// EarliestFetch and LatestFetch are the first and last fetch time.
	EarliestFetch, LatestFetch time.Time
	// MeanFetch is the mean of the fetch times; each of them, and the mean too,
	// is rounded down to the minute, as Nutch does.
	MeanFetch time.Time
}

// Distribution describes numbers by their extremes, mean and quantiles.
type Distribution struct {
	Min, Mean, Max float64
	// Quantiles are exact, in the order of Stats.Asked: of n values in ascending
	// order the quantile q is the one at floor(q·n), counted from zero, or the last.
	// (Nutch's t-digest gives the same result while it still holds every value
	// separately.)
	Quantiles []float64
}

// ReadStats reads all records once. It holds eight bytes for each of them. The
// quantiles, from 0 to 1, apply to scores and intervals; without any they are
// .01, .05, .1, .2, .25, .3, .4, .5, .6, .7, .75, .8, .9, .95 and .99. (Nutch:
// db.stats.score.quantiles.)
func ReadStats(ctx context.Context, s Store, now time.Time, quantiles ...float64) (Stats, error) {
	for _, q := range quantiles {
		if !(q >= 0 && q <= 1) {
			return Stats{}, fmt.Errorf("crawldb: quantile %v is not between 0 and 1", q)
		}
	}
	if len(quantiles) == 0 {
		quantiles = []float64{.01, .05, .1, .2, .25, .3, .4, .5, .6, .7, .75, .8, .9, .95, .99}
	}
	st := Stats{Asked: quantiles, Statuses: map[Status]int{}, Retries: map[int]int{}, Hosts: map[string]int{}, HostStatuses: map[string]map[Status]int{}}
	var scores []float32
	var intervals []uint32
	minutes := int64(0)
	for d, err := range s.Scan(ctx, Range{}) {
		if err != nil {
			return Stats{}, err
		}
		st.Total++
		if _, marked := SitemapOf(d.Meta); marked {
			st.Sitemaps++
		}
		st.Statuses[d.Status]++
		st.Retries[d.Retries]++
		host := Host(d.URL)
		st.Hosts[host]++
		if st.HostStatuses[host] == nil {
			st.HostStatuses[host] = map[Status]int{}
		}
		st.HostStatuses[host][d.Status]++
		switch {
		case d.Leased(now):
			st.Leased++
		case !d.FetchTime.After(now):
			st.Due++
		}
		if math.IsNaN(float64(d.Score)) {
			st.NaN++
		} else {
			scores = append(scores, d.Score)
		}
		intervals = append(intervals, uint32(max(0, min(d.Interval/time.Second, math.MaxUint32))))
		minutes += d.FetchTime.Unix() / 60
		if st.EarliestFetch.IsZero() || d.FetchTime.Before(st.EarliestFetch) {
			st.EarliestFetch = d.FetchTime
		}
		if d.FetchTime.After(st.LatestFetch) {
			st.LatestFetch = d.FetchTime
		}
	}
	if st.Total > 0 {
		st.MeanFetch = time.Unix(minutes/int64(st.Total)*60, 0).UTC()
	}
	st.Score, st.Interval = distribution(scores, quantiles), distribution(intervals, quantiles)
	return st, nil
}

func distribution[T float32 | uint32](v []T, quantiles []float64) Distribution {
	if len(v) == 0 {
		return Distribution{}
	}
	slices.SortFunc(v, cmp.Compare)
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
	}
	d := Distribution{Min: float64(v[0]), Mean: sum / float64(len(v)), Max: float64(v[len(v)-1])}
	for _, q := range quantiles {
		d.Quantiles = append(d.Quantiles, float64(v[min(int(q*float64(len(v))), len(v)-1)]))
	}
	return d
}
