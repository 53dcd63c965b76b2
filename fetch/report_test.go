package fetch_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

func TestReportCountsCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		for _, h := range []string{"down", "waits", "slow", "fine", "odd"} {
			urls = append(urls, pageURLs(h+".example.test", 7)...)
		}
		odd := 0
		s := &site{latency: 200 * time.Millisecond}
		s.answer = func(url string) protocol.Response {
			r := code(protocol.Failed)
			switch {
			case strings.HasPrefix(url, "http://down."):
				r.Outcome.Reason = "connect: refused"
			case strings.HasPrefix(url, "http://waits."):
				r = code(protocol.Busy)
				r.Outcome.RetryAfter = time.Hour
			case strings.HasPrefix(url, "http://odd."):
				r.Outcome.Reason = []string{"", "Strange: x", "a colon it has not", "timeout: waiting for the answer", ": x"}[odd]
				if odd++; odd == 5 {
					r.Outcome = protocol.Outcome{Code: protocol.Failed, Status: 500, Reason: "http: 500"}
				}
			default:
				r = body("text/html", "x")
			}
			r.Elapsed = 200 * time.Millisecond
			return r
		}
		r := newRig(t, s, urls...)
		r.o.Protocol = slowRobots{s}
		r.renew()
		rep := r.run(seg)
		c := rep.Causes
		if c.HostFails != 4 || c.HostWaits != 6 || c.CrawlDelay != 7 || !maps.Equal(c.Failed, map[string]int{"connect": 5, "other": 3, "timeout": 1, "status": 1}) {
			t.Errorf("%+v of %v", c, rep.Visits)
		}
		asked := 5 + 1 + 7 + 5
		if l := rep.Latency; l.Count != asked || l.Sum != time.Duration(asked)*200*time.Millisecond || l.Max != 200*time.Millisecond || l.Quantile(.5) != l.Max {
			t.Errorf("%+v", l)
		}
	})
}

// slowRobots is a site with one host that asks for a pause of ten minutes.
type slowRobots struct{ *site }

func (s slowRobots) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if r.URL == "http://slow.example.test/robots.txt" {
		return body("text/plain", "User-agent: *\nCrawl-delay: 600"), nil
	}
	return s.site.Fetch(ctx, r)
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, richSite(), richURLs()...)
		done, bytes := 0, int64(0)
		r.o.OnVisit = func(v segment.Visit, p fetch.Progress) {
			done++
			bytes += v.Bytes
			if p.Done != done || p.Listed != len(richURLs()) || p.InFlight < 0 || p.Hosts > 2 {
				t.Errorf("%+v after %d visits", p, done)
			}
		}
		rep := r.run(seg)
		if done != rep.Visited() || done != rep.Listed || bytes != rep.Bytes || bytes == 0 {
			t.Errorf("OnVisit got %d visits and %d bytes: %+v", done, bytes, rep)
		}
	})
}
