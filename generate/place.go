package generate

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// placer counts what each segment contains.
type placer interface {
	// place counts a URL in the first segment with room for it under c, of
	// which each may have limit, unless that is negative, and returns the
	// segment's number; -1 if there is none.
	place(c *counted, limit int) int
	// room reports whether there may be room for a URL under c.
	room(c *counted, limit int) bool
	// left returns the number of URLs under c for which there is room at most.
	left(c *counted, limit int) int
	// giveBack undoes a place.
	giveBack(c *counted, segment int)
	// full reports whether there is no room for anything.
	full() bool
}

// exactPlacer puts at most topN into each segment and at most limit of a key.
type exactPlacer struct {
	topN, segments int
	counts         tallies // of the segments
	limits         bool    // there may be limits
}

// tallies count something by segment. Those beyond the last are zero: there may
// be any number of segments, and only those that contain something take memory.
type tallies []int

func (t tallies) of(segment int) int {
	if segment < len(t) {
		return t[segment]
	}
	return 0
}

func (t *tallies) add(segment int) {
	for segment >= len(*t) {
		*t = append(*t, 0)
	}
	(*t)[segment]++
}

// all reports whether each of that many segments has at least n, which is above
// zero.
func (t tallies) all(segments, n int) bool { return len(t) == segments && slices.Min(t) >= n }

func (e *exactPlacer) place(c *counted, limit int) int {
	if c.placed == nil && e.limits {
		c.placed = tallies{}
	}
	if limit == 0 {
		return -1
	}
	for i := range e.segments {
		if e.topN > 0 && e.counts.of(i) >= e.topN || limit >= 0 && c.placed.of(i) >= limit {
			continue
		}
		e.counts.add(i)
		if c.placed != nil {
			c.placed.add(i)
		}
		return i
	}
	return -1
}

func (e *exactPlacer) room(c *counted, limit int) bool {
	return limit < 0 || c.placed == nil || limit > 0 && !c.placed.all(e.segments, limit)
}

func (e *exactPlacer) left(c *counted, limit int) int {
	n := math.MaxInt
	if limit <= math.MaxInt/e.segments {
		n = e.segments * limit
	}
	for _, had := range c.placed {
		n -= min(had, limit)
	}
	return n
}

func (e *exactPlacer) giveBack(c *counted, segment int) {
	e.counts[segment]--
	if c.placed != nil {
		c.placed[segment]--
	}
}

func (e *exactPlacer) full() bool { return e.topN > 0 && e.counts.all(e.segments, e.topN) }

// nutchPlacer is Nutch's, with one reducer.
type nutchPlacer struct {
	topN, segments int
	counts         tallies
	count, current int
}

type nutchHost struct{ segment, n int }

func (p *nutchPlacer) place(c *counted, limit int) int {
	top := p.topN
	if top <= 0 {
		top = math.MaxInt
	}
	if p.count == top { // and not full
		p.count = 0
		p.current++
	}
	at := p.current
	if limit > 0 {
		if c.nutch == nil {
			c.nutch = &nutchHost{segment: 1}
		}
		h := c.nutch
		h.n++
		for p.counts.of(h.segment-1) >= top && h.segment < p.segments {
			h.segment++
			h.n = 0 // not 1: the current URL is not counted
		}
		if h.n > limit {
			if h.segment == p.segments {
				return -1
			}
			h.segment++
			h.n = 1
		}
		at = h.segment
	}
	p.counts.add(at - 1)
	p.count++
	return at - 1
}

func (p *nutchPlacer) room(*counted, int) bool { return true }
func (p *nutchPlacer) left(*counted, int) int  { return math.MaxInt }
func (p *nutchPlacer) giveBack(*counted, int)  {} // Nutch never notices
func (p *nutchPlacer) full() bool {
	return p.topN > 0 && p.count == p.topN && p.current == p.segments
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
