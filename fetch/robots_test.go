package fetch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/urlfilter"
)

// moving is a web whose robots.txt files move: by URL, the target of a redirect or the text.
// Other URLs are empty pages, except robots.txt, which is missing.
type moving struct {
	site
	to, text map[string]string
}

func (m *moving) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	resp, err := m.site.Fetch(ctx, r)
	if err != nil {
		return resp, err
	}
	if to, ok := m.to[r.URL]; ok {
		resp = code(protocol.MovedTemp)
		resp.Outcome.Location = to
	} else if text, ok := m.text[r.URL]; ok {
		resp = body("text/plain", text)
	}
	return resp, nil
}

// polite checks that no two requests to one host were closer than the pause, and
// returns how many there were.
func polite(t *testing.T, s *site, by hostdb.By, pause func(queue string) time.Duration) int {
	t.Helper()
	last := map[string]ask{}
	asks := s.of("")
	for _, a := range asks {
		q := by.Key(a.url)
		if before, ok := last[q]; ok && a.begin.Sub(before.end) < pause(q) {
			t.Errorf("%s was asked %v after %s", a.url, a.begin.Sub(before.end), before.url)
		}
		last[q] = a
	}
	return len(asks)
}

func five(string) time.Duration { return 5 * time.Second }

func (m *moving) rig(t *testing.T, urls ...string) *rig {
	r := newRig(t, &m.site, urls...)
	r.o.Protocol = m
	r.renew()
	return r
}

// Two robots.txt that lead to each other's hosts do not wait for each other, and
// each request waits for a grant of its host.
func TestRobotsThatRedirectToEachOther(t *testing.T) {
	for _, threads := range []int{1, 2, 8} {
		synctest.Test(t, func(t *testing.T) {
			m := &moving{site: site{latency: 300 * time.Millisecond}, text: map[string]string{
				"http://a.test/of-b": "User-agent: *\nDisallow: /1",
				"http://b.test/of-a": "User-agent: *\nDisallow: /2",
			}, to: map[string]string{
				"http://a.test/robots.txt": "http://b.test/of-a", "http://b.test/robots.txt": "http://a.test/of-b",
				// Rules for a page there can come only from a file that has moved.
				"http://c.test/robots.txt": "http://d.test/robots.txt", "http://d.test/robots.txt": "http://c.test/robots.txt",
			}}
			r := m.rig(t, append(append(pageURLs("a.test", 3), pageURLs("b.test", 3)...), append(pageURLs("c.test", 2), pageURLs("d.test", 2)...)...)...)
			r.o.Threads = threads
			rep := r.run(seg)
			polite(t, &m.site, hostdb.ByHost, five)
			v := r.visits(seg)
			for _, u := range append(pageURLs("a.test", 3), pageURLs("b.test", 3)...) {
				if o := v[u].Outcome; o.Code != protocol.RobotsFailed || !strings.Contains(o.Reason, "own robots.txt is unavailable") {
					t.Errorf("%d threads: %s: %v %s", threads, u, o.Code, o.Reason)
				}
			}
			for _, u := range append(pageURLs("c.test", 2), pageURLs("d.test", 2)...) {
				if v[u].Outcome.Code != protocol.Success { // a loop is as good as no file
					t.Errorf("%d threads: %s: %v", threads, u, v[u].Outcome)
				}
			}
			if rep.Robots > 4+4 || rep.Robots != len(m.of("robots.txt"))+len(m.of("/of-")) {
				t.Errorf("%d threads: %d requests for robots.txt", threads, rep.Robots)
			}
		})
	}
}

