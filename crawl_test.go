package recrawl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
)

func TestCrawlFindsEveryPageThatIsLinked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 60})
		s.run(t, s.web.Seeds()...)
		records := s.records(t)

		// What a perfect crawler finds from the seeds.
		want := map[string]bool{}
		queue := slices.Clone(s.web.Seeds())
		for len(queue) > 0 {
			u := queue[0]
			queue = queue[1:]
			if want[u] {
				continue
			}
			want[u] = true
			truth, ok := s.web.Page(u)
			if !ok || truth.Disallowed {
				continue
			}
			if truth.Location != "" {
				queue = append(queue, truth.Location)
			}
			if !truth.NoFollow {
				queue = append(queue, truth.Outlinks...)
			}
		}
		for u := range want {
			d, ok := records[u]
			if !ok {
				t.Errorf("%s is not in the crawl db", u)
				continue
			}
			truth, _ := s.web.Page(u)
			var status crawldb.Status
			switch {
			case truth.Disallowed:
				status = crawldb.Gone
				if s.web.Count(u) > 0 {
					t.Errorf("%s is disallowed and was requested", u)
				}
			case truth.Exists:
				status = crawldb.Fetched
			case truth.Status == 301 || truth.Status == 308:
				status = crawldb.RedirPerm
			case truth.Location != "":
				status = crawldb.RedirTemp
			case truth.Status == 404 || truth.Status == 410:
				status = crawldb.Gone
			default: // it fails for now
				status = crawldb.Unfetched
			}
			if d.Status != status {
				t.Errorf("%s (HTTP %d): status %v, want %v", u, truth.Status, d.Status, status)
			}
			if d.LeasedBy != "" || !d.LeasedUntil.IsZero() {
				t.Errorf("%s is still leased by %s", u, d.LeasedBy)
			}
			if !d.FetchTime.After(s.now) {
				t.Errorf("%s is due at %v, not after now", u, d.FetchTime)
			}
		}
		if len(records) != len(want) {
			t.Errorf("the crawl db has %d records, want %d", len(records), len(want))
		}
	})
}

func TestRecrawlAdaptsIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true})
		s.run(t, s.web.Seeds()...)
		first := s.records(t)
		s.now = s.now.AddDate(0, 0, 31)
		var changed, unchanged int
		s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
			truth, _ := s.web.Page(e.URL)
			want := recrawl.PageUnchanged
			if truth.Changed.After(first[e.URL].LastFetch) {
				want = recrawl.PageChanged
			}
			if e.Kind != want {
				t.Errorf("%s: event %v, want %v", e.URL, e.Kind, want)
			}
			return nil
		}
		s.run(t)
		for u, d := range s.records(t) {
			truth, _ := s.web.Page(u)
			if truth.Changed.After(first[u].LastFetch) {
				changed++
				if d.Status != crawldb.Fetched || d.Interval >= first[u].Interval || !d.Modified.After(first[u].LastFetch) {
					t.Errorf("%s changed: %v, interval %v after %v, modified %v", u, d.Status, d.Interval, first[u].Interval, d.Modified)
				}
			} else {
				unchanged++
				if d.Status != crawldb.NotModified || d.Interval <= first[u].Interval {
					t.Errorf("%s did not change: %v, interval %v after %v", u, d.Status, d.Interval, first[u].Interval)
				}
			}
		}
		if changed < 10 || unchanged < 5 {
			t.Fatalf("%d pages changed and %d did not: the web does not test anything", changed, unchanged)
		}
	})
}

func TestInterruptedCrawlConverges(t *testing.T) {
	undisturbed := func(t *testing.T) string {
		s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 40, Latency: 10 * time.Millisecond})
		s.run(t, s.web.Seeds()...)
		return s.dump(t)
	}
	synctest.Test(t, func(t *testing.T) {
		want := undisturbed(t)
		for _, threads := range []int{1, 2, 8, 64} {
			s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 40, Latency: 10 * time.Millisecond})
			s.opts.Fetch.Threads = threads
			c := s.crawler(t)
			if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
			for i := 0; ; i++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(35+17*i)*time.Millisecond)
				_, err := c.Run(ctx)
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if i > 1000 {
					t.Fatal("the crawl does not end")
				}
			}
			c.Close()
			if got := s.dump(t); got != want {
				t.Errorf("%d threads: the interrupted crawl differs:\n%s", threads, firstDifference(got, want))
			}
		}
	})
}

func TestPolitenessHoldsAcrossHostsAndRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 12, Calm: true, Latency: 300 * time.Millisecond})
		s.opts.Fetch.Politeness.Delay = 2 * time.Second
		c := s.crawler(t)
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond)
			_, err := c.Run(ctx)
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			c.Close()
			c = s.crawler(t)
		}
		c.Close()
		for h := range s.web.Hosts {
			log := s.web.HostLog(s.web.Host(h))
			if log.MinGap < 2*time.Second || log.MaxInFlight != 1 {
				t.Errorf("%s: gap %v, %d at once", s.web.Host(h), log.MinGap, log.MaxInFlight)
			}
		}
	})
}

func TestFailingHostDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true})
		bad := s.web.Host(0)
		inner := s.opts.Protocol
		asked := 0
		s.opts.Protocol = protocolFunc(func(ctx context.Context, r protocol.Request) (protocol.Response, error) {
			if crawldb.Host(r.URL) == bad && !strings.HasSuffix(r.URL, "/robots.txt") {
				asked++
				return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: "down"}}, nil
			}
			return inner.Fetch(ctx, r)
		})
		var seeds []string
		for u := range s.web.URLs() {
			seeds = append(seeds, u)
		}
		began := time.Now()
		r := s.run(t, seeds...)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
		if asked != 5 {
			t.Errorf("the host was asked %d times, want 5", asked)
		}
		if r.Visits[protocol.Skipped] == 0 {
			t.Error("nothing was skipped")
		}
		for u, d := range s.records(t) {
			if crawldb.Host(u) != bad {
				if d.Status != crawldb.Fetched {
					t.Errorf("%s: %v", u, d.Status)
				}
			} else if d.Status != crawldb.Unfetched || d.Retries > 1 || !d.FetchTime.After(s.now) {
				t.Errorf("%s: %v, %d retries, due %v", u, d.Status, d.Retries, d.FetchTime)
			}
		}
	})
}

func TestPluginThatPanicsFailsThatPageOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 10, Calm: true})
		inner := s.opts.Protocol
		seed := s.web.Seeds()[0]
		s.opts.Protocol = protocolFunc(func(ctx context.Context, r protocol.Request) (protocol.Response, error) {
			if strings.HasSuffix(r.URL, ".html") {
				panic("boom")
			}
			return inner.Fetch(ctx, r)
		})
		s.run(t, seed)
		if d := s.records(t)[seed]; d.Status != crawldb.Fetched {
			t.Errorf("%s: %v", seed, d.Status)
		}
	})
}
