package schedule

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Condition is how up to date the copies of a crawl are expected to be at a given
// time, given when each was made and what is known of how often its page changes. A
// page with a copy is one that was visited with content.
type Condition struct {
	// Pages counts the records. Copies of them have content, Never were never visited, and
	// the others were visited and have nothing that could be out of date: redirects, pages
	// that are gone, that cannot be fetched, or that no parser accepted.
	Pages, Copies, Never int
	// Learned counts the copies of pages that have shown how often they change; Estimated
	// also counts those for which it is estimated from others of their host and kind: see
	// Plan.Prior. Of the rest, which is all of them without a schedule that learns, only the
	// times of visits are known: Freshness, Weighted, Age, WeightedAge and Ages cover only
	// the Estimated, and are zero if there are none.
	Learned, Estimated int
	// Overdue counts the pages that were visited before and are due again, except the
	// Leased, which a round is working on, and pages gone for long, which wait until there
	// is nothing else to do: see [Learned].Gone.
	Overdue, Leased int
	// Freshness is the share of copies that are expected to match their pages now,
	// Weighted the same by importance. Covered is the importance of the copies as a
	// share of that of the copies and Never.
	Freshness, Weighted, Covered float64
	// Age is how long a copy has been out of date, on average, with zero for a fresh one;
	// WeightedAge is the mean by importance.
	Age, WeightedAge time.Duration
	// Ages are the percentiles of the ages of copies, Visited those of how long ago copies
	// were made or confirmed, Late those of how long the Overdue have been due. Ages has no
	// Max of its own: no copy is older than that of Visited.
	Ages, Visited, Late Percentiles
}

// HostCondition is the condition of the pages of a host.
type HostCondition struct {
	Host string
	Condition
	// Lost is the host's share of the importance of all copies that are not fresh.
	Lost float64
}

// Census computes the [Condition] of the records it is shown, whatever their order. It holds
// some 400 bytes for each host and up to 16 for each of its pages, 10 kB at most. It is for
// use by one goroutine.
type Census struct {
	s     Learned
	now   time.Time
	hosts map[string]*tally
	name  string // of the host that came last
	last  *tally
}

// NewCensus starts a census of the records of a crawl with that schedule. For any other
// schedule use Learned{}: the records tell when pages were visited and are due, and the
// rates of pages that a schedule that learns has visited before.
func (s Learned) NewCensus(now time.Time) *Census {
	s.NutchCompat = false
	return &Census{s: s, now: now, hosts: map[string]*tally{}}
}

// Add shows a record, which is not kept.
func (c *Census) Add(d *crawldb.Datum) {
	t := c.last
	if host := crawldb.Host(d.URL); t == nil || host != c.name {
		if t = c.hosts[host]; t == nil {
			t = &tally{}
			c.hosts[host] = t
		}
		c.name, c.last = host, t
	}
	l, known := c.s.known(d)
	if known {
		l.Rate = c.s.Plan.homogenized(d.URL, l.kind, l.Rate)
	} else {
		l.Rate = Rate{}
		if c.s.Plan.expects() {
			l.Rate = c.s.Plan.unseen(d.URL, l.kind)
		}
	}
	rate, trust := c.s.Plan.unsigned(d, l.Rate)
	t.add(c.s.standing(d, c.now), rate, trust, known, c.s.weight(d, float64(d.Score)), hash(d.URL))
}

// expects reports whether the expectation for a page was learned from others.
func (p *Plan) expects() bool { return p != nil && p.Prior.Known() }

// Condition returns the condition of all pages, and of up to hosts hosts with the most
// importance that is not fresh, the worst first.
func (c *Census) Condition(hosts int) (Condition, []HostCondition) {
	return conditions(c.hosts, hosts, 1)
}

// conditions reads tallies, each of which stands for a number of pages.
func conditions(by map[string]*tally, most int, multiple float64) (Condition, []HostCondition) {
	var all tally
	worst := make([]HostCondition, 0, len(by))
	for host, t := range by {
		all.addAll(t)
		worst = append(worst, HostCondition{Host: host, Lost: t.weight.value() - t.weighted.value()})
	}
	slices.SortFunc(worst, func(a, b HostCondition) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.Host, b.Host))
	})
	worst = slices.Clip(worst[:max(0, min(most, len(worst)))])
	for i := range worst {
		h := &worst[i]
		h.Condition = by[h.Host].condition(multiple)
		h.Lost = ratio(h.Lost, all.weight.value()-all.weighted.value())
	}
	return all.condition(multiple), worst
}

// standing is the state of a record at a moment.
type standing struct {
	copied, never, leased, overdue bool
	elapsed                        time.Duration // since the copy was made
	late                           time.Duration // since it was due, if it is overdue
}

// standing returns the state of a record according to a schedule that learns.
func (s Learned) standing(d *crawldb.Datum, now time.Time) standing {
	at := standingOf(d, now)
	if at.overdue && s.Plan != nil && now.Before(s.latest(d, 24)) {
		if _, most := s.bounds(d.URL); goneFor(d, most) {
			at.overdue, at.late = false, 0
		}
	}
	return at
}

