package crawldb

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// Stats says what a crawl db holds.
type Stats struct {
	// Total counts the records; Due those whose fetch time has come, Leased those
	// that a segment has.
	Total, Due, Leased int
	// Statuses, Retries and Hosts count the records by status, by the number of
	// failures in a row, and by host.
	Statuses map[Status]int
	Retries  map[int]int
	Hosts    map[string]int
	// HostStatuses counts the records of a host by status.
	HostStatuses map[string]map[Status]int
	// Score, in score, and Interval, in seconds, are distributions over the
	// records; a score that is not a number counts only in NaN.
	Score, Interval Distribution
	NaN             int
	// EarliestFetch and LatestFetch are the first and last fetch time.
	EarliestFetch, LatestFetch time.Time
}

// Distribution describes numbers by their extremes, mean and quantiles.
type Distribution struct {
	Min, Mean, Max float64
	// Quantiles are exact, in the order of [StatsQuantiles].
	Quantiles []float64
}

// StatsQuantiles returns the quantiles that a [Distribution] has. (Nutch:
// db.stats.score.quantiles.)
func StatsQuantiles() []float64 {
	return []float64{.01, .05, .1, .2, .25, .3, .4, .5, .6, .7, .75, .8, .9, .95, .99}
}

// ReadStats reads all records once. It holds eight bytes for each of them.
func ReadStats(ctx context.Context, s Store, now time.Time) (Stats, error) {
	st := Stats{Statuses: map[Status]int{}, Retries: map[int]int{}, Hosts: map[string]int{}, HostStatuses: map[string]map[Status]int{}}
	var scores, intervals []float32
	for d, err := range s.Scan(ctx, Range{}) {
		if err != nil {
			return Stats{}, err
		}
		st.Total++
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
		intervals = append(intervals, float32(d.Interval/time.Second))
		if st.EarliestFetch.IsZero() || d.FetchTime.Before(st.EarliestFetch) {
			st.EarliestFetch = d.FetchTime
		}
		if d.FetchTime.After(st.LatestFetch) {
			st.LatestFetch = d.FetchTime
		}
	}
	st.Score, st.Interval = distribution(scores), distribution(intervals)
	return st, nil
}

func distribution(v []float32) Distribution {
	if len(v) == 0 {
		return Distribution{}
	}
	slices.SortFunc(v, cmp.Compare)
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
	}
	d := Distribution{Min: float64(v[0]), Mean: sum / float64(len(v)), Max: float64(v[len(v)-1])}
	for _, q := range StatsQuantiles() {
		d.Quantiles = append(d.Quantiles, float64(v[int(q*float64(len(v)-1)+.5)]))
	}
	return d
}
