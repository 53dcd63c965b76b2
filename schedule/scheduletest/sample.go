package scheduletest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

const day = 24 * time.Hour

var now = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)

// sample is a record and a visit to try.
type sample struct {
	name string
	d    crawldb.Datum
	v    schedule.Visit
}

var intervals = []time.Duration{
	0, -time.Second, math.MinInt64, 500 * time.Millisecond, time.Second, 59 * time.Second, time.Minute, time.Hour, day, 30 * day,
	81 * day, 90*day - time.Second, 90 * day, 90*day + time.Second, 365 * day, 250 * 365 * day, math.MaxInt64,
}

var ages = []time.Duration{0, time.Millisecond, time.Second, time.Hour, day, 10 * day, 30 * day, 400 * day, 20 * 365 * day, -time.Hour, -400 * day}

// each calls f with the listed samples and some random ones.
func (k *check) each(f func(sample)) {
	try := func(s sample) {
		k.Prefix = s.name + ": "
		k.Suffix = func() string { return "; record " + fields(s.d) + "; visit " + fields(s.v) }
		f(s)
	}
	for i, interval := range intervals {
		for j, age := range ages {
			for c := schedule.Unknown; c <= schedule.Unchanged; c++ {
				s := sample{name: fmt.Sprintf("listed case %d.%d.%d", i, j, c), d: record(interval), v: schedule.Visit{Time: now, Change: c}}
				if age != 0 {
					s.v.PrevModified = now.Add(-age)
					s.v.PrevFetch = now.Add(-age / 2)
					s.d.Modified = s.v.PrevModified
				}
				if age > 0 && i%2 == 1 {
					s.v.Modified = now.Add(-age)
				}
				try(s)
			}
		}
	}
	r := rand.New(rand.NewPCG(k.h.Seed, 0))
	for i := range 500 {
		try(random(r, fmt.Sprintf("seed %d, step %d", k.h.Seed, i)))
	}
	k.Prefix, k.Suffix = "", nil
}

func record(interval time.Duration) crawldb.Datum {
	return crawldb.Datum{
		URL:          "http://www.example.com/page",
		Status:       crawldb.Fetched,
		FetchTime:    now.Add(-time.Hour),
		LastFetch:    now.Add(-31 * day),
		Interval:     interval,
		Retries:      2,
		Score:        1.5,
		Priority:     2.5,
		Signature:    []byte{1, 2, 3},
		ETag:         `"x"`,
		LastModified: "Sun, 01 Jun 2025 00:00:00 GMT",
		LeasedUntil:  now.Add(time.Hour),
		LeasedBy:     "segment",
		Meta:         crawldb.MetaOf("a", "b", "opic.cash", "12345678"),
	}
}

func random(r *rand.Rand, name string) sample {
	span := func(most time.Duration) time.Duration { // evenly over orders of magnitude
		return time.Duration(math.Exp(r.Float64() * math.Log(float64(most)))).Truncate(time.Millisecond)
	}
	around := func(most time.Duration) time.Duration {
		ahead, back := span(most), span(most)
		return ahead - back
	}
	s := sample{name: name, d: record(span(math.MaxInt64 / 4).Truncate(time.Second))}
	s.d.URL = fmt.Sprintf("http://host%d.example/%d", r.IntN(5), r.IntN(100))
	s.d.Status = crawldb.Statuses()[r.IntN(9)]
	s.d.Retries = r.IntN(300)
	s.d.FetchTime = now.Add(around(1000 * day))
	s.v = schedule.Visit{Time: now.Add(around(1000 * day)), Change: schedule.Change(r.IntN(3))}
	if r.IntN(4) > 0 {
		s.v.PrevFetch = s.v.Time.Add(-span(1000 * day))
	}
	if r.IntN(4) > 0 {
		s.v.PrevModified = s.v.Time.Add(-span(10000 * day))
		s.d.Modified = s.v.PrevModified
	}
	if r.IntN(2) > 0 {
		s.v.Modified = s.v.Time.Add(-span(10000 * day))
	}
	s.v.ContentType = []string{"", "text/html", "application/pdf", "nonsense"}[r.IntN(4)]
	if r.IntN(8) == 0 {
		s.d.Meta = crawldb.Meta{}
	}
	return s
}

// copyOf returns a record that shares no bytes with d.
func copyOf(d crawldb.Datum) crawldb.Datum {
	if d.Signature != nil {
		d.Signature = append([]byte{}, d.Signature...)
	}
	return d
}
