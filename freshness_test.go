package recrawl_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

// What a report says of freshness is as of the last plan, and what a crawler says that is
// asked is of now; the budget that is used is that of the last day.
func TestFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 40, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 15}
		s.opts.Generate.TopN = 10
		var told bytes.Buffer
		s.opts.Logger = slog.New(slog.NewTextHandler(&told, nil))
		var r recrawl.Report
		for day := range 81 {
			if day == 0 {
				r = s.run(t, s.web.Seeds()...)
			} else {
				s.now = s.now.AddDate(0, 0, 1)
				r = s.run(t)
			}
			if day == 2 && (r.Freshness == nil || r.Freshness.Forecast != nil && r.Freshness.Estimated == 0 || r.Freshness.Never == 0) {
				t.Errorf("on the second day: %+v", r.Freshness)
			}
		}
		if n := strings.Count(told.String(), "a plan was made"); n < 10 || !strings.Contains(told.String(), " fresh=0.") {
			t.Errorf("%d plans were logged: %s", n, &told)
		}
		f := r.Freshness
		if f == nil || f.Pages == 0 || f.Sampled != 0 || f.Copies < 80 || f.Estimated != f.Copies || !(f.Freshness > 0.3 && f.Freshness < 1) || f.Age <= 0 {
			t.Fatalf("%+v", f)
		}
		if f.Budget != 15 || math.Abs(f.Used-15) > 2 || s.now.Sub(f.UsedSince) < 24*time.Hour || s.now.Sub(f.UsedSince) > 25*time.Hour {
			t.Errorf("%v of %v visits a day used since %v; it is %v", f.Used, f.Budget, f.UsedSince, s.now)
		}
		if g := f.Forecast; g == nil || !(g.Freshness > 0.3) || math.Abs(g.Reaches(15)-g.Freshness) > 0.02 {
			t.Fatalf("%+v", f.Forecast)
		}
		short, ok := f.Lacks(f.Forecast.Freshness + 0.05)
		if !ok || !(short > 0.5) {
			t.Errorf("short of %v, %v", short, ok)
		}
		if more, ok := f.Lacks(f.Forecast.Freshness - 0.05); !ok || !(more < -0.5) {
			t.Errorf("more than enough: %v, %v", more, ok)
		}
		c := s.crawler(t)
		defer c.Close()
		now, err := c.Freshness(t.Context(), 1)
		if err != nil || len(now.Hosts) != 1 || now.Copies != f.Copies || math.Abs(now.Freshness-f.Freshness) > 0.2 || now.Used != f.Used || now.At.Before(f.At) {
			t.Errorf("asked for: %+v, %v", now, err)
		}
		// One that does not learn goes by the plan.
		s.opts.Schedule = nil
		other := s.crawler(t)
		defer other.Close()
		same, err := other.Freshness(t.Context(), 1)
		if err != nil || !reflect.DeepEqual(same.Condition, now.Condition) || same.Budget != 15 || same.Forecast == nil {
			t.Errorf("with another schedule: %+v, %v", same, err)
		}
	})
}

// Of the pages that were never visited no more are worth a visit than there are, although
// the one number is counted and the other estimated from a sample.
func TestNoMoreAreWorthAVisitThanThereAre(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1})
	s.opts.Schedule = schedule.Learned{Budget: 1e6}
	const pages, copies = 25_000, 2000 // of which the sample has a few too many that were never visited
	records, urls := make([]crawldb.Datum, pages), make([]string, pages)
	for i := range records {
		d := crawldb.Datum{URL: fmt.Sprintf("http://a.example/%05d", i), Status: crawldb.Unfetched, FetchTime: s.now, Interval: time.Hour, Score: 1}
		if i < copies {
			d.Status, d.LastFetch, d.Signature = crawldb.Fetched, s.now, []byte("s")
			d = schedule.Learned{}.Fetched(d, schedule.Visit{Time: s.now, PrevFetch: s.now.AddDate(0, 0, -1), Change: schedule.Changed})
		}
		records[i], urls[i] = d, d.URL
	}
	if err := s.db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil }}); err != nil {
		t.Fatal(err)
	}
	c := s.crawler(t)
	defer c.Close()
	f, err := c.Freshness(t.Context(), 0)
	if err != nil || f.Forecast == nil || f.Never != pages-copies || f.Forecast.Worth != f.Never {
		t.Errorf("%+v, %+v, %v", f, f.Forecast, err)
	}
}

// Without a schedule that learns, Freshness says when pages were visited, and makes nothing up.
func TestFreshnessWithoutLearning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 20})
		r := s.run(t, s.web.Seeds()...)
		s.now = s.now.AddDate(0, 0, 40)
		c := s.crawler(t)
		defer c.Close()
		f, err := c.Freshness(t.Context(), 5)
		if err != nil || r.Freshness != nil || f.Copies < 25 || f.Estimated != 0 || f.Freshness != 0 || f.Forecast != nil || f.Budget != 0 || !f.UsedSince.IsZero() || f.Overdue == 0 || f.Late.Max <= 0 || f.Visited.P50 < 38*24*time.Hour {
			t.Errorf("%+v, %v", f, err)
		}
	})
}
