package recrawl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

// Intervals that were learned are not those of a schedule that learns nothing, for
// longer than until the next visit; one that was injected since is.
func TestDefaultAfterLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 20, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 40}
		s.run(t, s.web.Seeds()...)
		for range 40 {
			s.now = s.now.Add(day)
			s.run(t)
		}
		own, before := 30*day, 0
		for _, d := range s.records(t) {
			if d.Interval != own && !d.LastFetch.IsZero() {
				before++
			}
		}
		if before == 0 {
			t.Fatal("nothing was learned")
		}
		left := s.now.Add(time.Hour)
		for _, o := range []schedule.FetchSchedule{schedule.Default{}, &schedule.Default{}} {
			s.now = s.now.Add(100 * day) // beyond all intervals
			s.opts.Schedule = o
			r := s.run(t)
			if n := r.Visited(); n < 40 {
				t.Fatalf("%d visits", n)
			}
			for u, d := range s.records(t) {
				if d.LastFetch.After(left) && d.Interval != own && d.Status == crawldb.Fetched {
					t.Errorf("%s has the interval %v", u, d.Interval)
				}
			}
		}
		mark, err := s.db.Crawl().Progress(t.Context(), "schedule/left")
		if since, e := time.Parse(time.RFC3339, mark); err != nil || e != nil || since.Before(left) || since.After(left.Add(101*day)) {
			t.Errorf("left %q, %v, %v", mark, err, e)
		}
		s.now = s.now.Add(100 * day)
		s.opts.Schedule = schedule.Learned{Budget: 40}
		s.run(t)
		if mark, err = s.db.Crawl().Progress(t.Context(), "schedule/left"); mark != "" || err != nil {
			t.Errorf("a crawl that learns has left at %q, %v", mark, err)
		}
	})
}

// A schedule that learns has pages wait in one line; those that another schedule visited
// before stand in it, too, or with a budget that is too small they would wait for ever.
func TestLearnedAfterAdaptive(t *testing.T) {
	const day = 24 * time.Hour
	const pages = 40
	longest := func(t *testing.T, first schedule.FetchSchedule) (wait time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(&webtest.Web{})
			s.opts.Protocol = lonely{}
			s.opts.Schedule = first
			var seeds []string
			for i := range pages {
				seeds = append(seeds, fmt.Sprintf("http://h%d.example.test/", i))
			}
			s.run(t, seeds...)
			s.opts.Schedule = schedule.Learned{Budget: pages / 20, Default: schedule.Default{MaxInterval: 10 * day, DefaultInterval: 5 * day}}
			for range 100 {
				s.now = s.now.Add(day)
				s.run(t)
			}
			for _, d := range s.records(t) {
				wait = max(wait, s.now.Sub(d.LastFetch))
			}
		})
		return wait
	}
	learned := longest(t, schedule.Learned{Budget: 10 * pages})
	if learned > 40*day {
		t.Fatalf("one page was left alone for %v", learned)
	}
	if adaptive := longest(t, schedule.Adaptive{Default: schedule.Default{DefaultInterval: 5 * day}}); adaptive > learned+10*day {
		t.Errorf("of pages that Adaptive visited first one was left alone for %v, of others %v", adaptive, learned)
	}
}

// lonely is a web of pages that link to nothing.
type lonely struct{}

func (lonely) Fetch(_ context.Context, req protocol.Request) (protocol.Response, error) {
	if strings.HasSuffix(req.URL, "/robots.txt") {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
	}
	c := page.Content{URL: req.URL, Type: "text/html", Body: []byte("<p>" + req.URL)}
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Content: c}, nil
}
