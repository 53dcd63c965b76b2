package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/robots"
)

// A hostile mix of 10,000 requests, by two fetches that share a host db and are
// interrupted three times: no host, domain or address is asked sooner than its
// delay, its Crawl-delay, its failures or its Retry-After allow, counted from the
// end of the last request to it, and never twice at once.
func TestNoGapIsShorterThanTheRule(t *testing.T) {
	for _, by := range []hostdb.By{hostdb.ByHost, hostdb.ByDomain, hostdb.ByIP} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { proveGaps(t, by) })
		})
	}
}

// witness is a web that notes which host was asked when, under one name for all spellings of
// a host.
type witness struct {
	t    *testing.T
	name map[string]string // of a host as it is spelled
	mu   sync.Mutex
	seen []seen
}

type seen struct {
	url, host  string
	begin, end time.Time
	code       protocol.Code // zero if it was cut off
	after      time.Duration
}

func hashOf(s string) int {
	h := fnv.New32a()
	h.Write([]byte(s))
	return int(h.Sum32() >> 1)
}

// delayOf is the Crawl-delay of a host.
func delayOf(host string) time.Duration {
	if hashOf(host)%5 == 0 {
		return 7 * time.Second
	}
	return 0
}

func (w *witness) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	_, rest, _ := strings.Cut(r.URL, "://")
	spelled, path, _ := strings.Cut(rest, "/")
	s := seen{url: r.URL, host: w.name[spelled], begin: time.Now()}
	if s.host == "" {
		w.t.Errorf("%s: a host that nobody knows", r.URL)
	}
	n := hashOf(r.URL)
	resp := body("text/html", "<p>x")
	takes := time.Duration(n%1500) * time.Millisecond
	if n%211 == 0 {
		takes = 30 * time.Second
	}
	switch {
	case path == "robots.txt" && delayOf(s.host) > 0:
		resp = body("text/plain", "User-agent: *\nCrawl-delay: 7\n")
	case path == "robots.txt" && hashOf(s.host)%7 == 1:
		resp = code(protocol.MovedTemp)
		resp.Outcome.Location = "http://h9.d1.example.com/robots.txt"
	case path == "robots.txt":
		resp = code(protocol.NotFound)
	case n%13 == 0:
		resp = code(protocol.Failed)
	case n%29 == 0:
		resp = code(protocol.Busy)
		resp.Outcome.RetryAfter = time.Duration(n%40) * time.Second
	case n%17 == 0:
		resp = code(protocol.MovedPerm)
		resp.Outcome.Location = "http://h0.d0.example.com/to"
	case n%19 == 0:
		resp = code(protocol.NotFound)
	}
	select {
	case <-time.After(takes):
		s.code, s.after = resp.Outcome.Code, resp.Outcome.RetryAfter
	case <-ctx.Done():
	}
	s.end = time.Now()
	w.mu.Lock()
	w.seen = append(w.seen, s)
	w.mu.Unlock()
	if s.code == 0 {
		return protocol.Response{}, ctx.Err()
	}
	return resp, nil
}

