package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol"
)

// resolver answers after a while, in another order each time.
type resolver struct {
	addrs map[string][]string
	takes time.Duration
	mu    sync.Mutex
	asked map[string]int
}

func (r *resolver) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	r.asked[host]++
	var out []netip.Addr
	for _, a := range r.addrs[host] {
		out = append(out, netip.MustParseAddr(a))
	}
	if strings.HasPrefix(host, "none.") {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "127.0.0.1:53", IsNotFound: true}
	}
	if strings.HasPrefix(host, "odd.") {
		return nil, errors.New("what\x00?")
	}
	if n := len(out); n > 0 {
		out = append(out[r.asked[host]%n:], out[:r.asked[host]%n]...)
	}
	return out, nil
}

func TestQueuesByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := &resolver{takes: 2 * time.Second, addrs: map[string][]string{
			"a.example.test": {"192.0.2.1"}, "b.example.test": {"::ffff:192.0.2.1"}, "c.example.test": {"192.0.2.9", "192.0.2.1", "2001:db8::1"},
			"d.example.test": {"2001:db8::7"}, "e.example.test": {"192.0.2.2"},
		}}
		one := slices.Concat(pageURLs("a.example.test", 3), pageURLs("B.example.test.:8080", 3), pageURLs("c.example.test", 3), pageURLs("192.0.2.1", 2), pageURLs("[::ffff:c000:201]", 2))
		urls := slices.Concat(one, pageURLs("d.example.test", 2), pageURLs("[2001:db8::7]", 2), pageURLs("e.example.test", 2), pageURLs("none.example.test", 3), pageURLs("odd.example.test", 1), pageURLs("empty.example.test", 1))
		s := &site{latency: 700 * time.Millisecond}
		r := newRig(t, s, urls...)
		r.o.Politeness.By, r.o.Politeness.Lookup = hostdb.ByIP, res.Lookup
		rep := r.run(seg)
		if rep.Visits[protocol.Success] != len(urls)-5 || rep.Visits[protocol.Failed] != 5 {
			t.Errorf("%v", rep.Visits)
		}
		at := func(u string) string {
			name := hostdb.ByIP.Key(u)
			addrs := res.addrs[name]
			switch {
			case len(addrs) == 0:
				return strings.Trim(name, "[]")
			case addrs[0] == "::ffff:192.0.2.1" || addrs[0] == "192.0.2.9":
				return "192.0.2.1"
			}
			return strings.Trim(addrs[0], "[]")
		}
		by := map[string][]ask{}
		for _, a := range s.of("") {
			by[at(a.url)] = append(by[at(a.url)], a)
		}
		if len(by) != 3 || len(by["192.0.2.1"]) != 13+5 {
			t.Errorf("%d addresses, %d requests to one", len(by), len(by["192.0.2.1"]))
		}
		for addr, asks := range by {
			for _, gap := range gaps(t, asks) {
				if gap != 5*time.Second {
					t.Errorf("%s: pause of %v", addr, gap)
				}
			}
			if h := hostOf(t, r, hostdb.AddrKey(netip.MustParseAddr(addr))); h.Stats.Fetched == 0 || len(h.Grants) > 0 {
				t.Errorf("%+v", h)
			}
		}
		for url, want := range map[string]string{
			"http://none.example.test/1":  "the address could not be looked up: no such host",
			"http://odd.example.test/0":   "the address could not be looked up: what ?",
			"http://empty.example.test/0": "the host has no address",
		} {
			if got := r.visits(seg)[url].Outcome; got.Reason != want || got.Code != protocol.Failed {
				t.Errorf("%s: %+v", url, got)
			}
		}
		for host, n := range res.asked {
			if n != 1 {
				t.Errorf("%s was looked up %d times", host, n)
			}
		}
	})
}

// A resolver that hangs delays only the hosts that wait for it.
func TestLookupThatHangsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res := &resolver{addrs: map[string][]string{}}
		urls := pageURLs("a.example.test", 5)
		res.addrs["a.example.test"] = []string{"192.0.2.1"}
		for i := range 9 {
			urls = append(urls, fmt.Sprintf("http://slow%d.example.test/", i))
		}
		s := &site{latency: 100 * time.Millisecond}
		r := newRig(t, s, urls...)
		r.o.Threads, r.o.Politeness.By = 8, hostdb.ByIP
		r.o.Politeness.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			if strings.HasPrefix(host, "slow") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return res.Lookup(ctx, host)
		}
		began := time.Now()
		rep := r.run(seg)
		if rep.Visits[protocol.Success] != 5 || rep.Visits[protocol.Failed] != 9 {
			t.Errorf("%v", rep.Visits)
		}
		asks := s.of("a.example.test")
		if took := asks[len(asks)-1].end.Sub(began); took > 30*time.Second {
			t.Errorf("%v", took)
		}
		for _, gap := range gaps(t, asks) {
			if gap != 5*time.Second {
				t.Errorf("pause of %v", gap)
			}
		}
	})
}

func TestLookupThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{}, pageURLs(host, 2)...)
		r.o.Politeness.By = hostdb.ByIP
		r.o.Politeness.Lookup = func(context.Context, string) ([]netip.Addr, error) { panic("x") }
		if rep := r.run(seg); rep.Visits[protocol.Failed] != 2 {
			t.Errorf("%v", rep.Visits)
		}
	})
}

// Ten thousand names, however they are spelled, are one server if they are at one
// address.
func TestTenThousandNamesAtOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := 10_000
		if testlevel.Race {
			names = 1000
		}
		var urls []string
		for i := range names {
			urls = append(urls, fmt.Sprintf([]string{"http://n%d.example.test/", "https://N%d.Example.Test.:8443/", "http://n%d.d%[1]d.test:81/", "HTTP://n%d.xn--bcher-kva.test/"}[i%4], i))
		}
		s := &site{latency: time.Second}
		r := newRig(t, s, urls...)
		r.o.Politeness.By, r.o.Politeness.NoRobots, r.o.Parser = hostdb.ByIP, true, nil
		r.o.Politeness.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1")}, nil
		}
		if rep := r.run(seg); rep.Visits[protocol.Success] != len(urls) {
			t.Errorf("%v", rep.Visits)
		}
		for i, gap := range gaps(t, s.of("")) {
			if gap != 5*time.Second {
				t.Fatalf("pause %d is %v", i, gap)
			}
		}
	})
}
