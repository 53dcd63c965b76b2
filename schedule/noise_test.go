package schedule_test

import (
	"fmt"
	"testing"

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
