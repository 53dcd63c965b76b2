package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// crowd crawls pages that change so often a day, each about every ten days, with a plan every
// five days that is kept as text in between. Pages come again when they are due, as many a day
// as the budget has.
type crowd struct {
	s       Learned
	rnd     *rand.Rand
	at      time.Time
	records []crawldb.Datum
	perDay  []float64
	visits  int64
}

func newCrowd(perDay func(i int) float64) *crowd {
	c := &crowd{s: Learned{Budget: 30}, rnd: rand.New(rand.NewPCG(3, 4)), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range 300 {
		visited := c.at.Add(-time.Duration(i%10) * day)
		c.records = append(c.records, crawldb.Datum{URL: fmt.Sprintf("http://a/%d", i), Status: crawldb.Fetched, Score: 1, LastFetch: visited, FetchTime: visited.Add(10 * day), Signature: []byte{1}})
		c.perDay = append(c.perDay, perDay(i))
	}
	return c
}

func (c *crowd) crawl(t *testing.T, days int) {
	t.Helper()
	for n := range days {
		if n%5 == 0 {
			sample := c.s.NewSample(c.at)
			for i := range c.records {
				sample.Add(&c.records[i])
			}
			text, err := sample.Plan(PlanOptions{Visits: c.visits}).Encode()
			if err != nil {
				t.Fatal(err)
			}
			if c.s.Plan, err = DecodePlan(text); err != nil {
				t.Fatal(err)
			}
		}
		c.at = c.at.Add(day)
		left := int(c.s.Budget)
		for i := range c.records {
			d := &c.records[(i+n*37)%len(c.records)]
			if d.FetchTime.After(c.at) || left == 0 {
				continue
			}
			left--
			v := Visit{Time: c.at, PrevFetch: d.LastFetch, Change: Unchanged}
			if c.rnd.Float64() < -math.Expm1(-c.perDay[(i+n*37)%len(c.records)]*c.at.Sub(d.LastFetch).Hours()/24) {
				v.Change = Changed
			}
			*d = c.s.Fetched(*d, v)
			d.LastFetch = c.at
			c.visits++
		}
	}
}

// intervals returns the shortest and the longest that pages would get now, in days.
func (c *crowd) intervals() (least, most float64) {
	least = math.Inf(1)
	for i := range c.records {
		w := c.s.Explain(&c.records[i])
		least, most = min(least, days(w.Interval)), max(most, days(w.Interval))
	}
	return least, most
}

// If all pages are the same they get the same interval, however often they change. Pages that
// differ do not, and they are told apart when they begin to differ.
func TestHomogeneityOfPages(t *testing.T) {
	for name, perDay := range map[string]float64{"seldom": 1. / 100, "now and then": 1. / 10, "often": 1, "always": 24} {
		c := newCrowd(func(int) float64 { return perDay })
		c.crawl(t, 200)
		if l := c.s.Plan.Homogeneity; l.Shape != fullyHomogeneous {
			t.Errorf("%s: %+v", name, l)
		} else if got := l.Common.PerDay(); perDay < 1 && math.Abs(math.Log(got/perDay)) > 0.15 {
			t.Errorf("%s: all change %v times a day, want %v", name, got, perDay)
		}
		if least, most := c.intervals(); most/least > 1.001 || math.Abs(most/10-1) > 0.2 {
			t.Errorf("%s: from %.2f to %.2f days, want about 10", name, least, most)
		}
		if perDay != 1./10 {
			continue
		}
		// What each page has shown is kept all the while.
		for i := range c.perDay {
			c.perDay[i] = []float64{1. / 100, 1}[i%2]
		}
		c.crawl(t, 150)
		if l := c.s.Plan.Homogeneity; l.Shape != 0 {
			t.Errorf("pages that became different: %+v", l)
		}
	}
	c := newCrowd(func(i int) float64 { return []float64{1. / 100, 1. / 5}[i%2] })
	c.crawl(t, 200)
	if l := c.s.Plan.Homogeneity; l.Shape != 0 || l.All > -100 {
		t.Errorf("two kinds: %+v", l)
	}
}

// As long as pages keep their ways the differences between them are confirmed. If each draws a new
// rate every few visits what it has shown says less of it, and pages are told apart by less.
func TestUnconfirmedDifferencesShrink(t *testing.T) {
	kinds := []float64{1. / 60, 1. / 4}
	c := newCrowd(func(i int) float64 { return kinds[i%2] })
	spread := func() float64 { // of the rates that set intervals, beside that of what is learned
		p, sum, learned := c.s.Plan, 0., 0.
		for i := range c.records {
			l, _ := c.s.known(&c.records[i])
			common := p.Homogeneity.Common.PerDay()
			sum += math.Abs(math.Log(p.homogenized(c.records[i].URL, l.kind, l.Rate).PerDay() / common))
			learned += math.Abs(math.Log(l.PerDay() / common))
		}
		return sum / learned
	}
	for range 4 {
		c.crawl(t, 75)
		if l, got := c.s.Plan.Homogeneity, spread(); l.Shape != 0 || l.Less > leastLess || math.Abs(got-1) > 1e-9 {
			t.Errorf("pages that keep their ways are told apart by %.3f of the differences: %+v", got, l)
		}
	}
	// All at once change twice as often, which says nothing of the differences.
	for i := range c.perDay {
		c.perDay[i] *= 2
	}
	c.crawl(t, 75)
	if l := c.s.Plan.Homogeneity; l.Less > leastLess {
		t.Errorf("pages that together change more often: %+v", l)
	}
	for range 10 {
		for i := range c.perDay {
			c.perDay[i] = kinds[c.rnd.IntN(2)]
		}
		c.crawl(t, 30)
	}
	if l, got := c.s.Plan.Homogeneity, spread(); l.Less < 0.25 || l.Shape < fullyHomogeneous && got > 1-l.Less+0.01 {
		t.Errorf("pages that change their ways one by one are told apart by %.3f of the differences: %+v", got, l)
	}
}

// Pages that were visited twice tell nothing of the others.
func TestHomogeneityOfFewPages(t *testing.T) {
	c := newCrowd(func(int) float64 { return 1. / 10 })
	c.crawl(t, 100)
	old, s := c.s.Plan, c.s
	if old.Homogeneity.Shape != fullyHomogeneous {
		t.Fatalf("%+v", old.Homogeneity)
	}
	sample := s.NewSample(c.at)
	for i := range c.records {
		d := &c.records[i]
		if i%5 > 1 { // three in five are new
			d.Meta = crawldb.Meta{}
		}
		sample.Add(d)
	}
	if p := sample.Plan(PlanOptions{Visits: c.visits}); p.Homogeneity.Shape != 0 {
		t.Errorf("%+v", p.Homogeneity)
	}
}

// Records of versions that did not keep when the visit before was say nothing of likeness, and
// all else as they did.
func TestShortOutcome(t *testing.T) {
	d := crawldb.Datum{URL: "http://a/"}
	learned{Rate: Rate{2, 20}, kind: kindFeed, level: 3, last: outcome{expected: 1, changed: true, after: 10}}.keep(&d)
	text, _ := d.Meta.Get(rateKey)
	now, ok := learnedOf(&d)
	d.Meta.Set(rateKey, text[:11])
	before, had := learnedOf(&d)
	if !ok || !had || now.last.after == 0 || before.last.after != 0 {
		t.Fatalf("%+v, without the time %+v", now, before)
	}
	if now.last.after = 0; now != before {
		t.Errorf("%+v, without the time %+v", now, before)
	}
}

// Where all pages change half as often as before, and most are expected to change more often
// than the common rate says, that is not taken for differences which are not confirmed.
func TestShiftOfAllRatesIsNoDifference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const common = 0.1
	var c confirmed
	for range 50_000 {
		expected := common * []float64{1, 4, 8}[rnd.IntN(3)]
		c.add(outcome{expected: expected, changed: rnd.Float64() < -math.Expm1(-expected/2)}, common, 0)
	}
	var l Homogeneity
	if c.apply(&l, 1); l.Less > leastLess || l.Confirmed < 1000 {
		t.Errorf("%+v", l)
	}
}

// What few visits say of the differences does not count.
func TestDifferencesOfFewVisitsStay(t *testing.T) {
	r := Rate{2, 10}
	for confirmed, counts := range map[float64]bool{30: false, 40: true} { // three deviations: .5 and 1/6
		p := &Plan{Homogeneity: Homogeneity{Common: Rate{1, 20}, Less: 0.5, Confirmed: confirmed}}
		if like := p.homogenized("http://a/", kindUnknown, r); (like != r) != counts {
			t.Errorf("with an information of %v %+v is %+v", confirmed, r, like)
		}
	}
}
