package simulate_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/simulate"
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
	if r := simulate.Run(pages[:1], once{}, simulate.Options{Start: start}); r.Total.Visits != 1 {
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
	if n := len(out.Course); n != 40 {
		t.Errorf("%d points of 40 cycles", n)
	}
}

// A history may be longer than a Duration can say, by a date that was misspelled.
func TestHistoriesOfMillennia(t *testing.T) {
	year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
	pages := []simulate.Page{{URL: "http://a.example/", Events: []simulate.Event{{Time: year(26), Kind: simulate.Appears}, {Time: year(2026), Kind: simulate.Modified}}}}
	if r := simulate.Run(pages, schedule.Default{}, simulate.Options{}); r.Total.Visits < 1000 {
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
