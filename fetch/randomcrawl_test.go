package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// All that a fetch can do at once, by chance: whatever the mix, each page of the
// list is visited once or counted as left, no other twice, no grant is left, no
// pause too short, and the fetch ends.
func TestRandomOptionsKeepThePromises(t *testing.T) {
	seeds := 40
	if testlevel.Race {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newMix(t, uint64(seed)).prove() })
		})
	}
}

// mix is a web and the options to visit it with.
type mix struct {
	t     *testing.T
	rnd   *rand.Rand
	seed  uint64
	hosts int
	ips   int
	o     fetch.Options
	urls  []string
	delay map[string]time.Duration // that the list asks for, by host

	mu    sync.Mutex
	calls int // of the host db
	under int
	seen  []seen
}

func (m *mix) hash(s string) int { return hashOf(fmt.Sprint(m.seed, s)) }

func (m *mix) host(i int) string { return fmt.Sprintf("h%d.d%d.com", i, i%3) }

func (m *mix) anyURL(n int) string {
	return fmt.Sprintf("http://%s/%d", m.host(n%m.hosts), n/m.hosts%30)
}

func (m *mix) addr(host string) string { return fmt.Sprintf("192.0.2.%d", m.hash(host)%m.ips) }

func (m *mix) queue(host string) string {
	switch m.o.Politeness.By {
	case hostdb.ByDomain:
		return host[strings.Index(host, ".")+1:]
	case hostdb.ByIP:
		return m.addr(host)
	}
	return host
}

// kind is what a host is like.
func (m *mix) kind(host string) int { return m.hash("kind"+host) % 12 }

func (m *mix) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	_, rest, _ := strings.Cut(r.URL, "://")
	host, path, _ := strings.Cut(rest, "/")
	s := seen{url: r.URL, host: host, begin: time.Now()}
	n := m.hash(r.URL)
	panics := n%97 == 0 && !strings.HasSuffix(path, ".txt")
	takes := time.Duration(n%1200) * time.Millisecond
	if n%53 == 0 || m.kind(host) == 9 {
		takes += 20 * time.Second
	}
	to := m.anyURL(m.hash("to" + r.URL))
	if strings.HasSuffix(path, ".txt") && path != "robots.txt" {
		to += ".txt"
	}
	resp := m.page(r.URL, n)
	switch {
	case path == "robots.txt":
		switch m.kind(host) {
		case 0, 1:
			resp = code(protocol.NotFound)
		case 2:
			resp = body("text/plain", "User-agent: *\nCrawl-delay: 7\nDisallow: /1")
		case 3:
			resp = moved("http://" + m.host(m.hash(host)%m.hosts) + "/robots.txt")
		case 4:
			resp = moved(to + ".txt")
		case 5:
			resp = code(protocol.Failed)
		case 6:
			resp = body("text/plain", "User-agent: *\nCrawl-delay: 100")
		case 7:
			resp = moved("http://" + host + "/moved.txt")
		default:
			resp = body("text/plain", "User-agent: *\nDisallow: /3\nSitemap: http://"+host+"/29")
		}
	case m.kind(host) == 8:
		resp = code(protocol.Failed)
	case n%11 == 0, n%7 == 0:
		resp = moved(to)
	case n%13 == 0:
		resp = refresh(to)
	case n%17 == 0:
		resp = code(protocol.Failed)
	case n%19 == 0:
		resp = code(protocol.Busy)
		resp.Outcome.RetryAfter = time.Duration(n%400) * time.Second
	case n%23 == 0:
		resp = code(protocol.NotFound)
	case n%29 == 0:
		resp = code(protocol.Refused)
	}
	m.mu.Lock()
	m.under++
	m.mu.Unlock()
	select {
	case <-time.After(takes):
		if s.code = resp.Outcome.Code; !panics {
			s.after = resp.Outcome.RetryAfter
		}
	case <-ctx.Done():
	}
	s.end = time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.under--
	if s.code != protocol.Refused {
		m.seen = append(m.seen, s)
	}
	if s.code == 0 {
		return protocol.Response{}, ctx.Err()
	}
	if panics {
		panic("by chance")
	}
	return resp, nil
}

func (m *mix) page(url string, n int) protocol.Response {
	var b strings.Builder
	if strings.HasSuffix(url, "/29") {
		b.WriteString("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>")
		for i := range 5 {
			fmt.Fprintf(&b, "<url><loc>%s</loc></url>", m.anyURL(n+i))
		}
		return body("application/xml", b.String()+"</urlset>")
	}
	for i := range n % 5 {
		fmt.Fprintf(&b, "<a href='%s'>x</a>", m.anyURL(n+i*31))
	}
	return body("text/html", b.String())
}

// counted counts the calls of a host db.
type counted struct {
	hostdb.Store
	m *mix
}

