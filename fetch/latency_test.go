package fetch

import (
	"math"
	"testing"
	"time"
)

func TestLatencyBuckets(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 400*24*time.Hour; d += d/97 + 501*time.Nanosecond {
		b := bucket(d)
		most := longest(b)
		whole := d.Truncate(time.Microsecond)
		if b < last || most < whole || most > whole+whole/8 || bucket(most) != b || bucket(most+time.Microsecond) != b+1 {
			t.Fatalf("%v is in bucket %d, behind %d, whose longest is %v", d, b, last, most)
		}
		last = b
	}
	if b := bucket(math.MaxInt64); b > 1<<10 || bucket(-time.Second) != 0 {
		t.Errorf("the longest time is in bucket %d", b)
	}
}

func TestLatencyQuantile(t *testing.T) {
	var l Latency
	if l.Quantile(.5) != 0 {
		t.Errorf("of nothing: %v", l.Quantile(.5))
	}
	for i := range 1000 {
		l.add(time.Duration(1000-i) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0: time.Millisecond, .001: time.Millisecond, .5: 500 * time.Millisecond, .95: 950 * time.Millisecond, .999: 999 * time.Millisecond, 1: time.Second, 2: time.Second} {
		if got := l.Quantile(q); got < want || got > want+want/8 {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if l.Count != 1000 || l.Max != time.Second || l.Sum != 500500*time.Millisecond {
		t.Errorf("%+v", l)
	}
}
