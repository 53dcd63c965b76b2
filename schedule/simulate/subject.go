package simulate

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// subject is a page while it is crawled.
type subject struct {
	*Subject
	number  int
	o       *CrawlOptions
	rateOf  float64
	born    int // cycle
	begun   bool
	fetched bool
	visits  uint64
	counted int
	bucket  int

	// The copy: what is known of it since a moment, in days.
	since   float64
	content uint64 // which content it is, if the page changes at random
	was     bool   // whether the page existed at the visit
	seen    int    // events
	// If the page changes at random, the probability that it is up to date, and its
	// expected age; otherwise whether it is, and since when it is not.
	chanceFresh, age float64
	staleSince       float64
	last             float64 // visit
	modified         time.Time

	fresh, time float64 // in the measured time

	slot   int    // the cycle at which it is looked at
	queued bool   // in ready
	signs  *signs // nil if there are none
}

func (s *subject) random() bool { return s.PerDay > 0 }

// there reports whether the page exists.
func (s *subject) there(at time.Time) bool {
	if s.random() {
		return true
	}
	_, there := s.state(at)
	return there
}

func (s *Subject) state(at time.Time) (events int, there bool) {
	return (&Page{Events: s.Events}).state(at)
}

// chance returns a number from 0 to 1 that depends only on the page and a number, so that
// all policies have the same luck.
func (s *subject) chance(n uint64) float64 {
	x := s.o.Seed*0x9e3779b97f4a7c15 + uint64(s.number)*0xbf58476d1ce4e5b9 + n*0x94d049bb133111eb
	for range 2 { // the finisher of splitmix64
		x ^= x >> 30
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x *= 0x94d049bb133111eb
		x ^= x >> 31
	}
	return (float64(x>>11) + 0.5) / (1 << 53)
}

// shift is the day on which rates change.
func (s *subject) shift() float64 {
	if s.o.ShiftBy == 1 {
		return math.Inf(1)
	}
	return days(s.o.ShiftAfter)
}

// found is what a visit finds.
type found struct {
	there    bool
	sum      uint64    // of the content
	modified time.Time // zero if it never was
}

// sees returns the value of the crawl's signature for a page with events, n of which are
// over: by the events that it sees, if these differ, or a new value each time.
func (f *found) sees(events, seen []Event, each bool, n int, at time.Time) {
	if each {
		f.sum, f.modified = uint64(at.UnixNano()), at
		return
	}
	if seen != nil {
		events = seen
		n, _ = (&Page{Events: seen}).state(at)
	}
	f.sum = uint64(n)
	if n > 0 {
		f.modified = events[n-1].Time
	}
}

// look visits the page: the copy is up to date from now on.
func (s *subject) look(at time.Time, now float64) found {
	f := found{there: true}
	if s.random() {
		if s.fetched {
			ago := s.lastChange(now)
			if s.signs != nil && !math.IsInf(s.signs.changed, 1) {
				ago = min(ago, now-s.signs.changed)
			}
			if ago < now-s.last {
				s.content++
				s.modified = at.Add(-inDays(ago)).Truncate(time.Second)
			}
		}
		f.sum, f.modified = s.content, s.modified
	} else {
		s.seen, f.there = s.state(at)
		f.sees(s.Events, s.Seen, s.SignatureAlwaysDiffers, s.seen, at)
		s.staleSince = math.Inf(1)
		if s.seen < len(s.Events) {
			s.staleSince = days(s.Events[s.seen].Time.Sub(s.o.Start))
		}
	}
	if s.signs != nil {
		s.signs.changed, s.signs.seen = math.Inf(1), 0
	}
	s.fetched, s.was = true, f.there
	s.last = now
	s.chanceFresh, s.age = 1, 0
	return f
}

// hidden returns how often a day a page that changes at random does so without a sign.
func (s *subject) hidden() float64 {
	if s.signs != nil {
		return s.signs.hidden
	}
	return s.PerDay
}

// lastChange draws how many days ago the last change was, looking back from now: the
// time to it has the same distribution as the time between two.
func (s *subject) lastChange(now float64) float64 {
	hazard := -math.Log(s.chance(s.visits))
	shift, rate := s.shift(), s.hidden()
	if now <= shift {
		return hazard / rate
	}
	after := rate * s.o.ShiftBy
	if ago := hazard / after; ago <= now-shift {
		return ago
	}
	return now - shift + (hazard-after*(now-shift))/rate
}