func (c counted) Update(ctx context.Context, name string, f func(*hostdb.Host) (*hostdb.Host, error)) error {
	c.m.mu.Lock()
	c.m.calls++
	c.m.mu.Unlock()
	return c.Store.Update(ctx, name, f)
}

func newMix(t *testing.T, seed uint64) *mix {
	rnd := rand.New(rand.NewPCG(seed, 7))
	m := &mix{t: t, rnd: rnd, seed: seed, hosts: 2 + rnd.IntN(12), delay: map[string]time.Duration{}}
	m.ips = 1 + rnd.IntN(m.hosts)
	maybe := func(n int) bool { return rnd.IntN(n) == 0 }
	o := &m.o
	o.Threads, o.Politeness.ThreadsPerHost = 1+rnd.IntN(12), 1+rnd.IntN(3)
	o.SpareThreads = rnd.IntN(3) - 1
	o.Politeness.Delay = time.Duration(500+rnd.IntN(3000)) * time.Millisecond
	o.Politeness.MinDelay = []time.Duration{0, -1, 300 * time.Millisecond}[rnd.IntN(3)]
	o.Politeness.By = []hostdb.By{hostdb.ByHost, hostdb.ByDomain, hostdb.ByIP}[rnd.IntN(3)]
	o.Following.MaxRedirects, o.Following.Depth, o.Following.External = rnd.IntN(4), rnd.IntN(3), maybe(2)
	o.Politeness.MaxFailures = []int{-1, 0, 2}[rnd.IntN(3)]
	o.Politeness.MaxWait = []time.Duration{0, time.Second, time.Hour}[rnd.IntN(3)]
	o.Politeness.RobotsRetries, o.Politeness.RobotsWait = rnd.IntN(3), time.Duration(rnd.IntN(100))*time.Second
	o.Politeness.NoRobots = maybe(8)
	o.Limits.QueueDepth = []int{0, 1, 3, 10}[rnd.IntN(4)]
	if maybe(3) {
		o.Politeness.Limiter = &fetch.Limiter{Requests: 0.5 + 5*rnd.Float64(), Bytes: float64(rnd.IntN(2) * 200)}
	}
	if maybe(3) {
		rule := fetch.HostRule{Requests: int64(rnd.IntN(2) * 20)}
		if maybe(2) {
			rule.Windows = []fetch.Window{{From: 0, To: 3 * time.Minute}, {From: 5 * time.Minute, To: 23 * time.Hour}}
		}
		o.Politeness.HostRule = func(string) fetch.HostRule { return rule }
	}
	if maybe(4) {
		o.Limits.TimeLimit = time.Duration(5+rnd.IntN(200)) * time.Second
	}
	o.Politeness.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		time.Sleep(time.Duration(m.hash(host)%500) * time.Millisecond)
		if m.hash("ip"+host)%10 == 0 {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr(m.addr(host))}, nil
	}
	have := map[string]bool{}
	for range 20 + rnd.IntN(150) {
		u := m.anyURL(rnd.IntN(1000))
		if maybe(3) { // not well mixed
			u = m.anyURL(rnd.IntN(30) * m.hosts)
		}
		if !have[u] {
			have[u] = true
			m.urls = append(m.urls, u)
		}
	}
	if maybe(2) {
		for i := range m.hosts {
			listed := slices.ContainsFunc(m.urls, func(u string) bool { return hostdb.ByHost.Key(u) == m.host(i) })
			if maybe(2) && listed && o.Politeness.By == hostdb.ByHost {
				m.delay[m.host(i)] = time.Duration(1+rnd.IntN(20)) * time.Second
			}
		}
	}
	return m
}

