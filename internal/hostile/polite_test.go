package hostile_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// politeRows are about what many hosts do together.
func politeRows() []row { return []row{w3workers(), r5address()} }

// w3workers has more hosts that never end than there are workers.
func w3workers() row {
	const more, each = workers + workers/2, 2
	r := row{
		id: "W3b", input: "more hosts than there are workers, whose pages come a byte at a time, or never", domain: "w3b.test",
		outcome: "a slow visit moves to the spare workers, some of which are kept for hosts that answer quickly",
		figure:  fmt.Sprintf("%d servers with %d such pages each, %d workers: B4", more, each, workers),
		edit: func(c *crawl) {
			c.opts.Fetch.SlowVisit, c.opts.Fetch.Politeness.FailureDelay, c.opts.Fetch.Politeness.MaxFailures = pause/2, -1, -1
		},
	}
	for i := range more {
		handle := after(func(c *conn) { c.request() })
		if i%2 == 0 {
			handle = dripping(ok, "X")
		}
		r.sites = append(r.sites, site{name: fmt.Sprintf("d%d", i), handle: handle, code: protocol.Failed})
		for page := range each - 1 {
			r.seeds = append(r.seeds, fmt.Sprintf("http://d%d.w3b.test/%d", i, page))
		}
	}
	return r
}

// r5address has many domains at one address.
func r5address() row {
	const names = 200
	quiet := pause / 10
	r := row{
		id: "R5b", input: "two hundred names of as many domains at one address, with ports, upper case and trailing dots", domain: "r5b.test",
		outcome: "crawled by address, they share one queue, robots.txt and all", figure: fmt.Sprintf("%d requests: 0 gaps shorter than the pause, less a millisecond", 2*names+2),
	}
	r.sites = []site{{name: "one", handle: replying(func(*http.Request) string { return "" })}}
	for i := range names {
		r.seeds = append(r.seeds, fmt.Sprintf([]string{"http://n%d.d%[1]d.test/", "http://N%d.D%[1]d.Test./", "http://n%d.d%[1]d.test:8080/", "HTTP://n%d.D%[1]d.test/x"}[i%4], i))
	}
	r.edit = func(c *crawl) {
		at := netip.MustParseAddrPort(c.servers["one"].addr)
		all := httpproto.ConnectTo{ToHost: at.Addr().String(), ToPort: at.Port()}
		c.http.ConnectTo[len(c.http.ConnectTo)-1] = all
		c.opts.Fetch.Politeness.By, c.opts.Fetch.Politeness.Delay = hostdb.ByIP, quiet
		c.opts.Fetch.Politeness.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			if strings.HasPrefix(host, "n") || strings.HasPrefix(host, "one.") {
				return []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, nil
			}
			return []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + len(host)%50 + int(host[len(host)/2])%9)})}, nil
		}
	}
	r.check = func(t testing.TB, c *crawl) {
		all := slices.SortedFunc(slices.Values(c.servers["one"].seen), func(a, b seen) int { return a.at.Compare(b.at) })
		for i := 1; i < len(all); i++ {
			if gap := all[i].at.Sub(all[i-1].at); gap < quiet-time.Millisecond {
				t.Errorf("%v between %s and %s", gap, all[i-1].path, all[i].path)
			}
		}
		if len(all) != 2*names+2 {
			t.Errorf("%d requests", len(all))
		}
	}
	return r
}
