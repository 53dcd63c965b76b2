package fetch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// A HostRule is what an operator has decided for one host. The zero rule
// decides nothing. Days and windows are those of the real clock.
type HostRule struct {
	// Requests and Bytes limit, per day, the requests to the host, robots.txt included,
	// and the bytes of the bodies of pages and sitemaps; zero or less means no limit. A
	// day begins at midnight UTC. What was spent is kept in the hostdb.Store, and counts
	// for all that share it. A body under way when the bytes run out is read to its end.
	Requests, Bytes int64
	// Windows are when requests may begin; none means at any time.
	Windows []Window
	// Closed says that the host is sent no requests, not even for robots.txt. Its
	// pages are skipped, and each time are due again a day later.
	Closed bool
}

// A Window is a part of each day. One that ends earlier than it begins
// continues past midnight; one that ends when it begins is the whole day.
type Window struct {
	// From and To are local times of day, from 0 to 24 hours; To is exclusive.
	From, To time.Duration
	// Zone is the time zone; nil means UTC.
	Zone *time.Location
}

// ParseWindow reads "22:00-06:00", or "22:00-06:00 Europe/Berlin".
func ParseWindow(s string) (Window, error) {
	span, zone, hasZone := strings.Cut(s, " ")
	from, to, ok := strings.Cut(span, "-")
	w, err := Window{}, errors.New("want HH:MM-HH:MM")
	if ok {
		if w.From, err = timeOfDay(from); err == nil {
			w.To, err = timeOfDay(to)
		}
	}
	if err == nil && w.From == w.To {
		err = errors.New("it is empty")
	}
	if err == nil && hasZone {
		w.Zone, err = location(strings.TrimSpace(zone))
	}
	if err != nil {
		return Window{}, fmt.Errorf("fetch: window %q: %w", s, err)
	}
	return w, nil
}

// location requires the name of a time zone, but not that of the machine's own.
func location(zone string) (*time.Location, error) {
	if zone == "" || zone == "Local" {
		return nil, fmt.Errorf("%q is not a time zone", zone)
	}
	z, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q", zone)
	}
	return z, nil
}

func timeOfDay(s string) (time.Duration, error) {
	h, m, ok := strings.Cut(s, ":")
	hours, err := strconv.ParseUint(h, 10, 8)
	minutes, err2 := strconv.ParseUint(m, 10, 8)
	if !ok || err != nil || err2 != nil || len(h) > 2 || len(m) != 2 || hours > 24 || minutes > 59 || hours == 24 && minutes > 0 {
		return 0, fmt.Errorf("%q is not a time of day", s)
	}
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute, nil
}

// String returns the form that ParseWindow reads, for a window of whole minutes that
// is not the whole day.
func (w Window) String() string {
	clock := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", d/time.Hour, d%time.Hour/time.Minute) }
	s := clock(w.From) + "-" + clock(w.To)
	if w.Zone != nil {
		s += " " + w.Zone.String()
	}
	return s
}

func (w Window) zone() *time.Location {
	if w.Zone == nil {
		return time.UTC
	}
	return w.Zone
}

// open reports whether a request may begin.
func (w Window) open(at time.Time) bool {
	at = at.In(w.zone())
	h, m, s := at.Clock()
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second + time.Duration(at.Nanosecond())
	if w.From < w.To {
		return w.From <= d && d < w.To
	}
	return w.From <= d || d < w.To
}

// opens returns when a request may begin, at the time or later.
func (w Window) opens(at time.Time) time.Time {
	if w.open(at) {
		return at
	}
	y, m, d := at.In(w.zone()).Date()
	for i := range 9 {
		// On a day when clocks change it may not open at all.
		t := time.Date(y, m, d+i, int(w.From/time.Hour), int(w.From%time.Hour/time.Minute), 0, 0, w.zone())
		if !t.Before(at) && w.open(t) {
			return t
		}
	}
	return at.Add(24 * time.Hour)
}

// share is the share of a day in which requests may begin. Windows that overlap count twice.
func (r *HostRule) share() float64 {
	const day = 24 * time.Hour
	open := time.Duration(0)
	for _, w := range r.Windows {
		if open += w.To - w.From; w.To <= w.From {
			open += day
		}
	}
	if open == 0 { // no windows
		return 1
	}
	return min(open.Hours()/day.Hours(), 1)
}

// Next returns when the next request may begin, at the given time or later, and if later,
// why. For a closed host that is a day later.
func (r HostRule) Next(spent hostdb.Spent, at time.Time) (next time.Time, reason string) {
	next, why := r.next(spent, at)
	return next, why.reason
}

// next is Next, with more of the reason.
func (r *HostRule) next(spent hostdb.Spent, at time.Time) (time.Time, verdict) {
	var why verdict
	if r.Closed {
		return at.Add(24 * time.Hour), verdict{reason: "the rule for the host says closed"}
	}
	for range 4 {
		today, began := spent.On(at), at
		switch {
		case r.Requests > 0 && today.Requests >= r.Requests:
			at, why = today.Day.Add(24*time.Hour), verdict{reason: fmt.Sprintf("the host has been sent its %d requests of the day", r.Requests)}
		case r.Bytes > 0 && today.Bytes >= r.Bytes:
			at, why = today.Day.Add(24*time.Hour), verdict{reason: fmt.Sprintf("the host has sent its %d bytes of the day", r.Bytes)}
		}
		var opens time.Time
		for _, w := range r.Windows {
			sooner(&opens, w.opens(at))
		}
		if opens.After(at) {
			if at = opens; why.reason == "" {
				why.reason = "the host may be asked only at other times of the day"
			}
		}
		if at.Equal(began) {
			break
		}
	}
	why.perDay = r.Requests
	return at, why
}

