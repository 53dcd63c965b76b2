package generate

import (
	"context"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/urlfilter"
)

// waiting is what a window holds of one host, or whatever By says.
type waiting struct {
	left    int      // what there is room for
	passed  int      // what has passed the rules
	urls    []string // of which they were not asked
	whole   bool     // its domain is not divided
	divided bool
}

// enough reports whether what has passed the rules takes all the room there is.
func (w *waiting) enough() bool { return w != nil && w.whole && w.passed >= w.left }

// lookAt counts a candidate that a window holds, with its host. Once the window has as much of a
// host as there is room for, and the parts of its domain do not take turns, there is
// no need to look at more of it: that would be turned away.
func (j *job) lookAt(ctx context.Context, url, host string) error {
	key, limit := j.limitOf(host)
	if limit < 0 || host == "" || j.o.MaxPerPart > 0 {
		return nil
	}
	w := j.waiting[key]
	if w == nil {
		w = &waiting{left: j.place.left(key, limit)}
		j.waiting[key] = w
	}
	if w.divided || w.enough() {
		return nil
	}
	w.urls = append(w.urls, url)
	if w.passed+len(w.urls) < w.left {
		return nil
	}
	if !w.whole {
		domain := j.domain(host)
		account, err := j.account(ctx, domain)
		if err != nil {
			return err
		}
		// Hosts that count as one may be of several domains.
		w.divided = account.Visits >= newcomer || j.o.By == hostdb.ByDomain && domain.name != key
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

// limitOf returns what a host counts as, and how many of it may be selected for each
// segment, as far as is known; a negative number if there is no limit.
func (j *job) limitOf(host string) (key string, limit int) {
	limit = j.o.MaxPerHost
	if limit <= 0 {
		limit = -1
	}
	if h, ok := j.known[host]; ok {
		limit = h.limit
	} else if j.o.HostLimit != nil {
		return host, -1
	}
	if limit >= 0 && j.o.Rules != nil && !j.o.NoNormalize && !j.o.Rules.KeepsHost(urlfilter.HostCount, host) {
		return host, -1 // only the URL tells what it counts as
	}
	if limit >= 0 && j.o.By == hostdb.ByDomain {
		host = j.countKey("http://" + host + "/")
	}
	return host, limit
}

// want says whether a host has room left in any segment, as far as is known.
func (j *job) want(host string) bool {
	key, limit := j.limitOf(host)
	return limit < 0 || j.place.room(key, limit) && !j.waiting[key].enough()
}
