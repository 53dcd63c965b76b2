package hostdbtest

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// put writes the records as they are.
func (c *check) put(s hostdb.Store, hosts ...hostdb.Host) {
	for _, h := range hosts {
		c.Must(s.Update(c.Ctx, h.Name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil }), "Update of %s", short(h.Name))
	}
}

func (c *check) remove(s hostdb.Store, name string) {
	c.Must(s.Update(c.Ctx, name, func(*hostdb.Host) (*hostdb.Host, error) { return nil, nil }), "Update that deletes %s", short(name))
}

func (c *check) get(s hostdb.Store, name string) hostdb.Host {
	h, err := s.Get(c.Ctx, name)
	c.Must(err, "Get %s", short(name))
	return h
}

func (c *check) missing(s hostdb.Store, name string) {
	h, err := s.Get(c.Ctx, name)
	c.Is(err, hostdb.ErrNotFound, "Get %s", short(name))
	if err := same(h, hostdb.Host{}); err != nil {
		c.Failf("Get %s returned a record with the error: %w", short(name), err)
	}
}

func (c *check) scan(s hostdb.Store) []hostdb.Host {
	var all []hostdb.Host
	for h, err := range s.Scan(c.Ctx) {
		c.Must(err, "Scan")
		all = append(all, h)
	}
	return all
}

// holds demands that a scan and Get agree with the records, which are in order of their
// names.
func (c *check) holds(s hostdb.Store, want ...hostdb.Host) {
	got := c.scan(s)
	for i := range min(len(got), len(want)) {
		if got[i].Name != want[i].Name {
			c.Failf("Scan: record %d is %s, want %s", i, short(got[i].Name), short(want[i].Name))
		}
		if err := same(got[i], want[i]); err != nil {
			c.Failf("Scan: %w", err)
		}
	}
	if len(got) != len(want) {
		c.Failf("Scan yielded %d records, want %d", len(got), len(want))
	}
	for _, h := range want {
		if err := same(c.get(s, h.Name), h); err != nil {
			c.Failf("Get: %w", err)
		}
	}
}

// ends demands that a sequence yields one error, the target, and nothing else.
func (c *check) ends(seq iter.Seq2[hostdb.Host, error], target error, what string) {
	var errs []error
	for _, err := range seq {
		errs = append(errs, err)
	}
	if len(errs) != 1 {
		c.Failf("%s yielded %d times, want once, the error %q", what, len(errs), target)
	}
	c.Is(errs[0], target, "%s", what)
}

// plain returns a small record all of whose fields depend on n, so that a mix of two
// records shows.
func plain(name string, n int) hostdb.Host {
	return hostdb.Host{
		Name: name, Backoff: n, Stats: hostdb.Stats{Fetched: int64(n), Failures: int64(n)},
		Robots: []hostdb.Robots{{Origin: fmt.Sprint(n), Status: n, Body: fmt.Append(nil, n)}},
		Pages:  hostdb.Pages{Fetched: int64(n)}, Homepage: fmt.Sprint(n), Fields: map[string]float64{"n": float64(n)},
	}
}

