package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recrawl/recrawl/schedule/simulate"
)

// Pages that each change exactly once in a month, and are visited as often: those that would
// always be visited just before they change are not.
func TestExactPeriods(t *testing.T) {
	t.Parallel()
	const n, period, span = 400, 30 * day, 1080 * day
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []simulate.Page
	for i := range n {
		p := simulate.Page{URL: fmt.Sprintf("http://a.example/%d", i), Until: start.Add(span), Events: []simulate.Event{{Time: start, Kind: simulate.Appears}}}
		for at := time.Duration(rnd.Float64() * float64(period)); at < span; at += period {
			p.Events = append(p.Events, simulate.Event{Time: start.Add(at.Truncate(time.Second)), Kind: simulate.Modified})
		}
		all = append(all, p)
	}
	pages, err := simulate.Histories(all, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := simulate.CrawlOptions{Start: start, Duration: span, PerDay: n / 30., Seed: 1}
	got := crawl(t, pages, simulate.Stock(n, o.PerDay)[0], o)
	if got.Weighted < 0.48 || got.Weighted > 0.52 { // half, on average over all points of a month
		t.Errorf("%.4f is fresh, want about half", got.Weighted)
	}
	least := 1.
	for _, p := range got.Pages {
		least = min(least, p.Freshness)
	}
	if least < 0.15 { // at a constant interval it is next to nothing for some
		t.Errorf("a page that is fresh for %.3f of the time", least)
	}
}
