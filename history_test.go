package recrawl_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

// The points of the history add up to the visits that were made, and survive a restart.
func TestHistoryAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 2, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 10}
		s.run(t, s.web.Seeds()...)
		visits := 0
		for range 3 {
			c := s.crawler(t)
			for range 10 {
				s.now = s.now.Add(36 * time.Hour)
				r, err := c.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				visits += r.Visited()
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		c := s.crawler(t)
		defer c.Close()
		points, err := c.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		total, last := 0, recrawl.HistoryPoint{}
		for _, p := range points {
			if !p.Time.After(last.Time) {
				t.Errorf("a point at %v after one at %v", p.Time, last.Time)
			}
			last = p
			for _, n := range p.Visits {
				total += n
			}
		}
		if first := points[0].Visits[protocol.Success]; first == 0 {
			t.Error("the first point has no visit")
		}
		if len(points) < 25 || total < visits {
			t.Errorf("%d points, %d visits of %d and those of the first run", len(points), total, visits)
		}
		if last.Fresh == 0 || last.Budget == 0 {
			t.Errorf("last: %+v", last)
		}
	})
}
