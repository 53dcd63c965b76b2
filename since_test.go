package recrawl_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/webtest"
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