// answer returns what the server says.
func (f found) answer(url, contentType string, at time.Time, listed *crawldb.Datum, lastModified, conditional bool) (*segment.Visit, *segment.Parse) {
	v := &segment.Visit{URL: url, Time: at, Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}
	if !f.there {
		return v, nil
	}
	sum := binary.BigEndian.AppendUint64(nil, f.sum)
	if lastModified {
		v.Modified = f.modified
	}
	if conditional && string(listed.Signature) == string(sum) {
		v.Outcome = protocol.Outcome{Code: protocol.NotModified, Status: 304}
		return v, nil
	}
	v.Outcome = protocol.Outcome{Code: protocol.Success, Status: 200}
	if v.ContentType = contentType; v.ContentType == "" {
		v.ContentType = "text/html"
	}
	return v, &segment.Parse{URL: url, Signature: sum}
}

// value returns what a visit is worth now, in importance times days.
func (s *subject) value(now float64) float64 {
	switch {
	case s.rateOf <= 0:
		if s.fetched {
			return 0
		}
		return math.Inf(1)
	case !s.fetched:
		return s.Weight / s.rateOf
	case s.signs != nil && s.signs.worth != nil:
		w := s.signs.worth
		return s.Weight / s.rateOf * w.gain(s.rateOf*(now-s.last)+float64(s.signs.seen)*w.beta)
	}
	return s.Weight / s.rateOf * gain(s.rateOf*(now-s.last))
}

// ready is a heap of due pages by key: the least is first and, among equal ones, the first
// page.
type ready struct {
	pages []int32
	keys  []float64
}

func (r *ready) len() int { return len(r.pages) }

func (r *ready) less(i, j int) bool {
	if r.keys[i] != r.keys[j] {
		return r.keys[i] < r.keys[j]
	}
	return r.pages[i] < r.pages[j]
}

func (r *ready) swap(i, j int) {
	r.pages[i], r.pages[j] = r.pages[j], r.pages[i]
	r.keys[i], r.keys[j] = r.keys[j], r.keys[i]
}

func (r *ready) push(page int, key float64) {
	r.pages = append(r.pages, int32(page))
	r.keys = append(r.keys, key)
	for i := len(r.pages) - 1; i > 0 && r.less(i, (i-1)/2); i = (i - 1) / 2 {
		r.swap(i, (i-1)/2)
	}
}

func (r *ready) pop() int {
	top, last := int(r.pages[0]), len(r.pages)-1
	r.swap(0, last)
	r.pages, r.keys = r.pages[:last], r.keys[:last]
	r.down(0)
	return top
}

func (r *ready) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.pages); child++ {
			if r.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		r.swap(i, least)
		i = least
	}
}

// sort gives all pages new keys.
func (r *ready) sort(key func(page int) float64) {
	for i, p := range r.pages {
		r.keys[i] = key(int(p))
	}
	for i := len(r.pages)/2 - 1; i >= 0; i-- {
		r.down(i)
	}
}

// meter adds up how fresh copies are. Its time is divided by edges, in days; at one of them
// it begins to count.
type meter struct {
	edges  []float64
	from   int // the bucket from which it counts
	sums   []sums
	visits []int
}

type sums struct{ time, weightedTime, fresh, weighted, age, weightedAge float64 }

func newMeter(span, measure float64, points int) meter {
	m := meter{edges: []float64{0, measure, span}}
	for i := range points {
		m.edges = append(m.edges, span*float64(i)/float64(points))
	}
	slices.Sort(m.edges)
	m.edges = slices.Compact(m.edges)
	m.from = m.bucket(measure)
	m.sums, m.visits = make([]sums, len(m.edges)), make([]int, len(m.edges))
	return m
}

// bucket returns the part of the time that contains a moment.
func (m *meter) bucket(at float64) int {
	i, found := slices.BinarySearch(m.edges, at)
	if !found {
		i--
	}
	return i
}

