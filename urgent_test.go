package recrawl_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/urlfilter"
)

// What is urgent ends a round that takes long. The pages that are left are visited when they are
// due.
func TestUrgentPagesEndALongRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day, pause = 24 * time.Hour, time.Minute
		e := newEndless(&webtest.Web{Hosts: 3, PagesPerHost: 60, LinksPerPage: 60, Calm: true}, pause, day)
		e.opts.Fetch.Links.IgnoreExternal = true
		const other, third = "http://docs.example.test/pages/10.html", "http://shop.example.test/pages/11.html"
		e.opts.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(url string) bool {
			return strings.HasPrefix(url, "http://news.") || url == other || url == third
		})}}
		e.runFor(t, day-time.Hour, []string{"http://news.example.test/"}, nil)
		known := len(e.visits)
		e.runFor(t, 3*time.Hour+day, nil, func(c *recrawl.Crawler) {
			longRound := func() {
				t.Helper()
				for range 1000 {
					if s := c.Status(); s.Stage == "fetch" && s.Fetch.Listed-s.Fetch.Done > 5 && time.Since(s.Since) > 90*time.Second {
						return
					}
					time.Sleep(10 * time.Second)
				}
				t.Fatal("no long round")
			}
			visitedBy := func(what, url string, n int, most time.Duration) {
				t.Helper()
				began := time.Now()
				for e.web.Count(url) < n && time.Since(began) < time.Hour {
					time.Sleep(time.Second)
				}
				if took := time.Since(began); took > most {
					t.Errorf("%s: visited after %v", what, took)
				}
			}
			longRound()
			if _, err := c.Inject(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			visitedBy("injected", other, 1, pause+5*time.Second) // after robots.txt
			longRound()
			if _, err := c.GenerateFree(t.Context(), func(yield func(string, error) bool) { yield(third, nil) }); err != nil {
				t.Fatal(err)
			}
			visitedBy("GenerateFree", third, 1, pause+5*time.Second)
			longRound()
			if err := c.Signal(t.Context(), other, time.Time{}); err != nil {
				t.Fatal(err)
			}
			visitedBy("Signal", other, 2, 5*time.Second)
		})
		for url, at := range e.visits {
			for i := 1; i < len(at) && strings.HasPrefix(url, "http://news.example.test/"); i++ {
				if gap := at[i].Sub(at[i-1]); gap < day-day/100 || gap > day+5*time.Minute {
					t.Errorf("%s: visited after %v", url, gap)
				}
			}
		}
		if known < 50 || e.rounds > 60 {
			t.Errorf("%d pages, %d rounds", known, e.rounds)
		}
	})
}

// A stream of urgent pages leaves a round the time to be worth its selection.
func TestUrgentPagesDoNotStopACrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndless(&webtest.Web{Hosts: 4, PagesPerHost: 30, LinksPerPage: 30, Calm: true}, time.Second, 24*time.Hour)
		e.runFor(t, 3*time.Minute, e.web.Seeds(), func(c *recrawl.Crawler) {
			for i := range 1000 {
				time.Sleep(100 * time.Millisecond)
				if _, err := c.Inject(t.Context(), fmt.Sprintf("http://nowhere.test/%d", i%7)); err != nil {
					t.Fatal(err)
				}
			}
		})
		if pages := len(e.visits); pages < 100 || e.rounds > 110 {
			t.Errorf("%d pages, %d rounds", pages, e.rounds)
		}
	})
}