func TestRobotsRedirects(t *testing.T) {
	deny := "User-agent: *\nDisallow: /0"
	for _, c := range []struct {
		name     string
		to, text map[string]string
		filter   string
		code     protocol.Code // of http://a.test/0
		reason   string
		asks     int // for robots.txt
	}{
		{name: "within the host", to: map[string]string{"http://a.test/robots.txt": "/x"}, text: map[string]string{"http://a.test/x": deny},
			code: protocol.RobotsDenied, asks: 2},
		{name: "to the robots.txt of another host", to: map[string]string{"http://a.test/robots.txt": "http://b.test/robots.txt"}, text: map[string]string{"http://b.test/robots.txt": deny},
			code: protocol.RobotsDenied, asks: 2},
		{name: "to a page of another host", to: map[string]string{"http://a.test/robots.txt": "http://b.test/x"}, text: map[string]string{"http://b.test/x": deny},
			code: protocol.RobotsDenied, asks: 3},
		{name: "to a page that is forbidden there", to: map[string]string{"http://a.test/robots.txt": "http://b.test/x"},
			text: map[string]string{"http://b.test/x": deny, "http://b.test/robots.txt": "User-agent: *\nDisallow: /x"},
			code: protocol.RobotsFailed, reason: "robots.txt leads to http://b.test/x, which the robots.txt there does not allow", asks: 2},
		{name: "to a page of a host that is slow by request", to: map[string]string{"http://a.test/robots.txt": "http://b.test/x"},
			text: map[string]string{"http://b.test/x": deny, "http://b.test/robots.txt": "User-agent: *\nCrawl-delay: 90"},
			code: protocol.RobotsFailed, reason: "Crawl-delay of 1m30s is more than 30s", asks: 2},
		{name: "there and back", to: map[string]string{"http://a.test/robots.txt": "http://b.test/robots.txt", "http://b.test/robots.txt": "http://a.test/x"}, text: map[string]string{"http://a.test/x": deny},
			code: protocol.RobotsDenied, asks: 3},
		{name: "into what the filter rejects", to: map[string]string{"http://a.test/robots.txt": "http://b.test/x"}, filter: "-/x\n+.",
			code: protocol.RobotsFailed, reason: "robots.txt is unavailable: robots.txt leads to http://b.test/x, which the rules reject", asks: 1},
		{name: "to a host that the filter rejects", to: map[string]string{"http://a.test/robots.txt": "http://b.test/robots.txt"}, filter: "+a.test",
			code: protocol.RobotsFailed, reason: "robots.txt leads to http://b.test/robots.txt, which the rules reject", asks: 1},
		{name: "to a robots.txt that the filter would reject as a page", to: map[string]string{"http://a.test/robots.txt": "http://b.test/robots.txt"}, text: map[string]string{"http://b.test/robots.txt": deny}, filter: "-txt$\n+.",
			code: protocol.RobotsDenied, asks: 2},
		{name: "six", to: map[string]string{"http://a.test/robots.txt": "http://b.test/robots.txt", "http://b.test/robots.txt": "http://c.test/robots.txt", "http://c.test/robots.txt": "http://d.test/robots.txt",
			"http://d.test/robots.txt": "http://e.test/robots.txt", "http://e.test/robots.txt": "http://f.test/robots.txt", "http://f.test/robots.txt": "http://g.test/robots.txt"},
			code: protocol.Success, asks: 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &moving{to: c.to, text: c.text}
				r := m.rig(t, "http://a.test/0")
				if c.filter != "" {
					f, err := urlfilter.ParseRegex(strings.NewReader(c.filter), urlfilter.Options{})
					if err != nil {
						t.Fatal(err)
					}
					r.o.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{f}}
				}
				rep := r.run(seg)
				o := r.visits(seg)["http://a.test/0"].Outcome
				if o.Code != c.code || !strings.Contains(o.Reason, c.reason) || rep.Robots != c.asks {
					t.Errorf("%v, %q, %d requests", o.Code, o.Reason, rep.Robots)
				}
				polite(t, &m.site, hostdb.ByHost, five)
			})
		})
	}
}

