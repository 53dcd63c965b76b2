package fetch

import (
	"math"
	"time"
)

// Latency says how long the visits took. (Nutch: fetch_latency_count_total,
// _sum_ms, _p50_ms, _p95_ms, _p99_ms.)
type Latency struct {
	// Count is the number of visits, Sum how long they took in total, and Max the
	// longest.
	Count    int
	Sum, Max time.Duration

	buckets []int // by bucket
}

// A bucket is an eighth of a power of two of microseconds wide.
const bucketBits = 3

func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 1<<bucketBits {
		return int(us)
	}
	e := math.Ilogb(float64(us)) - bucketBits
	return e<<bucketBits + int(us>>e)
}

// longest returns the longest time in a bucket.
func longest(b int) time.Duration {
	if b < 1<<bucketBits {
		return time.Duration(b) * time.Microsecond
	}
	e := b>>bucketBits - 1
	return time.Duration((uint64(b&(1<<bucketBits-1)|1<<bucketBits)+1)<<e-1) * time.Microsecond
}

func (l *Latency) add(d time.Duration) {
	l.Count++
	l.Sum += d
	l.Max = max(l.Max, d)
	b := bucket(d)
	for len(l.buckets) <= b {
		l.buckets = append(l.buckets, 0)
	}
	l.buckets[b]++
}

// Quantile returns the time within which the fraction q of the visits, such as
// 0.95, was over. It is at most an eighth too long, and zero if there were no
// visits.
func (l *Latency) Quantile(q float64) time.Duration {
	rest := q * float64(l.Count)
	for b, n := range l.buckets {
		if rest -= float64(n); n > 0 && rest <= 0 {
			return min(longest(b), l.Max)
		}
	}
	return l.Max
}
