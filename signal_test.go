package recrawl_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

func TestSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, f := range map[string]schedule.FetchSchedule{"learned": schedule.Learned{}, "adaptive": schedule.Adaptive{}} {
			s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
			s.opts.Schedule = f
			seed := s.web.Seeds()[0]
			s.run(t, seed)
			s.now = s.now.AddDate(0, 0, 2)
			before := s.records(t)[seed]
			c := s.crawler(t)
			defer c.Close()
			if err := c.Signal(t.Context(), seed, before.LastFetch.Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			if d := s.records(t)[seed]; !d.FetchTime.Equal(before.FetchTime) {
				t.Errorf("%s: a change before the visit: due at %v, was %v", name, d.FetchTime, before.FetchTime)
			}
			if err := c.Signal(t.Context(), seed, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if d := s.records(t)[seed]; d.FetchTime.After(s.now) {
				t.Errorf("%s: due at %v, was %v", name, d.FetchTime, before.FetchTime)
			} else if name == "learned" && d.Priority <= before.Priority {
				t.Errorf("priority %v, was %v", d.Priority, before.Priority)
			}
			if r, err := c.Run(t.Context()); err != nil || r.Visited() == 0 {
				t.Errorf("%s: %d visits, %v", name, r.Visited(), err)
			}
			if err := c.Signal(t.Context(), "http://nowhere.test/", s.now); !errors.Is(err, crawldb.ErrNotFound) {
				t.Errorf("%s: a page that is not known: %v", name, err)
			}
		}
	})
}
