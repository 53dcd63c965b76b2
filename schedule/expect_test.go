package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// What is expected of a rate is the mean over its distribution, and the closed forms are
// the integrals of that.
func TestExpectations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r := Rate{math.Exp(2 * rnd.NormFloat64()), math.Exp(3 * rnd.NormFloat64())}
		if rnd.IntN(10) == 0 {
			r.Shape = 1
		}
		at := math.Exp(3 * rnd.NormFloat64())
		after := fromDays(at)
		// Fresh is the mean of exp(-rate·t), by the density of the Gamma distribution, over
		// the logarithm of the rate.
		const n = 20_000
		mean := 0.0
		lgamma, _ := math.Lgamma(r.Shape)
		low, high := -60/r.Shape, math.Log(r.Shape+40+10*math.Sqrt(r.Shape)) // of rate·Days
		for i := range n {
			x := low + (high-low)*(float64(i)+0.5)/n
			mean += math.Exp(r.Shape*x-math.Exp(x)-lgamma-math.Exp(x)*at/r.Days) * (high - low) / n
		}
		if got := r.Fresh(after); math.Abs(got-mean) > 1e-4 {
			t.Errorf("%v: fresh after %v with %v, want %v", r, after, got, mean)
		}
		sum := 0.0
		for i := range n {
			sum += r.Fresh(fromDays(at*(float64(i)+0.5)/n)) / n
		}
		if got := r.freshness(days(after)); math.Abs(got-sum) > 1e-4 {
			t.Errorf("%v: freshness at %v %v, want %v", r, after, got, sum)
		}
		if got, want := r.staleFor(days(after)), at*(1-sum); math.Abs(got-want) > 1e-3*at {
			t.Errorf("%v: stale after %v for %v days, want %v", r, after, got, want)
		}
	}
	// One that is known well is what is said of a rate (Cho and Garcia-Molina, 2003).
	sure := Rate{1e9, 3e9}
	for _, after := range []time.Duration{time.Minute, time.Hour, day, 10 * day, 300 * day} {
		changes := days(after) / 3
		if got, want := sure.freshness(days(after)), -math.Expm1(-changes)/changes; math.Abs(got-want) > 1e-6 {
			t.Errorf("freshness at %v: %v, want %v", after, got, want)
		}
	}
	if r := (Rate{0.5, 15}); r.Fresh(-day) != 1 || r.staleFor(0) != 0 || r.freshness(0) != 1 || r.freshness(math.Inf(1)) != 0 {
		t.Error("ends of time")
	}
}

// Percentiles are right to a thirty-second.
func TestPercentiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var b buckets
	var all []time.Duration
	for i := range 1001 {
		d := fromDays(math.Exp(4 * rnd.NormFloat64()))
		if i < 20 {
			d = time.Duration(i) * 50 * time.Millisecond // less than a second is none
		}
		all = append(all, d)
		b.add(d, 1)
	}
	slices.Sort(all)
	p := b.percentiles()
	for _, c := range []struct {
		got  time.Duration
		rank int
	}{{p.P10, 100}, {p.P50, 500}, {p.P90, 900}, {p.P99, 990}} {
		if want := all[c.rank]; math.Abs(float64(c.got-want)) > float64(want)/32+1 {
			t.Errorf("rank %d: %v, want %v", c.rank, c.got, want)
		}
	}
	if p.Max != all[1000] || (&buckets{}).percentiles() != (Percentiles{}) {
		t.Errorf("%+v", p)
	}
	for i := uint32(1); i < 500; i++ {
		if at := bucketOf(middle(i)); at != i {
			t.Fatalf("the middle of %d is in %d", i, at)
		}
	}
}

// seen are records of all kinds.
func seen(n int, now time.Time) []crawldb.Datum {
	rnd := rand.New(rand.NewPCG(5, 6))
	all := make([]crawldb.Datum, n)
	for i := range all {
		d := crawldb.Datum{URL: fmt.Sprintf("http://h%d.test/%d", rnd.IntN(30), i), Score: float32(rnd.ExpFloat64()), Interval: 10 * day}
		switch kind := rnd.IntN(10); kind {
		case 0:
			d.Status = crawldb.Unfetched
			d.FetchTime = now
		default:
			d.Status = crawldb.Fetched
			d.LastFetch = now.Add(-fromDays(20 * rnd.Float64()))
			d.FetchTime = d.LastFetch.Add(d.Interval)
			d.Signature = []byte{1}
			learned{Rate: Rate{rnd.Float64() * 5, rnd.Float64() * 50}}.keep(&d)
			switch kind {
			case 1:
				d.Status, d.Signature = crawldb.Gone, nil
			case 2:
				d.Status = crawldb.Unfetched
				d.Meta.Set(sinceKey, strconv.FormatInt(now.Add(-50*day).UnixMilli(), 36))
			case 3:
				d.Meta.Delete(rateKey)
			case 4:
				d.LeasedUntil, d.LeasedBy = now.Add(day), "x"
			}
		}
		all[i] = d
	}
	return all
}