// The delay that comes with a robots.txt from elsewhere counts from the last
// request to the host that it is for.
func TestCrawlDelayOfAFileFromAnotherHost(t *testing.T) {
	for _, by := range []hostdb.By{hostdb.ByHost, hostdb.ByDomain} {
		synctest.Test(t, func(t *testing.T) {
			m := &moving{to: map[string]string{"http://a.test/robots.txt": "http://b.test/robots.txt"},
				text: map[string]string{"http://b.test/robots.txt": "User-agent: *\nCrawl-delay: 20"}}
			r := m.rig(t, pageURLs("a.test", 3)...)
			r.o.Politeness.By = by
			r.run(seg)
			if n := polite(t, &m.site, by, func(string) time.Duration { return 20 * time.Second }); n != 5 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A host that must be left alone does not delay other hosts whose robots.txt is on it.
func TestRobotsAtASkippedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moving{to: map[string]string{"http://a.test/robots.txt": "http://b.test/robots.txt"}}
		r := m.rig(t, pageURLs("a.test", 2)...)
		until := time.Now().Add(time.Hour)
		if err := r.o.Hosts.Update(t.Context(), "b.test", func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{LastFetch: time.Now(), NextFetch: until}, nil
		}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.run(seg)
		for u, v := range r.visits(seg) {
			if v.Outcome.Code != protocol.RobotsFailed || !strings.Contains(v.Outcome.Reason, "http://b.test/robots.txt, but the host has to be left alone") {
				t.Errorf("%s: %v", u, v.Outcome)
			}
		}
		if took := time.Since(began); took > time.Minute || len(m.of("b.test")) > 0 {
			t.Errorf("it took %v and %v", took, m.of("b.test"))
		}
	})
}

// The rule of the pause holds at every host of webs whose robots.txt files move
// about at random, and every page is over in the end.
func TestRobotsRedirectsOfRandomWebs(t *testing.T) {
	total := 0
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			m := &moving{site: site{latency: time.Second, slow: map[string]time.Duration{}}, to: map[string]string{}, text: map[string]string{}}
			const hosts = 12
			host := func() string { return fmt.Sprintf("h%d.d%d.test", rnd.IntN(hosts), rnd.IntN(2)) }
			var urls []string
			place := func() string {
				return "http://" + host() + []string{"/robots.txt", "/robots.txt", "/x", "/y"}[rnd.IntN(4)]
			}
			for i := range hosts {
				for d := range 2 {
					base := fmt.Sprintf("http://h%d.d%d.test", i, d)
					urls = append(urls, pageURLs(strings.TrimPrefix(base, "http://"), 3)...)
					for _, p := range []string{"/robots.txt", "/x", "/y"} {
						m.slow[base+p] = time.Duration(rnd.IntN(9000)) * time.Millisecond
						switch rnd.IntN(4) {
						case 0:
							m.text[base+p] = "User-agent: *\nDisallow: /1\nDisallow: " + []string{"/x", "/q"}[rnd.IntN(2)]
						case 1:
						default:
							m.to[base+p] = place()
						}
					}
				}
			}
			rnd.Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
			r := m.rig(t, urls...)
			r.o.Threads = 1 + rnd.IntN(20)
			r.o.Politeness.By = []hostdb.By{hostdb.ByHost, hostdb.ByDomain}[rnd.IntN(2)]
			rep := r.run(seg)
			total += polite(t, &m.site, r.o.Politeness.By, five)
			if rep.Visited() != len(urls) || len(r.visits(seg)) != len(urls) {
				t.Errorf("web %d: %d visits of %d", seed, rep.Visited(), len(urls))
			}
			for _, a := range m.of("") {
				if u := a.url; strings.HasSuffix(u, "/x") && strings.Contains(m.text[strings.TrimSuffix(u, "/x")+"/robots.txt"], "Disallow: /x") {
					// Only a visit that the file of the same origin has led there may ask.
					t.Errorf("web %d: %s is forbidden", seed, u)
				}
			}
		})
	}
	if total < 2000 {
		t.Errorf("only %d requests", total)
	}
}

// If a server asks to be left alone when its robots.txt is requested again, its pages wait, too,
// although its earlier rules are still valid.
func TestRetryAfterOfRobots(t *testing.T) {
	for _, c := range []struct {
		after, want time.Duration
		skipped     int
	}{
		{2 * time.Second, 5 * time.Second, 0}, // the delay is longer
		{90 * time.Second, 90 * time.Second, 0},
		{10 * time.Minute, 0, 17}, // longer than a round waits
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{}
			r := newRig(t, s, pageURLs(host, 28)...)
			busy := protocolFunc(func(ctx context.Context, req protocol.Request) (protocol.Response, error) {
				resp, err := s.Fetch(ctx, req)
				if strings.HasSuffix(req.URL, "/robots.txt") && len(s.of("/robots.txt")) == 2 {
					resp = code(protocol.Busy)
					resp.Outcome.Status, resp.Outcome.RetryAfter = 429, c.after
				} else if strings.HasSuffix(req.URL, "/robots.txt") {
					resp = body("text/plain", "User-agent: *\nDisallow: /x")
				}
				return resp, err
			})
			r.o.Protocol = busy
			r.o.Robots = &robots.Cache{Protocol: busy, Hosts: r.o.Hosts, MaxAge: time.Minute}
			rep := r.run(seg)
			if rep.Visits[protocol.Skipped] != c.skipped || rep.Visits[protocol.Success] != 28-c.skipped {
				t.Errorf("%v: %v", c.after, rep.Visits)
			}
			asks, again := s.of(host), s.of("/robots.txt")
			if len(again) < 2 {
				t.Fatal("robots.txt was not asked for again")
			}
			for i, gap := range gaps(t, asks) {
				if asks[i] == again[1] && gap != c.want || gap < 5*time.Second {
					t.Errorf("%v: a pause of %v behind %s", c.after, gap, asks[i].url)
				}
			}
		})
	}
}

func TestRobotsBeforePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second, robots: "User-agent: test\nDisallow: /private\nUser-agent: *\nDisallow: /\n"}
		var urls []string
		for _, origin := range []string{"http://a.example.test", "https://a.example.test", "http://a.example.test:8080", "http://b.example.test"} {
			urls = append(urls, origin+"/", origin+"/private", origin+"/private/x", origin+"/public")
		}
		r := newRig(t, s, urls...)
		rep := r.run(seg)
		if rep.Robots != 4 || rep.Visits[protocol.RobotsDenied] != 8 || rep.Visits[protocol.Success] != 8 {
			t.Errorf("%+v", rep)
		}
		if asks := s.of("/private"); len(asks) > 0 {
			t.Errorf("forbidden pages were asked for: %v", asks)
		}
		known := map[string]time.Time{}
		for _, a := range s.of("") {
			origin := a.url[:strings.Index(a.url[8:], "/")+8]
			if strings.HasSuffix(a.url, "/robots.txt") {
				if _, again := known[origin]; again {
					t.Errorf("%s was asked for twice", a.url)
				}
				known[origin] = a.end
			} else if at, ok := known[origin]; !ok || at.After(a.begin) {
				t.Errorf("%s was asked for before robots.txt was known", a.url)
			}
		}
		gaps(t, s.of("a.example.test")) // the origins of a host share its grants
	})
}

func TestUnavailableRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, pageURLs(host, 30)...)
		r.o.Protocol = protocolFunc(func(ctx context.Context, q protocol.Request) (protocol.Response, error) {
			s.Fetch(ctx, q)
			return code(protocol.Failed), nil
		})
		r.renew()
		rep := r.run(seg)
		if n := len(s.of(host)); n != 1 || rep.Visits[protocol.RobotsFailed] != 30 {
			t.Errorf("%d requests, %v", n, rep.Visits)
		}
		if h := hostOf(t, r, host); h.Stats.Failures != 0 || len(h.Grants) > 0 {
			t.Errorf("%+v", h)
		}
	})
}

// A host is waited for as often with several visits at a time as with one.
func TestWaitsForRobotsOfSeveralThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &site{}
		r := newRig(t, s, pageURLs(host, 6)...)
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
			r := newRig(t, s, pageURLs(host, 6)...)
			if rep := r.run(seg); rep.Visits[protocol.RobotsDenied] != 6 || time.Since(began) > 0 {
				t.Errorf("%v after %v", rep.Visits, time.Since(began))
			}
		})
	}
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
func TestCrawlDelayOfTheTargetOfARobotsRedirect(t *testing.T) {
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

// The fetch waits for a host whose robots.txt fails, and puts its pages off if that does not
// help. No other host waits.
func TestRobotsRetries(t *testing.T) {
	for _, c := range []struct {
		retries int
		wait    time.Duration
		heals   time.Duration // when
		asks    []time.Duration
		visits  int
		took    time.Duration
	}{
		{0, 0, time.Minute, []time.Duration{0}, 0, 25 * time.Second},
		{3, 0, 4 * time.Minute, []time.Duration{0, 5 * time.Minute}, 3, 5*time.Minute + 20*time.Second},
		{1, 0, 8 * time.Minute, []time.Duration{0, 5 * time.Minute}, 0, 5*time.Minute + 10*time.Second},
		{2, 0, 8 * time.Minute, []time.Duration{0, 5 * time.Minute, 10 * time.Minute}, 3, 10*time.Minute + 25*time.Second},
		{2, 20 * time.Minute, 21 * time.Minute, []time.Duration{0, 20 * time.Minute, 40 * time.Minute}, 3, 40*time.Minute + 25*time.Second},
		// The cache asks again after a minute, whatever the fetch waits.
		{4, 20 * time.Second, 30 * time.Second, []time.Duration{0, 65 * time.Second}, 3, 80 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{}
			urls := append(pageURLs("ill.example.test", 3), pageURLs(host, 5)...)
			r := newRig(t, s, urls...)
			ill := &illRobots{site: s, began: time.Now(), heals: c.heals}
			r.o.Protocol, r.o.Politeness.RobotsRetries, r.o.Politeness.RobotsWait = ill, c.retries, c.wait
			r.renew()
			rep := r.run(seg)
			took := time.Since(ill.began)
			if rep.Visits[protocol.Success] != 5+c.visits || rep.Visits[protocol.RobotsFailed] != 3-c.visits || took != c.took {
				t.Errorf("%+v: %v after %v", c, rep.Visits, took)
			}
			same := len(ill.asks) == len(c.asks)
			for i := 0; same && i < len(c.asks); i++ {
				// Each look needs a grant of the host, and so a pause.
				same = ill.asks[i] >= c.asks[i] && ill.asks[i] <= c.asks[i]+20*time.Second
			}
			if !same {
				t.Errorf("%+v: asked at %v", c, ill.asks)
			}
			if last := s.of(host + "/4")[0].begin.Sub(ill.began); last != 25*time.Second {
				t.Errorf("%+v: the last page of another host came after %v", c, last)
			}
		})
	}
}

// illRobots is a site with one host whose robots.txt is unavailable at first.
type illRobots struct {
	*site
	began time.Time
	heals time.Duration
	asks  []time.Duration
}

func (i *illRobots) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if r.URL == "http://ill.example.test/robots.txt" {
		since := time.Since(i.began)
		i.asks = append(i.asks, since)
		if since < i.heals {
			return code(protocol.Failed), nil
		}
	}
	return i.site.Fetch(ctx, r)
}