// HostRules are rules by host, as an operator writes them in a file: see
// [ParseHostRules].
type HostRules struct {
	hosts, below map[string]HostRule
	rest         HostRule
}

// ParseHostRules reads rules, one per line: the host, and the limits that apply to it.
//
//	# host            limits
//	example.com       requests=1000 bytes=200M
//	.example.org      window=22:00-06:00 window=12:00-13:00 zone=Europe/Berlin
//	192.0.2.1         requests=50
//	paused.example    closed
//	*                 requests=20000
//
// A rule is for one host; with a leading dot, for a domain and each host below it;
// or with a star, for all that have no other rule. Of several, only the one with
// the longest name applies. The name is that of the queue: with Options.Politeness.By by
// domain, domains have budgets, and by address, addresses. K, M and G stand for
// 1024 bytes, 1024 K and 1024 M. Empty lines, anything after a #, and a byte order
// mark are ignored. An error names the line, and the file if r has a name.
func ParseHostRules(r io.Reader) (*HostRules, error) {
	place := func(line int) string {
		if f, ok := r.(interface{ Name() string }); ok {
			return f.Name() + ":" + strconv.Itoa(line)
		}
		return "fetch: host rules, line " + strconv.Itoa(line)
	}
	rules := &HostRules{hosts: map[string]HostRule{}, below: map[string]HostRule{}}
	seen := map[string]int{}
	lines := bufio.NewScanner(r)
	n := 1
	for ; lines.Scan(); n++ {
		line, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\ufeff"), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		rule, err := parseHostRule(f[1:])
		whom, below := strings.CutPrefix(f[0], ".")
		key := hostdb.ByHost.Key("http://" + whom + "/")
		switch {
		case err != nil:
		case f[0] == "*":
			key, rules.rest = "*", rule
		case key == "" || strings.ContainsAny(whom, "/*@?\\"):
			err = fmt.Errorf("%q is not a host", f[0])
		case below:
			rules.below[key] = rule
			key = "." + key
		default:
			rules.hosts[key] = rule
		}
		if before, ok := seen[key]; err == nil && ok {
			err = fmt.Errorf("line %d already has a rule for %s", before, f[0])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(n), err)
		}
		seen[key] = n
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", place(n), err)
	}
	return rules, nil
}

func parseHostRule(settings []string) (HostRule, error) {
	var r HostRule
	var zone *time.Location
	if len(settings) == 0 {
		return r, errors.New("an empty rule; want requests=, bytes=, window=, zone= or closed")
	}
	if slices.Contains(settings, "closed") {
		if len(settings) > 1 {
			return r, errors.New("closed must stand alone")
		}
		return HostRule{Closed: true}, nil
	}
	given := map[string]bool{}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		if given[name] && name != "window" {
			return r, fmt.Errorf("%s= is given twice", name)
		}
		given[name] = true
		var err error
		switch name {
		case "requests":
			r.Requests, err = positive(value)
		case "bytes":
			r.Bytes, err = ParseBytes(value)
		case "window":
			var w Window
			w, err = ParseWindow(value)
			r.Windows = append(r.Windows, w)
		case "zone":
			zone, err = location(value)
		default:
			err = fmt.Errorf("unknown setting %q; want requests=, bytes=, window=, zone= or closed", s)
		}
		if err != nil {
			return r, err
		}
	}
	if zone != nil && r.Windows == nil {
		return r, errors.New("zone= without window=")
	}
	for i := range r.Windows {
		r.Windows[i].Zone = zone
	}
	return r, nil
}

func positive(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%q is not a number above zero", s)
	}
	return n, nil
}

// ParseBytes reads a number of bytes above zero, "500", "200K", "10M" or "2G".
func ParseBytes(s string) (int64, error) {
	digits, unit := s, int64(1)
	if n := len(s) - 1; n > 0 {
		if i := strings.IndexByte("KMG", s[n]&^0x20); i >= 0 {
			digits, unit = s[:n], 1<<(10*(i+1))
		}
	}
	n, err := positive(digits)
	if err != nil || n > 1<<62/unit {
		return 0, fmt.Errorf("%q is not a number of bytes above zero, such as 500, 200K, 10M or 2G", s)
	}
	return n * unit, nil
}

// Rule returns the rule for the queue of that name. A nil *HostRules has no
// rules.
func (r *HostRules) Rule(queue string) HostRule {
	if r == nil {
		return HostRule{}
	}
	if rule, ok := r.hosts[queue]; ok {
		return rule
	}
	for rest := queue; len(r.below) > 0; {
		if rule, ok := r.below[rest]; ok {
			return rule
		}
		var ok bool
		if _, rest, ok = strings.Cut(rest, "."); !ok {
			break
		}
	}
	return r.rest
}
