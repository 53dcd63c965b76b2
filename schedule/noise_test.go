package schedule_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

// A host is noisy if visits that come soon find a change nearly each, and only then.
func TestNoisy(t *testing.T) {
	s := schedule.Learned{Budget: 10}
	visit := func(url string, gap int, changed func(i int) bool) crawldb.Datum {
		d := s.Init(crawldb.Datum{URL: url, Score: 1, Signature: []byte{1}, Status: crawldb.Fetched}, began)
		at := began
		d = s.Fetched(d, schedule.Visit{Time: at})
		for i := range 4 {
			d.LastFetch, at = at, at.AddDate(0, 0, gap)
			v := schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: schedule.Unchanged}
			if changed(i) {
				v.Change = schedule.Changed
			}
			d = s.Fetched(d, v)
		}
		d.LastFetch = at
		return d
	}
	always := func(int) bool { return true }
	for _, c := range []struct {
		name string
		make func(i int) crawldb.Datum
		want []schedule.Noisy
	}{
		{"soon and always", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://a.test/%d", i), 3, always) }, []schedule.Noisy{{Host: "a.test", Checked: 40, Changed: 40}}},
		{"seldom", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://a.test/%d", i), 30, always) }, nil},
		{"some do not", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://a.test/%d", i), 3, func(n int) bool { return i%10 > 0 || n < 3 })
		}, nil},
		{"one of forty does not", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://a.test/%d", i), 3, func(n int) bool { return i > 0 || n < 3 })
		}, []schedule.Noisy{{Host: "a.test", Checked: 40, Changed: 39}}},
		{"many hosts", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://h%d.test/", i), 3, always) }, []schedule.Noisy{{Checked: 40, Changed: 40}}},
		{"one of two hosts", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://h%d.test/%d", i%2, i), 3, func(int) bool { return i%2 == 0 })
		}, []schedule.Noisy{{Host: "h0.test", Checked: 20, Changed: 20}}},
	} {
		x := s.NewSample(began.AddDate(0, 0, 200))
		for i := range 40 {
			d := c.make(i)
			x.Add(&d)
		}
		p := x.Plan(schedule.PlanOptions{})
		if got := x.Outlook(p, schedule.PlanOptions{}).Noisy; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Who asks for a page is told of its host, or of all.
func TestPlanNoisy(t *testing.T) {
	of := func(n ...schedule.Noisy) *schedule.Plan { return &schedule.Plan{Outlook: &schedule.Outlook{Noisy: n}} }
	for _, c := range []struct {
		plan *schedule.Plan
		want string
	}{
		{nil, ""},
		{&schedule.Plan{}, ""},
		{of(schedule.Noisy{Host: "b.test"}), ""},
		{of(schedule.Noisy{Host: "b.test"}, schedule.Noisy{Host: "a.test", Changed: 10}), "{a.test 0 10}"},
		{of(schedule.Noisy{Changed: 12}), "{ 0 12}"},
	} {
		got := ""
		if n := c.plan.Noisy("http://a.test/x"); n != nil {
			got = fmt.Sprint(*n)
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.plan, got, c.want)
		}
	}
}

// The greatest interval is as the budget has it, and Explain says so.
func TestGreatest(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		stretch         float64
		inForce, listed time.Duration
	}{{0, 90 * day, 90 * day}, {0.5, 45 * day, 45 * day}, {2, 180 * day, 90 * day}, {1e-4, time.Hour, time.Hour}} {
		s := schedule.Learned{Plan: &schedule.Plan{Stretch: c.stretch}}
		set, inForce := s.Greatest()
		w := s.Explain(&crawldb.Datum{URL: "http://a.test/", Score: 1})
		if set != 90*day || inForce != c.inForce || w.Most != c.listed || w.Set != set || w.Stretch != cmp.Or(c.stretch, 1) {
			t.Errorf("%v: %v, %v, explained as %v times %v", c.stretch, set, inForce, w.Most, w.Stretch)
		}
	}
	if w := (schedule.Learned{Plan: &schedule.Plan{Stretch: 0.5, HostMu: map[string]float64{"a.test": 9}}}).Explain(&crawldb.Datum{URL: "http://a.test/", Score: 1}); w.Stretch != 1 || w.Most != 90*day {
		t.Errorf("a host with a threshold of its own: %v times %v", w.Most, w.Stretch)
	}
}
