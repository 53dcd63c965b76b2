package fetch_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

// A host that failed in former rounds and is well again is not given up because
// a visit has to wait for one that is under way, which is to tell.
func TestFailuresOfFormerRounds(t *testing.T) {
	for _, threads := range []int{1, 3} {
		for _, known := range []bool{false, true} { // robots.txt
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: time.Second}
				r := newRig(t, s, urlSet(host, 6)...)
				r.o.Politeness.ThreadsPerHost, r.o.Politeness.NoRobots = threads, known
				err := r.o.Hosts.Update(t.Context(), host, func(*hostdb.Host) (*hostdb.Host, error) {
					h := hostdb.Host{Backoff: 5, LastFetch: time.Now().Add(-time.Hour), NextFetch: time.Now().Add(-time.Minute)}
					h.Stats.Failures = 5
					return &h, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				rep := r.run(seg)
				if rep.Visits[protocol.Success] != 6 {
					t.Errorf("%d threads, no robots.txt %v: %v", threads, known, rep.Visits)
				}
			})
		}
	}
}

// A host is waited for as often with several visits at a time as with one.
func TestWaitsForRobotsOfSeveralThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &site{}
		r := newRig(t, s, urlSet(host, 6)...)
		r.o.Protocol = robotsLater{s, began.Add(10 * time.Minute)}
		r.renew()
		if _, err := r.o.Robots.Fetch(t.Context(), "http://"+host); err != nil { // so that none of them asks
			t.Fatal(err)
		}
		r.o.Politeness.ThreadsPerHost, r.o.Politeness.RobotsRetries, r.o.Politeness.RobotsWait = 3, 3, 5*time.Minute
		if rep := r.run(seg); rep.Visits[protocol.Success] != 6 {
			t.Errorf("%v after %v", rep.Visits, time.Since(began))
		}
	})
}

// Pages that will not be asked for wait for nothing.
func TestDeniedPagesDoNotWait(t *testing.T) {
	for _, robots := range []string{"User-agent: *\nCrawl-delay: 100", "User-agent: *\nDisallow: /"} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s := &site{robots: robots}
			r := newRig(t, s, urlSet(host, 6)...)
			if rep := r.run(seg); rep.Visits[protocol.RobotsDenied] != 6 || time.Since(began) > 0 {
				t.Errorf("%v after %v", rep.Visits, time.Since(began))
			}
		})
	}
}

// What robots.txt asks for may be longer than robots.txt holds.
func TestCrawlDelayOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{robots: "User-agent: *\nCrawl-delay: 100000", latency: time.Second}
		r := newRig(t, s, urlSet(host, 3)...)
		r.o.Politeness.MaxCrawlDelay, r.o.Limits.TimeLimit = -1, 10*24*time.Hour
		if rep := r.run(seg); rep.Visits[protocol.Success] != 3 {
			t.Errorf("%+v", rep)
		}
	})
}

// robotsLater shows no robots.txt until a time.
type robotsLater struct {
	*site
	until time.Time
}

func (f robotsLater) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if strings.HasSuffix(r.URL, "/robots.txt") && time.Now().Before(f.until) {
		return code(protocol.Failed), nil
	}
	return f.site.Fetch(ctx, r)
}

// The page to which a robots.txt leads is one of its host, whatever the queues are.
func TestCrawlDelayOfWhereRobotsLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answers(func(url string) protocol.Response {
			switch url {
			case "http://a.test/robots.txt":
				return moved("http://b.test/rules.txt")
			case "http://b.test/robots.txt":
				return body("text/plain", "User-agent: *\nCrawl-delay: 7")
			}
			return body("text/plain", "")
		})
		r := newRig(t, &site{}, "http://a.test/")
		var mu sync.Mutex
		var began []time.Duration
		start := time.Now()
		r.o.Protocol = answers(func(url string) protocol.Response {
			mu.Lock()
			defer mu.Unlock()
			began = append(began, time.Since(start))
			return w(url)
		})
		r.renew()
		r.o.Politeness.By, r.o.Politeness.Delay = hostdb.ByIP, 2*time.Second
		r.o.Politeness.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		r.run(seg)
		if want := []time.Duration{0, 2 * time.Second, 9 * time.Second, 16 * time.Second}; !slices.Equal(began, want) {
			t.Errorf("asked at %v, want %v", began, want)
		}
	})
}

type answers func(url string) protocol.Response

func (f answers) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	return f(r.URL), nil
}