// hostileNames returns distinct strings, in order, that are easily confused or hard to
// store.
func hostileNames() []string {
	names := []string{
		"", " ", "\x00", "\x00\x00", "\x01", "\xff", "\xff\xff", "example.com", "example.com.", "example.com\x00", "example.com\x00a", "example.co",
		"EXAMPLE.COM", "www.example.com", "xample.com", "192.0.2.1", "[2001:db8::1]", "bücher.example", "xn--bcher-kva.example", "e\u0301", "é", "\ufffd", "\xed\xa0\x80",
		"'; DROP TABLE hostdb; --", `"\`, "%s%d", "a b\t\r\n", "a/b", "../..", "!", "*", "com,example", strings.Repeat("a.", 500), strings.Repeat("a.", 500) + "b",
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// samples returns records, in order of their names, in which each field has its extreme
// values.
func samples() []hostdb.Host {
	hostile := "\x00 \xff\xfe\xc0\x80 \xed\xa0\x80 é e\u0301 \ufffd \u2028 '\"\\\r\n\t%s <&>"
	at := time.Date(2024, 2, 29, 23, 59, 59, 987_000_000, time.UTC)
	full := hostdb.Host{
		NextFetch: at.Add(5 * time.Second), LastFetch: at, Grants: []time.Time{at.Add(time.Minute), at.Add(time.Hour)}, CrawlDelay: 1500 * time.Millisecond, Backoff: 3,
		Elapsed: 340 * time.Millisecond, Spent: hostdb.Spent{Day: at.Truncate(24 * time.Hour), Requests: 1, Bytes: 2},
		Robots: []hostdb.Robots{
			{Origin: "http://example.com", Status: 200, Body: []byte("User-agent: *\nDisallow: /a\n"), ETag: `W/"1"`, LastModified: "Thu, 29 Feb 2024 00:00:00 GMT", Fetched: at, Expires: at.Add(24 * time.Hour)},
			{Origin: "https://example.com:8443", Status: 503, Fetched: at, Expires: at.Add(time.Hour), FailingSince: at.Add(-time.Hour)},
		},
		Stats:    hostdb.Stats{Fetched: 1, NotModified: 2, Redirected: 3, Gone: 4, Failed: 5, RobotsDenied: 6, Bytes: 7, Failures: 8},
		Signals:  hostdb.SignalStats{Hits: 1, False: 2, Misses: 3, Truth: .5, Tests: 5, Signals: .25, Expected: 6, Unsignalled: 1e-9, ExpectedUnsignalled: 7, Segment: "20240229235959-000"},
		Pages:    hostdb.Pages{Unfetched: 1, Fetched: 2, Gone: 3, RedirTemp: 4, RedirPerm: 5, NotModified: 6, Duplicate: 7, Orphan: 8, ParseFailed: 9},
		Homepage: "https://www.example.com/", Score: 0.25, DNSFailures: 10, ConnectionFailures: 11, LastCheck: at.Add(-time.Minute), Overdue: 12,
		Fields:  map[string]float64{"min._rs_": 15, "avg._rs_": 20.5, "Content-Type.text/html": 3},
		Counted: at.Add(time.Minute),
	}
	var all []hostdb.Host
	add := func(change func(h *hostdb.Host)) {
		h := full
		h.Robots, h.Fields, h.Grants = slices.Clone(full.Robots), maps.Clone(full.Fields), slices.Clone(full.Grants)
		change(&h)
		all = append(all, h)
		h = hostdb.Host{Robots: make([]hostdb.Robots, 1), Fields: map[string]float64{}}
		change(&h)
		all = append(all, h)
	}
	add(func(*hostdb.Host) {})
	add(func(h *hostdb.Host) { h.Robots = nil })
	add(func(h *hostdb.Host) { h.Fields = nil })
	add(func(h *hostdb.Host) { h.Robots, h.Fields = nil, nil })
	for _, v := range []time.Time{
		{}, time.UnixMilli(0), time.UnixMilli(-1), at, at.Add(123_456), at.In(time.FixedZone("east", 5*3600+1800)),
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
	} {
		add(func(h *hostdb.Host) { h.NextFetch = v })
		add(func(h *hostdb.Host) { h.LastFetch = v })
		add(func(h *hostdb.Host) { h.Spent.Day = v })
		add(func(h *hostdb.Host) { h.LastCheck = v })
		add(func(h *hostdb.Host) { h.Counted = v })
		add(func(h *hostdb.Host) { h.Robots[0].Fetched = v })
		add(func(h *hostdb.Host) { h.Robots[0].Expires = v })
		add(func(h *hostdb.Host) { h.Robots[0].FailingSince = v })
	}
	for n := range 4 {
		add(func(h *hostdb.Host) {
			h.Grants = nil
			for i := range n * n {
				h.Grants = append(h.Grants, at.Add(time.Duration(i)*time.Millisecond))
			}
		})
	}
	for _, v := range []time.Duration{0, time.Millisecond, time.Second, 24 * time.Hour, 3650 * 24 * time.Hour} {
		add(func(h *hostdb.Host) { h.CrawlDelay = v })
		add(func(h *hostdb.Host) { h.Elapsed = v })
	}
	for _, v := range []int{0, 1, 255, 256, math.MaxInt32} {
		add(func(h *hostdb.Host) { h.Backoff = v })
		add(func(h *hostdb.Host) { h.Robots[0].Status = v })
	}
	for _, v := range []int64{0, 1, 1 << 31, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		add(func(h *hostdb.Host) {
			h.Stats = hostdb.Stats{Fetched: v, NotModified: v, Redirected: v, Gone: v, Failed: v, RobotsDenied: v, Bytes: v, Failures: v}
		})
		add(func(h *hostdb.Host) {
			h.Pages = hostdb.Pages{Unfetched: v, Fetched: v, Gone: v, RedirTemp: v, RedirPerm: v, NotModified: v, Duplicate: v, Orphan: v, ParseFailed: v}
		})
		add(func(h *hostdb.Host) { h.Spent.Requests, h.Spent.Bytes = v, v })
		add(func(h *hostdb.Host) { h.Signals.Hits, h.Signals.False, h.Signals.Misses = v, v, v })
		add(func(h *hostdb.Host) { h.DNSFailures, h.ConnectionFailures, h.Overdue = v, v, v })
	}
	for _, v := range []float64{0, math.Copysign(0, -1), 0.1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
		add(func(h *hostdb.Host) { h.Fields["v"] = v })
		add(func(h *hostdb.Host) { h.Score = float32(v) })
		if v == v {
			add(func(h *hostdb.Host) { h.Signals.Truth, h.Signals.Signals, h.Signals.ExpectedUnsignalled = v, v, v })
		}
	}
	for _, v := range []string{"", "\x00", "\xff", "a\x00", hostile, strings.Repeat(hostile, 3000), strings.Repeat("Disallow: /\n", 500<<10/12), "null"} {
		add(func(h *hostdb.Host) { h.Robots[0].Body = []byte(v) })
		if len(v) < 1000 {
			add(func(h *hostdb.Host) { h.Robots[0].Origin = v })
			add(func(h *hostdb.Host) { h.Robots[0].ETag, h.Robots[0].LastModified = v, "" })
			add(func(h *hostdb.Host) { h.Robots[0].ETag, h.Robots[0].LastModified = "", v })
			add(func(h *hostdb.Host) { h.Homepage = v })
			add(func(h *hostdb.Host) { h.Signals.Segment = v })
			add(func(h *hostdb.Host) { h.Fields[v] = 1 })
		}
	}
	add(func(h *hostdb.Host) {
		h.Robots = nil
		for i := range 50 {
			h.Robots = append(h.Robots, hostdb.Robots{Origin: fmt.Sprintf("http://example.com:%05d", i), Status: i})
		}
	})
	for i := range all {
		all[i].Name = fmt.Sprintf("h%04d.example.com", i)
	}
	return all
}

// same returns an error that says how the record that was read differs from the one
// that was written.
func same(got, want hostdb.Host) error {
	at := short(want.Name)
	switch {
	case got.Name != want.Name:
		return fmt.Errorf("Name is %s, want %s", short(got.Name), at)
	case got.CrawlDelay != want.CrawlDelay:
		return fmt.Errorf("%s: CrawlDelay is %v, want %v", at, got.CrawlDelay, want.CrawlDelay)
	case got.Backoff != want.Backoff:
		return fmt.Errorf("%s: Backoff is %d, want %d", at, got.Backoff, want.Backoff)
	case got.Elapsed != want.Elapsed:
		return fmt.Errorf("%s: Elapsed is %v, want %v", at, got.Elapsed, want.Elapsed)
	case got.Spent.Requests != want.Spent.Requests || got.Spent.Bytes != want.Spent.Bytes:
		return fmt.Errorf("%s: Spent is %+v, want %+v", at, got.Spent, want.Spent)
	case len(got.Grants) != len(want.Grants):
		return fmt.Errorf("%s: Grants has %d entries, want %d", at, len(got.Grants), len(want.Grants))
	case got.Stats != want.Stats:
		return fmt.Errorf("%s: Stats are %+v, want %+v", at, got.Stats, want.Stats)
	case got.Signals != want.Signals:
		return fmt.Errorf("%s: Signals is %+v, want %+v", at, got.Signals, want.Signals)
	case got.Pages != want.Pages:
		return fmt.Errorf("%s: Pages are %+v, want %+v", at, got.Pages, want.Pages)
	case got.Homepage != want.Homepage:
		return fmt.Errorf("%s: Homepage is %s, want %s", at, short(got.Homepage), short(want.Homepage))
	case !sameFloat(float64(got.Score), float64(want.Score)):
		return fmt.Errorf("%s: Score is %v, want %v", at, got.Score, want.Score)
	case got.DNSFailures != want.DNSFailures:
		return fmt.Errorf("%s: DNSFailures is %d, want %d", at, got.DNSFailures, want.DNSFailures)
	case got.ConnectionFailures != want.ConnectionFailures:
		return fmt.Errorf("%s: ConnectionFailures is %d, want %d", at, got.ConnectionFailures, want.ConnectionFailures)
	case got.Overdue != want.Overdue:
		return fmt.Errorf("%s: Overdue is %d, want %d", at, got.Overdue, want.Overdue)
	case !maps.EqualFunc(got.Fields, want.Fields, sameFloat):
		return fmt.Errorf("%s: Fields are %s, want %s", at, short(fmt.Sprint(got.Fields)), short(fmt.Sprint(want.Fields)))
	case len(got.Robots) != len(want.Robots):
		return fmt.Errorf("%s: Robots has %d origins, want %d", at, len(got.Robots), len(want.Robots))
	}
	errs := []error{
		sameTime(at, "NextFetch", got.NextFetch, want.NextFetch),
		sameTime(at, "LastFetch", got.LastFetch, want.LastFetch),
		sameTime(at, "Spent.Day", got.Spent.Day, want.Spent.Day),
		sameTime(at, "LastCheck", got.LastCheck, want.LastCheck),
		sameTime(at, "Counted", got.Counted, want.Counted),
	}
	for i, w := range want.Grants {
		errs = append(errs, sameTime(at, fmt.Sprintf("Grants[%d]", i), got.Grants[i], w))
	}
	for i, w := range want.Robots {
		g, in := got.Robots[i], fmt.Sprintf("%s: Robots[%d]", at, i)
		switch {
		case g.Origin != w.Origin:
			return fmt.Errorf("%s: Origin is %s, want %s", in, short(g.Origin), short(w.Origin))
		case g.Status != w.Status:
			return fmt.Errorf("%s: Status is %d, want %d", in, g.Status, w.Status)
		case g.ETag != w.ETag || g.LastModified != w.LastModified:
			return fmt.Errorf("%s: validators are %s and %s, want %s and %s", in, short(g.ETag), short(g.LastModified), short(w.ETag), short(w.LastModified))
		case !bytes.Equal(g.Body, w.Body):
			return fmt.Errorf("%s: Body is %s, want %s", in, short(string(g.Body)), short(string(w.Body)))
		}
		errs = append(errs,
			sameTime(in, "Fetched", g.Fetched, w.Fetched),
			sameTime(in, "Expires", g.Expires, w.Expires),
			sameTime(in, "FailingSince", g.FailingSince, w.FailingSince))
	}
	return errors.Join(errs...)
}

// sameFloat distinguishes zeros by their sign, and takes all NaNs as equal.
func sameFloat(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Float64bits(a) == math.Float64bits(b)
}

// sameTime demands UTC, and the same millisecond, however it is rounded.
func sameTime(at, field string, got, want time.Time) error {
	diff := got.Sub(want).Abs()
	if got.IsZero() != want.IsZero() || diff >= time.Millisecond || diff != 0 && want.Nanosecond()%1e6 == 0 || got.Nanosecond()%1e6 != 0 {
		return fmt.Errorf("%s: %s is %v, want %v to the millisecond", at, field, got, want)
	}
	if got.Location() != time.UTC {
		return fmt.Errorf("%s: %s is in %v, want UTC", at, field, got.Location())
	}
	return nil
}

// inOrder returns the records of a map in the order of their names.
func inOrder(m map[string]hostdb.Host) []hostdb.Host {
	return slices.SortedFunc(maps.Values(m), func(a, b hostdb.Host) int { return strings.Compare(a.Name, b.Name) })
}

// short quotes a string, and cuts it if it is long.
func short(s string) string {
	if len(s) <= 120 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:100], len(s))
}

var errStop = errors.New("hostdbtest: stop")