// credit adds up the freshness of the copy until now.
func (m *meter) credit(s *subject, now float64) {
	for s.since < now {
		to := now
		edge := m.edges[min(s.bucket+1, len(m.edges)-1)]
		if edge <= to {
			to = edge
		}
		var fresh, age, time float64
		if s.random() {
			if shift := s.shift(); s.since < shift && shift < to {
				to = shift
			}
			fresh, age = s.expected(to)
			time = to - s.since
		} else {
			fresh, age, time = s.actual(to)
		}
		b := &m.sums[s.bucket]
		b.time += time
		b.weightedTime += s.Weight * time
		b.fresh += fresh
		b.weighted += s.Weight * fresh
		b.age += age
		b.weightedAge += s.Weight * age
		if s.bucket >= m.from {
			s.fresh += fresh
			s.time += time
		}
		s.since = to
		if to == edge && s.bucket+1 < len(m.edges)-1 {
			s.bucket++
		}
	}
}

// expected integrates the probability that the copy is up to date, and its expected age,
// from since to a later day, and advances both.
func (s *subject) expected(to float64) (fresh, age float64) {
	y := to - s.since
	if !s.fetched {
		age = s.age*y + y*y/2
		s.age += y
		return 0, age
	}
	rate := s.hidden()
	if s.since >= s.shift() {
		rate *= s.o.ShiftBy
	}
	r := rate * y
	// The integrals of exp(-r) and of that.
	once, twice := y*(1-r/2+r*r/6), y*y*(1./2-r/6+r*r/24)
	if r > 1e-3 {
		once = -math.Expm1(-r) / rate
		twice = (y - once) / rate
	}
	p := s.chanceFresh
	fresh = p * once
	age = s.age*y + y*y/2 - p*twice
	s.age += y - p*once
	s.chanceFresh = p * math.Exp(-r)
	return fresh, age
}

// actual does the same for a page with a history. Time in which the page does not exist is
// left out, unless the crawl believes that it does.
func (s *subject) actual(to float64) (fresh, age, time float64) {
	from := s.since
	if !s.fetched {
		time = s.life(0, from, to)
		if time > 0 {
			age = s.age*(to-from) + (to-from)*(to-from)/2
			s.age += to - from
		}
		return 0, age, time
	}
	stale := max(from, min(to, s.staleSince))
	if s.was {
		fresh = stale - from
		time = to - from
	} else {
		time = to - stale
	}
	if to > stale {
		a, b := stale-s.staleSince, to-s.staleSince
		age = (b*b - a*a) / 2
	}
	return fresh, age, time
}

// life returns for how much of the time the page exists.
func (s *subject) life(events int, from, to float64) (time float64) {
	at := from
	there := len(s.Events) == 0 || s.Events[0].Kind != Appears
	for _, e := range s.Events[events:] {
		t := min(max(days(e.Time.Sub(s.o.Start)), at), to)
		if there {
			time += t - at
		}
		at, there = t, e.Kind != Deleted
	}
	if there {
		time += to - at
	}
	return time
}

// fill reads the figures.
func (m *meter) fill(out *Outcome, start time.Time) {
	var all, first sums
	for i := range len(m.edges) - 1 {
		b := m.sums[i]
		sum := &all
		if i < m.from {
			sum = &first
		}
		sum.time += b.time
		sum.weightedTime += b.weightedTime
		sum.fresh += b.fresh
		sum.weighted += b.weighted
		sum.age += b.age
		sum.weightedAge += b.weightedAge
		if m.edges[i+1]-m.edges[i] < 1e-6*m.edges[len(m.edges)-1] {
			continue // the same moment, computed in two ways
		}
		out.Timeline = append(out.Timeline, TimelinePoint{From: start.Add(inDays(m.edges[i])), To: start.Add(inDays(m.edges[i+1])), Fetches: m.visits[i],
			Freshness: share(b.fresh, b.time), Weighted: share(b.weighted, b.weightedTime)})
	}
	out.Freshness, out.Weighted = share(all.fresh, all.time), share(all.weighted, all.weightedTime)
	out.Age, out.WeightedAge = inDays(share(all.age, all.time)), inDays(share(all.weightedAge, all.weightedTime))
	out.First = share(first.weighted, first.weightedTime)
}

func share(part, of float64) float64 {
	if of > 0 {
		return part / of
	}
	return 0
}
