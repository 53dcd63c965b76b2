package simulate_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
)

// once never has a page fetched a second time, and says that an index may know it.
type once struct{ schedule.Default }

func (once) Horizon() time.Duration                   { return 0 }
func (once) Due(d *crawldb.Datum, now time.Time) bool { return !d.FetchTime.After(now) }
func (s once) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	d = s.Default.Fetched(d, v)
	d.FetchTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	return d
}

// A time beyond all that a Duration can say is never.
func TestFetchTimesBeyondAllDurations(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pages := []simulate.Page{simulate.Never("http://a.example/", start), simulate.Never("http://b.example/", time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC))}
	if r := simulated(t, pages[:1], once{}, simulate.Options{Start: start}); r.Total.Visits != 1 {
		t.Errorf("%d visits", r.Total.Visits)
	}
	population, err := simulate.Histories(pages, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	out := crawl(t, population, simulate.Policy{Name: "once", Schedule: once{}}, simulate.CrawlOptions{Start: start, Duration: 100 * day, Measure: -1, Cold: true})
	if out.Fetches != 1 {
		t.Errorf("%d fetches of a page that is there, and one that appears in a thousand years", out.Fetches)
	}
}

// A course has no more points than there are cycles.
func TestPointsWithoutEnd(t *testing.T) {
	pages := synthetic(t, simulate.Equal, simulate.Uniform, 10)
	out := crawl(t, pages, simulate.Policy{Name: "p", Schedule: schedule.Default{}}, simulate.CrawlOptions{Duration: 10 * day, Points: math.MaxInt})
	if n := len(out.Timeline); n != 40 {
		t.Errorf("%d points of 40 cycles", n)
	}
}

// A history may be longer than a Duration can say, by a date that was misspelled.
func TestHistoriesOfMillennia(t *testing.T) {
	year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
	pages := []simulate.Page{{URL: "http://a.example/", Events: []simulate.Event{{Time: year(26), Kind: simulate.Appears}, {Time: year(2026), Kind: simulate.Modified}}}}
	if r := simulated(t, pages, schedule.Default{}, simulate.Options{}); r.Total.Visits < 1000 {
		t.Errorf("%d visits", r.Total.Visits)
	}
	population, err := simulate.Histories(pages, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = simulate.Crawl(context.Background(), population, simulate.Policy{Name: "p", Schedule: schedule.Default{}}, simulate.CrawlOptions{})
	if err == nil || !strings.Contains(err.Error(), "146 years") {
		t.Errorf("%v", err)
	}
}

// When a site gets a new design all of its pages change at one moment. That is no reason to take
// them for pages that change more often.
func TestOneChangeOfAllPages(t *testing.T) {
	const pages, redesign = 500, 300
	history := make([]simulate.Page, pages)
	for i := range history {
		p := simulate.Poisson(fmt.Sprintf("http://a.example/%d", i), start, 500*day, []time.Duration{20 * day, 60 * day, 200 * day}[i%3], uint64(i))
		at := start.Add(redesign*day + 7*time.Hour)
		k := slices.IndexFunc(p.Events, func(e simulate.Event) bool { return e.Time.After(at) })
		if k < 0 {
			k = len(p.Events)
		}
		p.Events = slices.Insert(p.Events, k, simulate.Event{Time: at, Kind: simulate.Modified})
		history[i] = p
	}
	population, err := simulate.Histories(history, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	stock := simulate.Stock(pages, pages/30.)
	o := simulate.CrawlOptions{PerDay: pages / 30., Duration: 480 * day, Measure: (redesign + 30) * day}
	out, err := simulate.Compare(t.Context(), population, []simulate.Policy{stock[0], stock[2]}, o)
	if err != nil {
		t.Fatal(err)
	}
	if learned, constant := out[0], out[1]; learned.Weighted < .95*constant.Weighted || learned.Fetches < constant.Fetches*95/100 {
		t.Errorf("from a month later on %.3f of what is fresh, and %d of %d fetches", learned.Weighted/constant.Weighted, learned.Fetches, constant.Fetches)
	}
}

// Where the budget is not enough for the greatest intervals, pages that are gone take little of it.
func TestMostPagesAreGone(t *testing.T) {
	const pages, gone = 300, 200
	history := make([]simulate.Page, pages)
	for i := range history {
		p := simulate.Poisson(fmt.Sprintf("http://a.example/%d", i), start, 3000*day, []time.Duration{20 * day, 100 * day, 400 * day}[i%3], uint64(i))
		if end := start.Add(100 * day); i < gone {
			p.Events = slices.DeleteFunc(p.Events, func(e simulate.Event) bool { return e.Time.After(end) })
			p.Events = append(p.Events, simulate.Event{Time: end, Kind: simulate.Deleted})
		}
		history[i] = p
	}
	population, err := simulate.Histories(history, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	stock := simulate.Stock(pages, pages/350.)
	o := simulate.CrawlOptions{PerDay: pages / 350., Duration: 3000 * day, Cycle: day}
	out, err := simulate.Compare(t.Context(), population, []simulate.Policy{stock[0], stock[2]}, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := out[0].Weighted / out[1].Weighted; got < .98 {
		t.Errorf("%.3f of what a constant interval keeps fresh", got)
	}
}

// A signature that is another at every visit is found out where no two visits come within a week of
// each other, too, and where some hosts have another.
func TestSignaturesThatAlwaysDiffer(t *testing.T) {
	const pages = 1200
	history := make([]simulate.Page, pages)
	for i := range history {
		p := simulate.Poisson(fmt.Sprintf("http://h%d.example/%d", i%60, i), start, 180*day, []time.Duration{40 * day, 200 * day}[i%2], uint64(i))
		history[i] = simulate.Page{URL: p.URL, Events: p.Events, Seen: p.Events, SignatureAlwaysDiffers: i%60 >= 8, Until: start.Add(180 * day)}
	}
	population, err := simulate.Histories(history, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	stock := simulate.Stock(pages, pages/30.)
	o := simulate.CrawlOptions{PerDay: pages / 30., Measure: 60 * day}
	out, err := simulate.Compare(t.Context(), population, []simulate.Policy{stock[0], stock[2]}, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := out[0].Weighted / out[1].Weighted; got < .98 {
		t.Errorf("%.3f of what a constant interval keeps fresh", got)
	}
}
