package nutchtext

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// AppendStats appends what readdb -stats says about a crawl db, in Nutch's order,
// from the line "TOTAL urls:" on. With hosts each status is followed by its hosts,
// as with -sort.
//
// A few things that Nutch gets wrong are correct here: it says that the best score
// of a db without scores is 1.4E-45, sums averages in 32 bits and counts NaN
// scores in them, and its quantiles are approximate.
func AppendStats(b []byte, st *crawldb.Stats, hosts bool) []byte {
	line := func(format string, args ...any) { b = fmt.Appendf(b, format+"\n", args...) }
	line("TOTAL urls:\t%d", st.Total)
	if st.Total == 0 {
		return b
	}
	line("shortest fetch interval:\t%s", DaysHMS(int64(st.Interval.Min)))
	line("avg fetch interval:\t%s", DaysHMS(int64(st.Interval.Mean)))
	line("longest fetch interval:\t%s", DaysHMS(int64(st.Interval.Max)))
	line("earliest fetch time:\t%s", date(st.EarliestFetch.Truncate(time.Minute)))
	line("avg of fetch times:\t%s", date(st.MeanFetch))
	line("latest fetch time:\t%s", date(st.LatestFetch.Truncate(time.Minute)))
	// The keys are in the order of texts: retry 10 is before retry 2.
	for _, r := range slices.SortedFunc(maps.Keys(st.Retries), func(a, b int) int { return slices.Compare([]byte(strconv.Itoa(a)), []byte(strconv.Itoa(b))) }) {
		line("retry %d:\t%d", r, st.Retries[r])
	}
	if st.NaN > 0 {
		line("score == NaN:\t%d", st.NaN)
	}
	for i, q := range st.Score.Quantiles {
		line("score quantile %s:\t%s", double(st.Asked[i]), double(q))
	}
	line("min score:\t%s", double(float64(float32(st.Score.Min))))
	mean := st.Score.Mean
	if n := float64(st.Total - st.NaN); n > 0 { // the sum has 32 bits, the mean 64
		mean = float64(float32(mean*n)) / n
	}
	line("avg score:\t%s", double(mean))
	line("max score:\t%s", double(float64(float32(st.Score.Max))))
	for _, s := range crawldb.Statuses() {
		if st.Statuses[s] == 0 {
			continue
		}
		line("status %d (%s):\t%d", s, s, st.Statuses[s])
		if !hosts {
			continue
		}
		for _, h := range slices.Sorted(maps.Keys(st.HostStatuses)) {
			if n := st.HostStatuses[h][s]; n > 0 {
				line("   %s :\t%d", h, n)
			}
		}
	}
	return b
}

// DaysHMS returns seconds as Nutch shows intervals: "30 days, 00:00:00", or
// "01:30:00" if it is less than a day.
func DaysHMS(seconds int64) string {
	s := fmt.Sprintf("%02d:%02d:%02d", seconds/3600%24, seconds/60%60, seconds%60)
	if days := seconds / 86400; days > 0 {
		s = strconv.FormatInt(days, 10) + " days, " + s
	}
	return s
}
