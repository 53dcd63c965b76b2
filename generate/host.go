package generate

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/urlfilter"
)

// A hostState is what a run keeps about a host that has candidates.
type hostState struct {
	name   string
	domain *domain // nil until requested
	// limited is what all URLs of the host count as for MaxPerHost; nil if that
	// depends on the URL.
	limited *counted
	// spelled is what a URL of the host counts as if it is its own normal form; nil
	// until there is one.
	spelled *counted
}

// A counted is what MaxPerHost counts, a host or whatever By says.
type counted struct {
	key      string
	placed   tallies // by exactPlacer; nil if it was never asked
	nutch    *nutchHost
	window   *hostWindow // nil outside one
	affected bool        // more of it was found than its limit
	turn     uint32      // of the next on a list
}

// hostOf returns the state of the host of a URL.
func (j *job) hostOf(url string) *hostState {
	name := crawldb.Host(url)
	h := j.hosts[name]
	if h == nil {
		h = &hostState{name: strings.Clone(name)}
		if key, ok := j.limitKey(name); ok && (j.o.MaxPerHost > 0 || j.o.HostLimit != nil) {
			h.limited = j.countedAs(key)
		}
		j.hosts[h.name] = h
	}
	return h
}

// limitKey returns what all URLs of a host count as; false if that depends on
// the URL.
func (j *job) limitKey(host string) (key string, ok bool) {
	if j.o.Rules != nil && !j.o.NoNormalize && !j.o.Rules.KeepsHost(urlfilter.HostCount, host) {
		return "", false
	}
	if j.o.By == hostdb.ByDomain {
		return j.countKey(host), true
	}
	return host, true
}

// countedAs returns the counter for that key.
func (j *job) countedAs(key string) *counted {
	c := j.counts[key]
	if c == nil {
		c = &counted{key: strings.Clone(key)}
		j.counts[c.key] = c
	}
	return c
}

// countedOf returns what a URL of the host counts as, given its spelling in the scope.
func (j *job) countedOf(h *hostState, url, spelled string) *counted {
	if url != spelled {
		return j.countedAs(j.countKey(crawldb.Host(spelled)))
	}
	if h.spelled == nil {
		h.spelled = j.countedAs(j.countKey(h.name))
	}
	return h.spelled
}

// countKey returns what the URLs of a host count as for MaxPerHost.
func (j *job) countKey(host string) string {
	if j.o.NutchCompat {
		return j.o.By.NutchHostKey(host)
	}
	return j.o.By.HostKey(host)
}

// hostInfo is what the expressions return for a host.
type hostInfo struct {
	limit int // negative: none
	delay time.Duration
}

// host returns what applies to the host of a URL.
func (j *job) host(ctx context.Context, url string) (hostInfo, error) {
	info := hostInfo{limit: -1}
	if j.o.MaxPerHost > 0 {
		info.limit = j.o.MaxPerHost
	}
	if j.o.Hosts == nil || j.o.HostLimit == nil && j.o.HostDelay == nil {
		return info, nil
	}
	name := hostdb.ByHost.Key(url)
	if known, ok := j.known[name]; ok {
		return known, nil
	}
	if name == "" {
		return info, nil
	}
	h, err := j.o.Hosts.Get(ctx, name)
	switch {
	case errors.Is(err, hostdb.ErrNotFound):
	case err != nil:
		return info, err
	default:
		j.evaluate(&h, &info)
	}
	j.known[name] = info
	return info, nil
}

// evaluate asks the expressions about a host. Where one fails, what info has stays.
func (j *job) evaluate(h *hostdb.Host, info *hostInfo) {
	if j.o.HostLimit != nil {
		limit, err := j.o.HostLimit(h)
		switch n := round(limit, math.MaxInt32); {
		case err != nil:
			j.failed(err)
		case n < 0 || n == 0 && j.o.NutchCompat:
			info.limit = -1
		default:
			info.limit = int(n)
		}
	}
	if j.o.HostDelay != nil {
		delay, err := j.o.HostDelay(h)
		switch ms := round(delay, int64(math.MaxInt64/time.Millisecond)); {
		case err != nil:
			j.failed(err)
		case ms > 0:
			info.delay = time.Duration(ms) * time.Millisecond
		case j.o.NutchCompat:
			info.delay = -time.Millisecond
		}
	}
}

// round rounds half up, as Java does; NaN becomes 0.
func round(f float64, most int64) int64 {
	switch f = math.Floor(f + 0.5); {
	case f >= float64(most):
		return most
	case f <= -float64(most):
		return -most
	case f != f:
		return 0
	}
	return int64(f)
}
