package httpproto

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/internal/recent"
)

const (
	// maxLookups is how many hosts have their addresses cached: about 2 MiB.
	maxLookups = 10_000
	// maxHost is the longest host that is cached; no name in DNS is longer.
	maxHost = 255
)

// lookups caches the addresses of hosts. It makes no promise about them: each
// is guarded again whenever it is dialled, and the addresses of a host are
// dropped if none of them could be.
type lookups struct {
	mu    sync.Mutex
	hosts recent.Map[lookup]
}

type lookup struct {
	addrs []netip.Addr
	until time.Time
}

// get returns the addresses of a host that are still valid; nil if none are known.
func (l *lookups) get(host string, now time.Time) []netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.hosts.Get(host)
	if ok && !now.Before(k.until) {
		l.hosts.Delete(host)
		return nil
	}
	return k.addrs
}

func (l *lookups) add(host string, k lookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts.Max = maxLookups
	l.hosts.Put(host, k)
}

func (l *lookups) forget(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts.Delete(host)
}

// Lookup returns the addresses of a host in the order in which Fetch would dial
// them, including those it may not dial; for a host that ConnectTo redirects,
// those of the new target.
func (c *Client) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	host, _, _, err := c.connectTo(host, "80")
	if err != nil {
		return nil, fmt.Errorf("httpproto: look up %q: %w", host, err)
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{a}, nil
	}
	addrs, err := c.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("httpproto: look up %q: %w", host, err)
	}
	return slices.Clone(addrs), nil
}

// lookup returns addresses of a host, at most maxAddrs. Failures are not
// cached.
func (c *Client) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	host = strings.ToLower(host)
	if addrs := c.lookups.get(host, time.Now()); addrs != nil {
		return addrs, nil
	}
	addrs, err := c.o.Resolver(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	addrs = slices.Clone(addrs)
	if c.o.Ascending {
		slices.SortFunc(addrs, func(a, b netip.Addr) int { return a.Unmap().Compare(b.Unmap()) })
	}
	addrs = addrs[:min(len(addrs), maxAddrs)]
	if c.o.LookupTime > 0 && len(addrs) > 0 && len(host) <= maxHost {
		c.lookups.add(host, lookup{addrs, time.Now().Add(c.o.LookupTime)})
	}
	return addrs, nil
}