func proveGaps(t *testing.T, by hostdb.By) {
	const hosts = 40
	requests := 3400 // times three
	if raceEnabled { // which cannot bear so many events
		requests = 600
	}
	rnd := rand.New(rand.NewPCG(4, 2))
	w := &witness{t: t, name: map[string]string{}}
	addr := func(host string) string { return fmt.Sprintf("192.0.2.%d", hashOf(host)%20) }
	var lists [2][]string
	for i := range requests {
		h := rnd.IntN(hosts)
		host := fmt.Sprintf("h%d.d%d.example.com", h, h%8)
		spelled := host
		switch rnd.IntN(6) {
		case 0:
			spelled = strings.ToUpper(host)
		case 1:
			spelled = host + "."
		case 2:
			spelled = strings.Replace(host, "example", "ｅｘａｍｐｌｅ", 1)
		case 3:
			if by == hostdb.ByIP {
				host, spelled = addr(host), "[::ffff:"+addr(host)+"]"
			}
		}
		spelled += []string{"", ":80", ":8080"}[rnd.IntN(3)]
		w.name[spelled], w.name[strings.ToLower(spelled)] = host, host
		w.name[strings.TrimSuffix(strings.ToLower(spelled), ":80")] = host
		lists[i%2] = append(lists[i%2], fmt.Sprintf("%s://%s/%d", []string{"http", "https"}[rnd.IntN(2)], spelled, i))
	}
	w.name["h9.d1.example.com"], w.name["h0.d0.example.com"] = "h9.d1.example.com", "h0.d0.example.com"
	queue := func(host string) string {
		switch {
		case by == hostdb.ByDomain:
			return "example.com"
		case by == hostdb.ByIP && strings.HasPrefix(host, "h"):
			return addr(host)
		}
		return host
	}

	r := newRig(t, &site{})
	for i, l := range lists {
		r.list(fmt.Sprint("list", i), l...)
	}
	r.o.Protocol, r.o.Parser, r.o.Politeness.By = w, nil, by
	r.o.Politeness.MaxFailures, r.o.Politeness.MaxWait, r.o.Threads = -1, 100*time.Hour, 20
	r.o.Politeness.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::ffff:" + addr(host))}, nil
	}
	const delay = 2 * time.Second
	r.o.Politeness.Delay = delay
	for life := range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		if life < 3 {
			ctx, cancel = context.WithTimeout(t.Context(), time.Duration(2+life)*time.Minute)
		}
		var wg sync.WaitGroup
		for i := range lists {
			o := r.o
			o.Robots = &robots.Cache{Protocol: w, Hosts: o.Hosts, Product: "test"}
			wg.Go(func() {
				if _, err := fetch.Run(ctx, r.db.Segments(), fmt.Sprint("list", i), o); err != nil && (life == 3 || !errors.Is(err, context.DeadlineExceeded)) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		cancel()
	}

	slices.SortStableFunc(w.seen, func(a, b seen) int { return a.begin.Compare(b.begin) })
	type state struct {
		next, end time.Time
		last      string
		failed    int // what is left of it
	}
	of := map[string]*state{}
	longest := time.Duration(0)
	for _, s := range w.seen {
		q := of[queue(s.host)]
		if q == nil {
			q = &state{}
			of[queue(s.host)] = q
		}
		if s.begin.Before(q.next) {
			t.Errorf("%s was asked %v after %s had ended, and %v too early", s.url, s.begin.Sub(q.end), q.last, q.next.Sub(s.begin))
		}
		longest = max(longest, q.next.Sub(q.end))
		pause := max(delay, delayOf(s.host))
		if s.code == 0 || strings.HasSuffix(s.url, "/robots.txt") {
			if delayOf(s.host) > 0 && s.code == 0 {
				pause = delay // it is not known yet, perhaps
			}
		} else {
			if s.begin.After(q.next.Add(30 * time.Minute)) {
				q.failed = 0
			}
			if s.code == protocol.Failed || s.code == protocol.Busy {
				q.failed = min(q.failed+1, 13)
			} else {
				q.failed = max(q.failed-1, 0)
			}
			if q.failed > 0 {
				pause = max(pause, min(time.Hour, pause<<(q.failed-1)))
			}
			pause = max(pause, s.after)
		}
		q.next, q.end, q.last = s.end.Add(pause), s.end, s.url
		if s.end.Before(s.begin) {
			t.Fatal(s)
		}
	}
	if want := map[hostdb.By]int{hostdb.ByHost: hosts, hostdb.ByDomain: 1, hostdb.ByIP: 20}[by]; len(of) > want || len(of) < want*3/4 || len(w.seen) < requests {
		t.Errorf("%d requests to %d queues", len(w.seen), len(of))
	}
	t.Logf("%d requests to %d queues, the longest pause that was due %v, over %v", len(w.seen), len(of), longest, w.seen[len(w.seen)-1].end.Sub(w.seen[0].begin))
}