// A census is the sum over its records, whatever their order.
func TestCensusOfRecords(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := seen(3000, now)
	s := Learned{Plan: &Plan{Prior: Rate{1, 10}, Mean: 1}}
	census := func(s Learned) (Condition, []HostCondition) {
		c := s.NewCensus(now)
		for i := range all {
			c.Add(&all[i])
		}
		return c.Condition(1000)
	}
	got, hosts := census(s)
	var fresh, weight, weighted, age float64
	var want Condition
	for i := range all {
		d := &all[i]
		want.Pages++
		leased := d.LeasedBy != ""
		if leased {
			want.Leased++
		}
		if d.LastFetch.IsZero() {
			want.Never++
			continue
		}
		if !leased && !d.FetchTime.After(now) {
			want.Overdue++
		}
		if d.Status == crawldb.Gone {
			continue
		}
		want.Copies++
		want.Estimated++
		r, ok := RateOf(d)
		if ok {
			want.Learned++
		} else {
			r = Rate{1, 10}
		}
		at := now.Sub(d.LastFetch)
		if _, ok := d.Meta.Get(sinceKey); ok {
			at = 50 * day
		}
		w := max(float64(d.Score), 0.001)
		fresh += r.Fresh(at)
		age += days(fromDays(r.staleFor(days(at))))
		weight += w
		weighted += w * r.Fresh(at)
	}
	if got.Pages != want.Pages || got.Copies != want.Copies || got.Never != want.Never || got.Learned != want.Learned || got.Estimated != want.Estimated || got.Overdue != want.Overdue || got.Leased != want.Leased {
		t.Errorf("%+v, want %+v", got, want)
	}
	n := float64(want.Copies)
	if math.Abs(got.Freshness-fresh/n) > 1e-9 || math.Abs(got.Weighted-weighted/weight) > 1e-9 || math.Abs(days(got.Age)-age/n) > 1e-6 {
		t.Errorf("%+v, want %v, %v and %v", got, fresh/n, weighted/weight, age/n)
	}
	// The counted ages have the expected distribution, and the expected share is fresh.
	if !(got.Ages.P10 == 0 && got.Ages.P50 < got.Ages.P90 && got.Ages.P90 < got.Ages.P99) || got.Late.Max > 10*day || got.Visited.Max != 50*day {
		t.Errorf("%+v", got)
	}
	lost := 0.0
	for i, h := range hosts {
		lost += h.Lost
		if i > 0 && h.Lost > hosts[i-1].Lost {
			t.Errorf("%s comes after %s", h.Host, hosts[i-1].Host)
		}
	}
	if len(hosts) != 30 || math.Abs(lost-1) > 1e-9 {
		t.Errorf("%d hosts lose %v", len(hosts), lost)
	}
	rand.New(rand.NewPCG(7, 8)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if again, same := census(s); !reflect.DeepEqual(again, got) || !reflect.DeepEqual(same, hosts) {
		t.Errorf("in another order %+v, not %+v", again, got)
	}
	// Without a plan nothing is expected of pages that have shown nothing.
	if bare, _ := census(Learned{}); bare.Estimated != want.Learned || bare.Copies != want.Copies {
		t.Errorf("without a plan: %+v", bare)
	}
}

// The ages of many pages are spread as those of one are.
func TestAgesOfCopies(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := Rate{2, 30}
	c := Learned{}.NewCensus(now)
	for i := range 4000 {
		d := crawldb.Datum{URL: fmt.Sprint("http://a.test/", i), Status: crawldb.Fetched, LastFetch: now.Add(-40 * day), FetchTime: now, Score: 1}
		learned{Rate: r}.keep(&d)
		c.Add(&d)
	}
	got, _ := c.Condition(0)
	// The copy is older than x if the page changed in the first 40-x days.
	for share, age := range map[float64]time.Duration{.5: got.Ages.P50, .1: got.Ages.P90} {
		older := 1 - r.Fresh(40*day-age)
		if math.Abs(older-share) > 0.03 {
			t.Errorf("%v are older than %v, want %v", older, age, share)
		}
	}
}

// A page that was due before all that a Duration can say is late by as much.
func TestPagesLateByDecades(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := Learned{}.NewCensus(now)
	c.Add(&crawldb.Datum{URL: "http://a.test/", Status: crawldb.Fetched, LastFetch: now.Add(-day)})
	if got, _ := c.Condition(0); got.Overdue != 1 || got.Late.P50 != math.MaxInt64 || got.Late.Max != math.MaxInt64 {
		t.Errorf("%d are overdue, by %v", got.Overdue, got.Late)
	}
}

func BenchmarkCensus(b *testing.B) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := seen(100_000, now)
	b.ReportAllocs()
	for b.Loop() {
		c := Learned{Plan: &Plan{Prior: Rate{1, 10}, Mean: 1}}.NewCensus(now)
		for i := range all {
			c.Add(&all[i])
		}
		c.Condition(20)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)), "ns/record")
}
