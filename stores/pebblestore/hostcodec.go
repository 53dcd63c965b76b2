package pebblestore

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// hostVersion is the first byte of an encoded host and of encoded robots.txt
// files.
const hostVersion = 1

// Which fields of a host follow, in this order. The numbers are stored.
const (
	hasNextFetch = 1 << iota
	hasLastFetch
	hasBusyUntil
	hasCrawlDelay
	hasBackoff
	hasStats
	hasRobots    // under a key of their own
	hasAllOfHost = 1<<iota - 1
)

// The same for one robots.txt file.
const (
	hasBody = 1 << iota
	hasFetched
	hasExpires
	hasFailingSince
	hasAllOfRobots = 1<<iota - 1
)

var errHost = errors.New("not an encoded host")

// appendHost appends a host without its name, which is its key, and without its
// robots.txt files.
func appendHost(b []byte, h *hostdb.Host) []byte {
	flags := uint64(0)
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	set(hasNextFetch, !h.NextFetch.IsZero())
	set(hasLastFetch, !h.LastFetch.IsZero())
	set(hasBusyUntil, !h.BusyUntil.IsZero())
	set(hasCrawlDelay, h.CrawlDelay != 0)
	set(hasBackoff, h.Backoff != 0)
	set(hasStats, h.Stats != hostdb.Stats{})
	set(hasRobots, len(h.Robots) > 0)

	b = binary.AppendUvarint(append(b, hostVersion), flags)
	if flags&hasNextFetch != 0 {
		b = binary.AppendVarint(b, h.NextFetch.UnixMilli())
	}
	if flags&hasLastFetch != 0 {
		b = binary.AppendVarint(b, h.LastFetch.UnixMilli())
	}
	if flags&hasBusyUntil != 0 {
		b = binary.AppendVarint(b, h.BusyUntil.UnixMilli())
	}
	if flags&hasCrawlDelay != 0 {
		b = binary.AppendVarint(b, int64(h.CrawlDelay))
	}
	if flags&hasBackoff != 0 {
		b = binary.AppendVarint(b, int64(h.Backoff))
	}
	if flags&hasStats != 0 {
		for _, n := range counters(&h.Stats) {
			b = binary.AppendVarint(b, *n)
		}
	}
	return b
}

// counters lists the counters in the order in which they are stored.
func counters(s *hostdb.Stats) [8]*int64 {
	return [8]*int64{&s.Fetched, &s.NotModified, &s.Redirected, &s.Gone, &s.Failed, &s.RobotsDenied, &s.Bytes, &s.Failures}
}

// decodeHost reads what appendHost wrote, and whether there are robots.txt
// files.
func decodeHost(name string, b []byte) (h hostdb.Host, robots bool, err error) {
	r, flags := newFields(b, hasAllOfHost)
	h.Name = name
	if flags&hasNextFetch != 0 {
		h.NextFetch = r.time()
	}
	if flags&hasLastFetch != 0 {
		h.LastFetch = r.time()
	}
	if flags&hasBusyUntil != 0 {
		h.BusyUntil = r.time()
	}
	if flags&hasCrawlDelay != 0 {
		h.CrawlDelay = time.Duration(r.int())
	}
	if flags&hasBackoff != 0 {
		h.Backoff = int(r.int())
	}
	if flags&hasStats != 0 {
		for _, n := range counters(&h.Stats) {
			*n = r.int()
		}
	}
	if r.bad || len(r.b) > 0 {
		return hostdb.Host{}, false, errHost
	}
	return h, flags&hasRobots != 0, nil
}

func appendRobots(b []byte, files []hostdb.Robots) []byte {
	b = append(b, hostVersion)
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
	}
	return b
}

// decodeRobots reads what appendRobots wrote, and keeps no part of b.
func decodeRobots(b []byte) ([]hostdb.Robots, error) {
	if len(b) < 1 || b[0] != hostVersion {
		return nil, errHost
	}
	var out []hostdb.Robots
	r := fields{b: b[1:]}
	for len(r.b) > 0 {
		flags := r.uint()
		if flags&^hasAllOfRobots != 0 {
			return nil, errHost
		}
		f := hostdb.Robots{Origin: string(r.bytes()), Status: int(r.int())}
		if flags&hasBody != 0 {
			f.Body = append([]byte{}, r.bytes()...)
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
		out = append(out, f)
	}
	if r.bad {
		return nil, errHost
	}
	return out, nil
}

// fields reads fields one after the other; after the first mistake it reads
// zeros.
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

func (r *fields) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}
