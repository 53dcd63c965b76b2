package hostdb

import (
	"bytes"
	"encoding/binary"
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
	hasBusy
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
	flags := uint64(0)
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	set(hasNextFetch, !h.NextFetch.IsZero())
	set(hasLastFetch, !h.LastFetch.IsZero())
	set(hasBusy, len(h.Grants) > 0)
	set(hasCrawlDelay, h.CrawlDelay != 0)
	set(hasBackoff, h.Backoff != 0)
	set(hasElapsed, h.Elapsed != 0)
	set(hasSpent, h.Spent != Spent{})
	set(hasStats, h.Stats != Stats{})
	set(hasDetail, HasDetail(h))
	set(hasSignals, h.Signals != SignalStats{})
	for _, f := range signalSums(&h.Signals) {
		set(hasSignalSums, math.Float64bits(*f) != 0)
	}

	b = binary.AppendUvarint(append(b, hostVersion), flags)
	if flags&hasNextFetch != 0 {
		b = binary.AppendVarint(b, h.NextFetch.UnixMilli())
	}
	if flags&hasLastFetch != 0 {
		b = binary.AppendVarint(b, h.LastFetch.UnixMilli())
	}
	if flags&hasBusy != 0 {
		b = binary.AppendUvarint(b, uint64(len(h.Grants)))
		for _, t := range h.Grants {
			b = binary.AppendVarint(b, t.UnixMilli())
		}
	}
	if flags&hasCrawlDelay != 0 {
		b = binary.AppendVarint(b, int64(h.CrawlDelay))
	}
	if flags&hasBackoff != 0 {
		b = binary.AppendVarint(b, int64(h.Backoff))
	}
	if flags&hasElapsed != 0 {
		b = binary.AppendVarint(b, int64(h.Elapsed))
	}
	if flags&hasSpent != 0 {
		b = appendSpent(b, &h.Spent)
	}
	if flags&hasStats != 0 {
		for _, n := range counters(&h.Stats) {
			b = binary.AppendVarint(b, *n)
		}
	}
	if l := &h.Signals; flags&hasSignals != 0 {
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, l.Hits), l.False), l.Misses)
		b = append(binary.AppendUvarint(b, uint64(len(l.Segment))), l.Segment...)
	}
	if flags&hasSignalSums != 0 {
		for _, f := range signalSums(&h.Signals) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*f))
		}
	}
	return b
}

// signalSums are the sums of a SignalStats, in the order in which they are stored.
func signalSums(l *SignalStats) [6]*float64 {
	return [6]*float64{&l.Truth, &l.Tests, &l.Signals, &l.Expected, &l.Unsignalled, &l.ExpectedUnsignalled}
}

// appendSpent appends a day's spending on a host: whether there is a day, the
// day, and the counters.
func appendSpent(b []byte, s *Spent) []byte {
	b = append(b, 0)
	if !s.Day.IsZero() {
		b[len(b)-1] = 1
		b = binary.AppendVarint(b, s.Day.UnixMilli())
	}
	return binary.AppendVarint(binary.AppendVarint(b, s.Requests), s.Bytes)
}

func (r *fields) spent() (s Spent) {
	switch day := r.next(1); {
	case day == nil:
	case day[0] == 1:
		s.Day = r.time()
	case day[0] != 0:
		r.fail()
	}
	s.Requests, s.Bytes = r.int(), r.int()
	return s
}

// counters lists the counters in the order in which they are stored.
func counters(s *Stats) [8]*int64 {
	return [8]*int64{&s.Fetched, &s.NotModified, &s.Redirected, &s.Gone, &s.Failed, &s.RobotsDenied, &s.Bytes, &s.Failures}
}

// DecodeHost reads what AppendHost wrote, and whether it has details.
func DecodeHost(name string, b []byte) (h Host, side bool, err error) {
	r, flags := newFields(b, hasAllOfHost)
	h.Name = name
	if flags&hasNextFetch != 0 {
		h.NextFetch = r.time()
	}
	if flags&hasLastFetch != 0 {
		h.LastFetch = r.time()
	}
	if flags&hasBusy != 0 {
		for n := r.uint(); n > 0 && !r.bad; n-- {
			h.Grants = append(h.Grants, r.time())
		}
	}
	if flags&hasCrawlDelay != 0 {
		h.CrawlDelay = time.Duration(r.int())
	}
	if flags&hasBackoff != 0 {
		h.Backoff = int(r.int())
	}
	if flags&hasElapsed != 0 {
		h.Elapsed = time.Duration(r.int())
	}
	if flags&hasSpent != 0 {
		h.Spent = r.spent()
	}
	if flags&hasStats != 0 {
		for _, n := range counters(&h.Stats) {
			*n = r.int()
		}
	}
	if flags&hasSignals != 0 {
		h.Signals = SignalStats{Hits: r.int(), False: r.int(), Misses: r.int(), Segment: string(r.bytes())}
	}
	if flags&hasSignalSums != 0 {
		for _, f := range signalSums(&h.Signals) {
			*f = r.float64()
		}
	}
	if r.bad || len(r.b) > 0 {
		return Host{}, false, ErrEncoding
	}
	return h, flags&hasDetail != 0, nil
}