func (m *mix) prove() {
	t := m.t
	r := newRig(t, &site{})
	hosts := r.o.Hosts
	m.o.Parser, m.o.Signature = r.o.Parser, r.o.Signature
	m.o.Protocol, m.o.Hosts = m, counted{hosts, m}
	r.o = m.o
	w, err := segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), "mix", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range m.urls {
		d := crawldb.Datum{URL: u, Status: crawldb.Unfetched}
		if strings.HasSuffix(u, "/29") || strings.HasSuffix(u, "/28") {
			crawldb.Sitemap{Budget: 5}.Set(&d.Meta)
		}
		segment.Placement{Delay: m.delay[hostdb.ByHost.Key(u)]}.Set(&d)
		if err = w.Append(t.Context(), []crawldb.Datum{d}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	kills := m.rnd.IntN(4)
	var rep fetch.Report
	began := time.Now()
	for life := 0; life <= kills; life++ {
		ctx, cancel := context.WithTimeout(t.Context(), 40*24*time.Hour)
		if life < kills {
			ctx, cancel = context.WithTimeout(t.Context(), time.Duration(m.rnd.IntN(100_000))*time.Millisecond)
		}
		r.renew()
		rep, err = fetch.Run(ctx, r.db.Segments(), "mix", r.o)
		cancel()
		if m.under > 0 {
			t.Errorf("%d visits are under way after the run", m.under)
		}
		if err != nil && (life == kills || !errors.Is(err, context.DeadlineExceeded)) {
			t.Errorf("it did not end: %v", err)
		}
		if err == nil && rep.Already {
			break
		}
	}
	visits := r.visits("mix") // each once
	if !rep.Already {
		n := rep.TimedOut + rep.TooSlow
		for _, u := range m.urls {
			if _, ok := visits[u]; ok {
				n++
			} else if m.o.Limits.TimeLimit == 0 {
				t.Errorf("%s was not visited", u)
			}
		}
		if n != len(m.urls) || rep.Listed != n || rep.Listed != rep.Resumed+rep.Visited()-rep.Followed+rep.TimedOut {
			t.Errorf("%d of %d are visited or left: %+v", n, len(m.urls), rep)
		}
	}
	aligned(t, r.db.Segments(), "mix")
	for h, err := range hosts.Scan(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Grants) > 0 {
			t.Errorf("%s: %d turns are kept", h.Name, len(h.Grants))
		}
	}
	took := time.Since(began)
	if max := 50*(len(m.seen)+len(m.urls)) + 20*int(took/time.Second); m.calls > max {
		t.Errorf("%d calls of the host db for %d requests in %v", m.calls, len(m.seen), took)
	}
	m.gaps()
}

func (m *mix) gaps() {
	t := m.t
	slices.SortStableFunc(m.seen, func(a, b seen) int { return a.begin.Compare(b.begin) })
	of := map[string][]seen{}
	for _, s := range m.seen {
		q := m.queue(s.host)
		of[q] = append(of[q], s)
	}
	whole := map[string]int{}
	for q, all := range of {
		days := map[time.Time]int64{}
		for i, s := range all {
			if s.code != 0 {
				whole[s.url]++
			}
			var rule fetch.HostRule
			if m.o.Politeness.HostRule != nil {
				rule = m.o.Politeness.HostRule(q)
			}
			day := s.begin.UTC().Truncate(24 * time.Hour)
			if days[day]++; rule.Requests > 0 && days[day] > rule.Requests {
				t.Errorf("%s: request %d of the day", s.url, days[day])
			}
			if since := s.begin.Sub(day); len(rule.Windows) > 0 && (since >= 23*time.Hour || since >= 3*time.Minute && since < 5*time.Minute) {
				t.Errorf("%s at %v", s.url, since)
			}
			under := 1
			for _, b := range all[:i] {
				pause := m.o.Politeness.Delay
				if m.o.Politeness.ThreadsPerHost > 1 {
					switch pause = m.o.Politeness.MinDelay; {
					case pause == 0:
						pause = m.o.Politeness.Delay
					case pause < 0:
						pause = 0
					}
				}
				switch d := m.delay[b.host]; {
				case d == 0:
				case !strings.HasSuffix(b.url, ".txt") && !strings.HasSuffix(s.url, ".txt"):
					pause = d
				default: // robots.txt may lead there before the list says so
					pause = min(d, pause)
				}
				if s.begin.Sub(b.begin) < pause && m.o.Politeness.ThreadsPerHost > 1 && b.code != 0 {
					t.Fatalf("%v: %s begins %v after %s has begun, want %v", m, s.url, s.begin.Sub(b.begin), b.url, pause)
				}
				if b.end.After(s.begin) {
					under++
					continue
				}
				if b.end.Equal(s.begin) && m.o.Politeness.ThreadsPerHost > 1 {
					continue
				}
				page := !strings.HasSuffix(b.url, ".txt")
				if page && b.code != 0 {
					pause = max(pause, b.after)
					if m.kind(b.host) == 2 && !m.o.Politeness.NoRobots && !m.robotsLater(all, b) {
						pause = max(pause, 7*time.Second)
					}
				}
				if gap := s.begin.Sub(b.end); gap < pause {
					t.Fatalf("%v: %s begins %v after %s has ended, want %v", m, s.url, gap, b.url, pause)
				}
			}
			if under > m.o.Politeness.ThreadsPerHost {
				t.Errorf("%s is one of %d", s.url, under)
			}
		}
	}
}

// robotsLater says that a page was asked for before the robots.txt of its host
// was known, which only that of another may lead to.
func (m *mix) robotsLater(all []seen, b seen) bool {
	for _, s := range all {
		if s.host == b.host && strings.HasSuffix(s.url, "/robots.txt") && s.code != 0 && s.end.Before(b.begin) {
			return false
		}
	}
	return true
}

func (m *mix) String() string {
	return fmt.Sprintf("seed %d, %v, %d threads, %d a host, delay %v, MinDelay %v", m.seed, m.o.Politeness.By, m.o.Threads, m.o.Politeness.ThreadsPerHost, m.o.Politeness.Delay, m.o.Politeness.MinDelay)
}
