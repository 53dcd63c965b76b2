package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Percentiles describe the distribution of durations. P50 is the median: half of the
// durations are no longer. They are accurate to 1/32, 3.1 %, and zero for those under
// a second; Max is exact.
type Percentiles struct{ P10, P50, P90, P99, Max time.Duration }

// buckets count durations: those under a second in the first, and then sixteen buckets per
// doubling, added as needed. The counts do not depend on the order.
type buckets struct {
	counts []count
	max    time.Duration
}

type count struct{ bucket, n uint32 }

// bucketOf returns the bucket of a time: exponent and first four digits of its seconds.
func bucketOf(d time.Duration) uint32 {
	if d < time.Second {
		return 0
	}
	return uint32(math.Float64bits(d.Seconds())>>48) - 0x3ff0 + 1
}

// middle returns a time in the middle of a bucket.
func middle(bucket uint32) time.Duration {
	if bucket == 0 {
		return 0
	}
	bucket--
	return fromSeconds(math.Ldexp(1+(float64(bucket&15)+0.5)/16, int(bucket>>4)))
}

// fromSeconds converts a number of seconds to a Duration, or to the longest one.
func fromSeconds(s float64) time.Duration {
	if s >= math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}

// add counts a time n times.
func (b *buckets) add(d time.Duration, n uint32) {
	b.max = max(b.max, d)
	b.count(bucketOf(d), n)
}

func (b *buckets) count(bucket, n uint32) {
	i, ok := slices.BinarySearchFunc(b.counts, bucket, func(c count, bucket uint32) int { return cmp.Compare(c.bucket, bucket) })
	if ok {
		b.counts[i].n += min(n, math.MaxUint32-b.counts[i].n)
		return
	}
	b.counts = slices.Insert(b.counts, i, count{bucket, n})
}

func (b *buckets) addAll(o *buckets) {
	for _, c := range o.counts {
		b.count(c.bucket, c.n)
	}
	b.max = max(b.max, o.max)
}

// percentiles reads the percentiles off: of n times in ascending order, that of q is the
// one at floor(q·n), as in crawldb.Distribution.
func (b *buckets) percentiles() Percentiles {
	total := uint64(0)
	for _, c := range b.counts {
		total += uint64(c.n)
	}
	at := func(percent uint64) time.Duration {
		rank, seen := total*percent/100, uint64(0)
		for _, c := range b.counts {
			if seen += uint64(c.n); seen > rank {
				return min(middle(c.bucket), b.max)
			}
		}
		return 0
	}
	return Percentiles{at(10), at(50), at(90), at(99), b.max}
}