// AppendDetail appends what changes rarely and may be large, so that a fetch
// from the host need not write it: the robots.txt files and the statistics. The details of
// a host without statistics are encoded as before statistics were introduced.
func AppendDetail(b []byte, h *Host) []byte {
	flags := statistics(h)
	if flags == 0 {
		return appendRobots(append(b, hostVersion), h.Robots)
	}
	b = binary.AppendUvarint(append(b, detailVersion), flags)
	if flags&hasPages != 0 {
		for _, n := range pages(&h.Pages) {
			b = binary.AppendVarint(b, *n)
		}
	}
	if flags&hasHomepage != 0 {
		b = append(binary.AppendUvarint(b, uint64(len(h.Homepage))), h.Homepage...)
	}
	if flags&hasScore != 0 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(h.Score))
	}
	if flags&hasDNSFailures != 0 {
		b = binary.AppendVarint(b, h.DNSFailures)
	}
	if flags&hasConnectionFailures != 0 {
		b = binary.AppendVarint(b, h.ConnectionFailures)
	}
	if flags&hasLastCheck != 0 {
		b = binary.AppendVarint(b, h.LastCheck.UnixMilli())
	}
	if flags&hasOverdue != 0 {
		b = binary.AppendVarint(b, h.Overdue)
	}
	if flags&hasFields != 0 {
		b = binary.AppendUvarint(b, uint64(len(h.Fields)))
		for _, k := range slices.Sorted(maps.Keys(h.Fields)) {
			b = append(binary.AppendUvarint(b, uint64(len(k))), k...)
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(h.Fields[k]))
		}
	}
	if flags&hasCounted != 0 {
		b = binary.AppendVarint(b, h.Counted.UnixMilli())
	}
	return appendRobots(b, h.Robots)
}

// statistics returns which statistics a host has.
func statistics(h *Host) (flags uint64) {
	for i, on := range [...]bool{
		h.Pages != Pages{}, h.Homepage != "", math.Float32bits(h.Score) != 0, h.DNSFailures != 0, h.ConnectionFailures != 0,
		!h.LastCheck.IsZero(), h.Overdue != 0, len(h.Fields) > 0, !h.Counted.IsZero(),
	} {
		if on {
			flags |= 1 << i
		}
	}
	return flags
}

// HasDetail reports whether a host has details to encode.
func HasDetail(h *Host) bool { return len(h.Robots) > 0 || statistics(h) != 0 }

