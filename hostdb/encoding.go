package hostdb

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"slices"
	"time"
)

// hostVersion is the first byte of an encoded host, and of encoded robots.txt
// files stored alone; detailVersion is that of the details of a host: its
// statistics and robots.txt files, which have a key of their own.
const (
	hostVersion   = 1
	detailVersion = 2
)

// Which fields of a host follow, in this order. The numbers are stored.
const (
	hasNextFetch = 1 << iota
	hasLastFetch
	hasGrants
	hasCrawlDelay
	hasBackoff
	hasElapsed
	hasSpent
	hasStats
	hasDetail // there are details, under their own key
	hasSignals
	hasSignalSums
	hasAllOfHost = 1<<iota - 1
)

// The same for the statistics of a host.
const (
	hasPages = 1 << iota
	hasHomepage
	hasScore
	hasDNSFailures
	hasConnectionFailures
	hasLastCheck
	hasOverdue
	hasFields
	hasCounted
	hasAllOfStatistics = 1<<iota - 1
)

// The same for one robots.txt file.
const (
	hasBody = 1 << iota
	hasFetched
	hasExpires
	hasFailingSince
	hasETag
	hasLastModified
	hasAllOfRobots = 1<<iota - 1
)

// ErrEncoding says that bytes are not those of an encoded host or of its details.
var ErrEncoding = errors.New("hostdb: not an encoded host")

// AppendHost appends a host without its name, which is its key, and without its
// details.
func AppendHost(b []byte, h *Host) []byte {
	return encode(append(b, hostVersion), func(c *coder) { c.host(h) })
}

// DecodeHost reads what AppendHost wrote, and whether it has details.
func DecodeHost(name string, b []byte) (h Host, side bool, err error) {
	if len(b) < 1 || b[0] != hostVersion {
		return h, false, ErrEncoding
	}
	c := coder{b: b[1:]}
	h.Name = name
	c.decode(hasAllOfHost, func(c *coder) { c.host(&h) })
	if c.bad || len(c.b) > 0 {
		return Host{}, false, ErrEncoding
	}
	return h, c.flags&hasDetail != 0, nil
}

func (c *coder) host(h *Host) {
	c.optionalTime(hasNextFetch, &h.NextFetch)
	c.optionalTime(hasLastFetch, &h.LastFetch)
	if c.has(hasGrants, len(h.Grants) > 0) {
		if n := c.count(len(h.Grants)); c.mode == reading {
			for ; n > 0 && !c.bad; n-- {
				h.Grants = append(h.Grants, time.Time{})
				c.time(&h.Grants[len(h.Grants)-1])
			}
		} else {
			for i := range h.Grants {
				c.time(&h.Grants[i])
			}
		}
	}
	optionalInt(c, hasCrawlDelay, &h.CrawlDelay)
	optionalInt(c, hasBackoff, &h.Backoff)
	optionalInt(c, hasElapsed, &h.Elapsed)
	if c.has(hasSpent, h.Spent != Spent{}) {
		c.spent(&h.Spent)
	}
	if c.has(hasStats, h.Stats != Stats{}) {
		s := &h.Stats
		ints(c, &s.Fetched, &s.NotModified, &s.Redirected, &s.Gone, &s.Failed, &s.RobotsDenied, &s.Bytes, &s.Failures)
	}
	c.has(hasDetail, HasDetail(h))
	l := &h.Signals
	if c.has(hasSignals, *l != SignalStats{}) {
		ints(c, &l.Hits, &l.False, &l.Misses)
		c.string(&l.Segment)
	}
	sums := [...]*float64{&l.Truth, &l.Tests, &l.Signals, &l.Expected, &l.Unsignalled, &l.ExpectedUnsignalled}
	if c.has(hasSignalSums, slices.ContainsFunc(sums[:], func(f *float64) bool { return math.Float64bits(*f) != 0 })) {
		for _, f := range sums {
			c.float64(f)
		}
	}
}

// spent is a day's spending on a host: whether there is a day, the day, and the counters.
func (c *coder) spent(s *Spent) {
	var day byte
	if !s.Day.IsZero() {
		day = 1
	}
	switch c.byte(&day); day {
	case 0:
	case 1:
		c.time(&s.Day)
	default:
		c.fail()
	}
	ints(c, &s.Requests, &s.Bytes)
}

// AppendDetail appends what changes rarely and may be large, so that a fetch
// from the host need not write it: the robots.txt files and the statistics. The details of
// a host without statistics are encoded as before statistics were introduced.
func AppendDetail(b []byte, h *Host) []byte {
	if !hasStatistics(h) {
		b = append(b, hostVersion)
	} else {
		b = encode(append(b, detailVersion), func(c *coder) { c.statistics(h) })
	}
	for i := range h.Robots {
		b = encode(b, func(c *coder) { c.robots(&h.Robots[i]) })
	}
	return b
}

