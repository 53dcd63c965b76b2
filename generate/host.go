package generate

import (
	"strings"

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
	waiting  *waiting // in a window
	affected bool     // more of it was found than its limit
	turn     uint32   // of the next on a list
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
