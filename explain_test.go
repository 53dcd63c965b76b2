package recrawl_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/urlfilter"
)

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1})
		down := false
		s.opts.Protocol = protocolFunc(func(_ context.Context, r protocol.Request) (protocol.Response, error) {
			var resp protocol.Response
			switch resp.Outcome.Code = protocol.Success; {
			case down:
				resp.Outcome.Code = protocol.Failed
			case strings.HasSuffix(r.URL, "robots.txt"):
				resp.Content.Body = []byte("User-agent: *\nDisallow: /forbidden\nCrawl-delay: 7")
			default:
				resp.Content.Type, resp.Content.Body = "text/html", []byte("x")
			}
			return resp, nil
		})
		s.opts.Rules = urlfilter.Default()
		s.opts.Rules.Filters = append(s.opts.Rules.Filters, urlfilter.FilterFunc(func(u string) bool { return !strings.HasSuffix(u, "/filtered") }))
		s.opts.Generate.MinScore = 0.5
		c := s.crawler(t)
		defer c.Close()
		expect := func(url, verdict string) recrawl.Explanation {
			t.Helper()
			e, err := c.Explain(t.Context(), url)
			if err != nil || !strings.HasPrefix(e.Verdict, verdict) {
				t.Errorf("%s: %q, want %q; %v", url, e.Verdict, verdict, err)
			}
			return e
		}
		const base = "http://a.example.test/"
		if e := expect("not a url", "Never fetched: it is not a URL"); e.Rejected == nil || e.Record != nil {
			t.Errorf("%+v", e)
		}
		expect(base+"filtered", "Never fetched: the rules of the crawl reject it")
		if e := expect("HTTP://A.example.test:80/x#f", "Not fetched: the crawl has not heard of it"); e.Normal != base+"x" {
			t.Errorf("%+v", e)
		}
		if _, err := c.Inject(t.Context(), base+"x", base+"forbidden", base+"poor"); err != nil {
			t.Fatal(err)
		}
		poor, err := s.db.Crawl().Get(t.Context(), base+"poor")
		if err != nil {
			t.Fatal(err)
		}
		poor.Priority = 0.25
		if err := s.db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{poor.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &poor, nil }}); err != nil {
			t.Fatal(err)
		}
		expect(base+"poor", "Due, but its priority of 0.25 is below 0.5")
		if e := expect(base+"x", "Due: the next round fetches it, if its priority"); !e.Due || e.Leased || e.Host != nil || e.RobotsKnown {
			t.Errorf("%+v", e)
		}
		g, err := c.Generate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e := expect(base+"x", "On its way: segment "+g.Segments[0]); !e.Leased {
			t.Errorf("%+v", e)
		}
		if _, err := c.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e := expect(base+"x", "Not yet: the next visit is due at "); e.Due || e.Record.Status != crawldb.Fetched {
			t.Errorf("%+v", e)
		}
		force(t, s.db.Crawl(), base+"x", s.now)
		force(t, s.db.Crawl(), base+"forbidden", s.now)
		if e := expect(base+"x", "Due: the next round fetches it, but its host is left alone until "); e.Host == nil || !e.RobotsKnown || !e.RobotsAllowed || e.CrawlDelay != 7*time.Second {
			t.Errorf("%+v", e)
		}
		if e := expect(base+"forbidden", "Due, but robots.txt forbids it"); e.RobotsAllowed {
			t.Errorf("%+v", e)
		}
		time.Sleep(time.Minute)
		expect(base+"x", "Due: the next round fetches it, if its priority")

		down = true
		const other = "http://b.example.test/"
		if _, err := c.Inject(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		force(t, s.db.Crawl(), other, s.now)
		if e := expect(other, "Due, but robots.txt of its host cannot be fetched"); !e.RobotsUnavailable {
			t.Errorf("%+v", e)
		}
	})
}