// DecodeDetail reads what AppendDetail wrote into h, and retains no part of b.
func DecodeDetail(h *Host, b []byte) error {
	if err := BorrowDetail(h, b); err != nil {
		return err
	}
	for i := range h.Robots {
		h.Robots[i].Body = bytes.Clone(h.Robots[i].Body)
	}
	return nil
}

// BorrowDetail is like DecodeDetail, but the bodies in h are parts of b.
func BorrowDetail(h *Host, b []byte) error {
	if len(b) < 1 || b[0] != hostVersion && b[0] != detailVersion {
		return ErrEncoding
	}
	c := coder{b: b[1:]}
	if b[0] == detailVersion {
		c.decode(hasAllOfStatistics, func(c *coder) { c.statistics(h) })
	}
	var files []Robots
	for len(c.b) > 0 {
		var f Robots
		c.decode(hasAllOfRobots, func(c *coder) { c.robots(&f) })
		files = append(files, f)
	}
	if c.bad {
		return ErrEncoding
	}
	h.Robots = files
	return nil
}

func (c *coder) statistics(h *Host) {
	if p := &h.Pages; c.has(hasPages, *p != Pages{}) {
		ints(c, &p.Unfetched, &p.Fetched, &p.Gone, &p.RedirTemp, &p.RedirPerm, &p.NotModified, &p.Duplicate, &p.Orphan, &p.ParseFailed)
	}
	c.optionalString(hasHomepage, &h.Homepage)
	if c.has(hasScore, math.Float32bits(h.Score) != 0) {
		c.float32(&h.Score)
	}
	optionalInt(c, hasDNSFailures, &h.DNSFailures)
	optionalInt(c, hasConnectionFailures, &h.ConnectionFailures)
	c.optionalTime(hasLastCheck, &h.LastCheck)
	optionalInt(c, hasOverdue, &h.Overdue)
	if c.has(hasFields, len(h.Fields) > 0) {
		names := slices.Sorted(maps.Keys(h.Fields))
		n := c.count(len(names))
		for i := uint64(0); i < n && !c.bad; i++ {
			var name string
			if c.mode == writing {
				name = names[i]
			}
			c.string(&name)
			value := h.Fields[name]
			if c.float64(&value); c.mode == reading && !c.bad {
				if h.Fields == nil {
					h.Fields = map[string]float64{}
				}
				h.Fields[name] = value
			}
		}
	}
	c.optionalTime(hasCounted, &h.Counted)
}

func hasStatistics(h *Host) bool {
	var c coder
	c.statistics(h)
	return c.flags != 0
}

// HasDetail reports whether a host has details to encode.
func HasDetail(h *Host) bool { return len(h.Robots) > 0 || hasStatistics(h) }

func (c *coder) robots(f *Robots) {
	c.string(&f.Origin)
	ints(c, &f.Status)
	if c.has(hasBody, f.Body != nil) {
		c.bytes(&f.Body)
	}
	c.optionalTime(hasFetched, &f.Fetched)
	c.optionalTime(hasExpires, &f.Expires)
	c.optionalTime(hasFailingSince, &f.FailingSince)
	c.optionalString(hasETag, &f.ETag)
	c.optionalString(hasLastModified, &f.LastModified)
}

// SameDetail reports whether two hosts would have the same encoded details, or nearly.
func SameDetail(a, b *Host) bool {
	same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	return a.Pages == b.Pages && a.Homepage == b.Homepage && math.Float32bits(a.Score) == math.Float32bits(b.Score) &&
		a.DNSFailures == b.DNSFailures && a.ConnectionFailures == b.ConnectionFailures && a.LastCheck.Equal(b.LastCheck) &&
		a.Overdue == b.Overdue && a.Counted.Equal(b.Counted) && maps.EqualFunc(a.Fields, b.Fields, same) &&
		slices.EqualFunc(a.Robots, b.Robots, sameRobots)
}

// sameRobots reports whether two files would be stored alike, or nearly.
func sameRobots(a, b Robots) bool {
	return a.Origin == b.Origin && a.Status == b.Status && a.ETag == b.ETag && a.LastModified == b.LastModified &&
		(a.Body == nil) == (b.Body == nil) && bytes.Equal(a.Body, b.Body) &&
		a.Fetched.Equal(b.Fetched) && a.Expires.Equal(b.Expires) && a.FailingSince.Equal(b.FailingSince)
}
