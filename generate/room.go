package generate

import (
	"math"
	"slices"
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
