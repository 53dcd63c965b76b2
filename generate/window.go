package generate

import (
	"context"
	"math"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/urlfilter"
)

// How many candidates are examined to divide the room for some: twice as many,
// plus this number.
const (
	windowFactor = 2
	windowExtra  = 4096
)

// windowSize is how many candidates are examined together, so that the parts of a domain can
// take turns: all of them if all are selected.
func (j *job) windowSize() int {
	const most = math.MaxInt / 2
	if j.o.TopN <= 0 || j.o.TopN > (most-windowExtra)/windowFactor/j.o.Segments {
		return most
	}
	return windowFactor*j.o.TopN*j.o.Segments + windowExtra
}

// hostWindow is what a window holds of one host, or of whatever By says.
type hostWindow struct {
	left    int      // how many there is room for
	passed  int      // how many have passed the rules
	urls    []string // those not checked yet
	whole   bool     // its domain is not divided
	divided bool
}

// enough reports whether the URLs that have passed the rules take all the room.
func (w *hostWindow) enough() bool { return w != nil && w.whole && w.passed >= w.left }

// countInWindow counts a candidate of a host in a window. Once the window has as many of a host as
// there is room for, and the parts of its domain do not take turns, more of them need not be
// checked: they would be rejected anyway.
func (j *job) countInWindow(ctx context.Context, url string, h *hostState) error {
	limit := j.limitOf(h.name)
	if limit < 0 || h.limited == nil || h.name == "" || j.o.MaxPerPart > 0 {
		return nil
	}
	w := h.limited.window
	if w == nil {
		w = &hostWindow{left: j.place.left(h.limited, limit)}
		h.limited.window = w
		j.windowed = append(j.windowed, h.limited)
	}
	if w.divided || w.enough() {
		return nil
	}
	w.urls = append(w.urls, url)
	if w.passed+len(w.urls) < w.left {
		return nil
	}
	if !w.whole {
		domain := j.domain(h)
		account, err := j.account(ctx, domain)
		if err != nil {
			return err
		}
		// Hosts that count as one may be of several domains.
		w.divided = account.Visits >= newcomer || j.o.By == hostdb.ByDomain && domain.name != h.limited.key
		if w.whole = !w.divided; w.divided {
			w.urls = nil
			return nil
		}
	}
	for _, u := range w.urls {
		ok, err := j.admits(ctx, u)
		if err != nil {
			return err
		}
		if ok {
			_, ok = j.spelling(urlfilter.HostCount, u)
		}
		if ok {
			w.passed++
		}
	}
	w.urls = w.urls[:0]
	return nil
}

// clearWindow forgets what the window held.
func (j *job) clearWindow() {
	for _, c := range j.windowed {
		c.window = nil
	}
	j.windowed = j.windowed[:0]
}

// limitOf returns how many URLs of a host may be selected for each segment, as far as is
// known; negative if there is no limit.
func (j *job) limitOf(host string) int {
	if h, ok := j.known[host]; ok {
		return h.limit
	}
	if j.o.MaxPerHost <= 0 || j.o.HostLimit != nil {
		return -1
	}
	return j.o.MaxPerHost
}

// want reports whether a host has room left in any segment, as far as is known.
func (j *job) want(host string) bool {
	limit := j.limitOf(host)
	if limit < 0 {
		return true
	}
	var c *counted
	if h := j.hosts[host]; h != nil {
		c = h.limited
	} else if key, ok := j.limitKey(host); ok { // it may never be a candidate: keep nothing
		c = j.counts[key]
	}
	return c == nil || j.place.room(c, limit) && !c.window.enough()
}