func standingOf(d *crawldb.Datum, now time.Time) (s standing) {
	s.leased = d.Leased(now)
	if d.LastFetch.IsZero() {
		s.never = true
		return s
	}
	if late := now.Sub(d.FetchTime); late >= 0 && !s.leased {
		s.overdue, s.late = true, late
	}
	seen := d.LastFetch
	switch d.Status {
	case crawldb.Fetched, crawldb.NotModified, crawldb.Duplicate, crawldb.Orphan:
		s.copied = true
	case crawldb.Unfetched: // it has failed, if it had content before
		if s.copied = d.Signature != nil; s.copied {
			seen = since(d, seen)
		}
	}
	if s.copied {
		s.elapsed = max(now.Sub(seen), 0)
	}
	return s
}

// tally adds up expectations for pages. It holds only counts and exact sums, so that the
// order of the pages makes no difference.
type tally struct {
	pages, copies, learned, estimated, never, leased, overdue int

	fresh, age                    fixed // of those that are estimated
	weight, weighted, weightedAge fixed // by importance
	held, unseen                  fixed // importance of copies, and of those that were never visited

	ages, visited, late buckets
}

// draws is the number of ages counted for each copy.
const draws = 8

// add adds a page whose rate of change is known. Signals are extra: trust is the
// probability that none of them is true.
func (t *tally) add(s standing, r Rate, trust float64, known bool, weight float64, hash uint64) {
	t.pages++
	if s.leased {
		t.leased++
	}
	if s.overdue {
		t.overdue++
		t.late.add(s.late, 1)
	}
	if s.never {
		t.never++
		t.unseen.add(weight)
	}
	if !s.copied {
		return
	}
	t.copies++
	t.held.add(weight)
	t.visited.add(s.elapsed, 1)
	if !r.Known() {
		return
	}
	t.estimated++
	if known {
		t.learned++
	}
	fresh, age := r.Fresh(s.elapsed), r.staleFor(days(s.elapsed))
	if trust < 1 { // when the signal came is unknown; on average, half way
		fresh *= trust
		age = trust*age + (1-trust)*max(age, days(s.elapsed)/2)
	}
	t.fresh.add(fresh)
	t.age.add(age)
	t.weight.add(weight)
	t.weighted.add(weight * fresh)
	t.weightedAge.add(weight * age)
	// Each page has a distribution of ages, and that of all is their mixture. Each gives one
	// time from each eighth of its distribution, chosen by its hash. The time for which a
	// copy stays fresh exceeds b·(u^(-1/a)-1) with probability u.
	within := float64(hash>>11) / (1 << 53)
	for i := range draws {
		u := (float64(i) + within) / draws
		if u <= fresh {
			t.ages.count(0, 1)
			continue
		}
		if trust < 1 && u <= r.Fresh(s.elapsed) {
			t.ages.add(s.elapsed/2, 1)
			continue
		}
		changed := fromDays(r.Days * (math.Exp(-math.Log(u)/r.Shape) - 1))
		t.ages.add(max(s.elapsed-changed, 0), 1)
	}
}

func (t *tally) addAll(o *tally) {
	t.pages += o.pages
	t.copies += o.copies
	t.learned += o.learned
	t.estimated += o.estimated
	t.never += o.never
	t.leased += o.leased
	t.overdue += o.overdue
	for _, f := range []struct{ to, from *fixed }{
		{&t.fresh, &o.fresh}, {&t.age, &o.age}, {&t.weight, &o.weight}, {&t.weighted, &o.weighted}, {&t.weightedAge, &o.weightedAge}, {&t.held, &o.held}, {&t.unseen, &o.unseen},
	} {
		f.to.addFixed(*f.from)
	}
	t.ages.addAll(&o.ages)
	t.visited.addAll(&o.visited)
	t.late.addAll(&o.late)
}

func (t *tally) condition(multiple float64) Condition {
	times := func(n int) int { return int(math.Round(float64(n) * multiple)) }
	c := Condition{
		Pages: times(t.pages), Copies: times(t.copies), Never: times(t.never), Learned: times(t.learned), Estimated: times(t.estimated), Overdue: times(t.overdue), Leased: times(t.leased),
		Freshness: ratio(t.fresh.value(), float64(t.estimated)), Weighted: ratio(t.weighted.value(), t.weight.value()),
		Covered: ratio(t.held.value(), t.held.value()+t.unseen.value()),
		Age:     fromDays(ratio(t.age.value(), float64(t.estimated))), WeightedAge: fromDays(ratio(t.weightedAge.value(), t.weight.value())),
		Ages: t.ages.percentiles(), Visited: t.visited.percentiles(), Late: t.late.percentiles(),
	}
	c.Ages.Max = 0
	return c
}

// ratio is part/whole, zero if the whole is zero.
func ratio(part, of float64) float64 {
	if of > 0 {
		return part / of
	}
	return 0
}

// fixed is a sum of non-negative numbers with 64 binary digits after the point, so that the
// order of adding makes no difference.
type fixed struct{ high, low uint64 }

// add adds a number; NaN counts as zero, and more than 2⁴⁰ as 2⁴⁰.
func (f *fixed) add(x float64) {
	if !(x > 0) {
		return
	}
	whole, part := math.Modf(min(x, 1<<40))
	f.addFixed(fixed{uint64(whole), uint64(part * (1 << 63) * 2)})
}

func (f *fixed) addFixed(o fixed) {
	var carry uint64
	f.low, carry = bits.Add64(f.low, o.low, 0)
	f.high, _ = bits.Add64(f.high, o.high, carry)
}

func (f *fixed) value() float64 { return float64(f.high) + float64(f.low)/(1<<63)/2 }