// A host that its rule closes is left alone, and Explain says why.
func TestExplainOfAClosedHost(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 2, Calm: true})
	closed := true
	s.opts.Fetch.Politeness.HostRule = func(queue string) fetch.HostRule {
		return fetch.HostRule{Closed: closed && queue == s.web.Host(1)}
	}
	const want = "Left alone: the rule for its host says that it is closed."
	for _, skipped := range []bool{false, true} {
		if skipped {
			s.run(t, s.web.Seeds()...)
			if n := s.web.HostLog(s.web.Host(1)).Requests; n != 0 {
				t.Errorf("%d requests", n)
			}
		} else if c := s.crawler(t); true {
			if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		c := s.crawler(t)
		for i, url := range s.web.Seeds() {
			if e, err := c.Explain(t.Context(), url); err != nil || (e.Verdict == want) != (i == 1) || e.HostRule.Closed != (i == 1) {
				t.Errorf("%s: %q, %v", url, e.Verdict, err)
			}
		}
		c.Close()
	}
}

// What a rule allows on a day is all that a host is asked, and Explain says so.
func TestExplainOfASpentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // from midnight on
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
		s.opts.Fetch.Politeness.HostRule = func(string) fetch.HostRule { return fetch.HostRule{Requests: 2} }
		s.opts.Run.Rounds = 1
		s.run(t, s.web.Seeds()...) // robots.txt and a page
		c := s.crawler(t)
		defer c.Close()
		url := s.web.Seeds()[0]
		force(t, s.db.Crawl(), url, s.now)
		want := "Due, but the host has been sent its 2 requests of the day: it is asked from 2000-01-02T00:00:00Z on."
		if e, err := c.Explain(t.Context(), url); err != nil || e.Verdict != want {
			t.Errorf("%q, want %q, %v", e.Verdict, want, err)
		}
		time.Sleep(24 * time.Hour)
		if e, err := c.Explain(t.Context(), url); err != nil || !strings.HasPrefix(e.Verdict, "Due: the next round fetches it") {
			t.Errorf("the day after: %q, %v", e.Verdict, err)
		}
	})
}

// What Explain says of robots.txt is what the fetch obeys: the rules of its own cache, or
// none.
func TestExplainAsTheFetchObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 60})
		s.run(t, s.web.Seeds()...)
		forbidden := ""
		for url := range s.web.URLs() {
			if truth, _ := s.web.Page(url); truth.Disallowed {
				forbidden = url
			}
		}
		explain := func() recrawl.Explanation {
			t.Helper()
			c := s.crawler(t)
			defer c.Close()
			e, err := c.Explain(t.Context(), forbidden)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		if e := explain(); forbidden == "" || !e.RobotsKnown || e.RobotsAllowed {
			t.Errorf("by robots.txt: %q, %+v", forbidden, e)
		}
		s.opts.Fetch.Robots = &robots.Cache{Protocol: s.opts.Protocol, Hosts: s.db.Hosts(), Now: s.opts.Now, Parse: func([]byte, ...string) *robots.Rules { return robots.AllowAll() }}
		if e := explain(); !e.RobotsKnown || !e.RobotsAllowed {
			t.Errorf("by a cache with a parser of its own: %+v", e)
		}
		s.opts.Fetch.Robots, s.opts.Fetch.Politeness.NoRobots = nil, true
		if e := explain(); e.RobotsKnown {
			t.Errorf("without robots.txt: %+v", e)
		}
	})
}

// The last visit is found in whichever of many segments it was made.
func TestLastVisitOfManySegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 8, Calm: true})
		s.run(t, s.web.Seeds()...)
		s.now = s.now.AddDate(0, 0, 40) // all are due
		s.opts.Generate.TopN, s.opts.Generate.Segments = 2, 9
		if r := s.run(t); len(r.Segments) != 4 {
			t.Fatalf("%d segments", len(r.Segments))
		}
		c := s.crawler(t)
		defer c.Close()
		for url := range s.records(t) {
			if e, err := c.Explain(t.Context(), url); err != nil || e.Visit == nil || !e.Visit.Time.Equal(e.Record.LastFetch) {
				t.Errorf("%s: %+v, %v", url, e.Visit, err)
			}
		}
	})
}