// pages lists the counters in the order in which they are stored.
func pages(p *Pages) [9]*int64 {
	return [9]*int64{&p.Unfetched, &p.Fetched, &p.Gone, &p.RedirTemp, &p.RedirPerm, &p.NotModified, &p.Duplicate, &p.Orphan, &p.ParseFailed}
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
func BorrowDetail(h *Host, b []byte) (err error) {
	if len(b) < 1 || b[0] != detailVersion {
		h.Robots, err = decodeRobots(b)
		return err
	}
	r := fields{b: b[1:]}
	flags := r.uint()
	if flags&^hasAllOfStatistics != 0 {
		return ErrEncoding
	}
	if flags&hasPages != 0 {
		for _, n := range pages(&h.Pages) {
			*n = r.int()
		}
	}
	if flags&hasHomepage != 0 {
		h.Homepage = string(r.bytes())
	}
	if flags&hasScore != 0 {
		if b := r.next(4); b != nil {
			h.Score = math.Float32frombits(binary.LittleEndian.Uint32(b))
		}
	}
	if flags&hasDNSFailures != 0 {
		h.DNSFailures = r.int()
	}
	if flags&hasConnectionFailures != 0 {
		h.ConnectionFailures = r.int()
	}
	if flags&hasLastCheck != 0 {
		h.LastCheck = r.time()
	}
	if flags&hasOverdue != 0 {
		h.Overdue = r.int()
	}
	if flags&hasFields != 0 {
		h.Fields = map[string]float64{}
		for n := r.uint(); n > 0 && !r.bad; n-- {
			k := string(r.bytes())
			if b := r.next(8); b != nil {
				h.Fields[k] = math.Float64frombits(binary.LittleEndian.Uint64(b))
			}
		}
	}
	if len(h.Fields) == 0 {
		h.Fields = nil
	}
	if flags&hasCounted != 0 {
		h.Counted = r.time()
	}
	if r.bad {
		return ErrEncoding
	}
	h.Robots, err = r.robots()
	return err
}

func appendRobots(b []byte, files []Robots) []byte {
	for i := range files {
		f := &files[i]
		flags := uint64(0)
		set := func(flag uint64, on bool) {
			if on {
				flags |= flag
			}
		}
		set(hasBody, f.Body != nil)
		set(hasFetched, !f.Fetched.IsZero())
		set(hasExpires, !f.Expires.IsZero())
		set(hasFailingSince, !f.FailingSince.IsZero())
		set(hasETag, f.ETag != "")
		set(hasLastModified, f.LastModified != "")

		b = binary.AppendUvarint(b, flags)
		b = append(binary.AppendUvarint(b, uint64(len(f.Origin))), f.Origin...)
		b = binary.AppendVarint(b, int64(f.Status))
		if flags&hasBody != 0 {
			b = append(binary.AppendUvarint(b, uint64(len(f.Body))), f.Body...)
		}
		if flags&hasFetched != 0 {
			b = binary.AppendVarint(b, f.Fetched.UnixMilli())
		}
		if flags&hasExpires != 0 {
			b = binary.AppendVarint(b, f.Expires.UnixMilli())
		}
		if flags&hasFailingSince != 0 {
			b = binary.AppendVarint(b, f.FailingSince.UnixMilli())
		}
		if flags&hasETag != 0 {
			b = append(binary.AppendUvarint(b, uint64(len(f.ETag))), f.ETag...)
		}
		if flags&hasLastModified != 0 {
			b = append(binary.AppendUvarint(b, uint64(len(f.LastModified))), f.LastModified...)
		}
	}
	return b
}

// decodeRobots reads robots.txt files stored alone. Their bodies are parts of
// b.
func decodeRobots(b []byte) ([]Robots, error) {
	if len(b) < 1 || b[0] != hostVersion {
		return nil, ErrEncoding
	}
	r := fields{b: b[1:]}
	return r.robots()
}

// robots reads what appendRobots wrote, to the end. Bodies are parts of it.
func (r *fields) robots() ([]Robots, error) {
	var out []Robots
	for len(r.b) > 0 {
		flags := r.uint()
		if flags&^hasAllOfRobots != 0 {
			return nil, ErrEncoding
		}
		f := Robots{Origin: string(r.bytes()), Status: int(r.int())}
		if flags&hasBody != 0 {
			f.Body = r.bytes()
		}
		if flags&hasFetched != 0 {
			f.Fetched = r.time()
		}
		if flags&hasExpires != 0 {
			f.Expires = r.time()
		}
		if flags&hasFailingSince != 0 {
			f.FailingSince = r.time()
		}
		if flags&hasETag != 0 {
			f.ETag = string(r.bytes())
		}
		if flags&hasLastModified != 0 {
			f.LastModified = string(r.bytes())
		}
		out = append(out, f)
	}
	if r.bad {
		return nil, ErrEncoding
	}
	return out, nil
}

// fields reads one field after another; after the first error it reads zeros.
type fields struct {
	b   []byte
	bad bool
}

func newFields(b []byte, known uint64) (r fields, flags uint64) {
	if len(b) < 1 || b[0] != hostVersion {
		return fields{bad: true}, 0
	}
	r.b = b[1:]
	flags = r.uint()
	if flags&^known != 0 {
		return fields{bad: true}, 0
	}
	return r, flags
}

func (r *fields) fail() { r.b, r.bad = nil, true }

func (r *fields) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *fields) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *fields) time() time.Time { return time.UnixMilli(r.int()).UTC() }

func (r *fields) float64() float64 {
	b := r.next(8)
	if len(b) < 8 {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func (r *fields) bytes() []byte { return r.next(r.uint()) }

// next returns the next n bytes; nil if there are fewer.
func (r *fields) next(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
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
