package schedule

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Drift is the factor by which the pages of a host, or all pages, have together come to
// change more often. A single page takes tens of visits to show that; together they show
// it within days, when visits find more changes than expected, or fewer.
type Drift struct {
	// Level is that factor, in sixteenths of an octave: 16 is twice as often. A record
	// has the level that its rate is of.
	Level int8
	// Score and Information add up the evidence of visits since the factor was set: the
	// derivative of their log-likelihood by the logarithm of the factor, and its variance.
	// Their quotient estimates the logarithm of a correction to the factor.
	Score       float64 `json:",omitempty"`
	Information float64 `json:",omitempty"`
	// Settling is for how many more days a shift is followed closely: until most pages were
	// visited twice. Only pages that were visited since count: what looks like a shift may be
	// one change of all pages, as when a site gets a new design, which the first visit
	// to each page after it finds.
	Settling float64 `json:",omitempty"`
	// Spread and Independent add up, plan by plan, how far what the visits since the plan before
	// say is from the estimate, squared, and the variance that this would have if pages changed
	// independently of each other. Where many pages change at one moment, as with a template of
	// their site, the visits after it all say the same, and are little evidence of a shift.
	Spread      float64 `json:",omitempty"`
	Independent float64 `json:",omitempty"`
}

const (
	octave = 16 // levels
	// A shift is seen when the estimate is far from zero, and not by chance: slightly wrong
	// rates correct themselves, and pages are not independent.
	shiftBy, shiftSigmas   = 0.25, 5.
	settleBy, settleSigmas = 0.05, 2.
	settleIntervals        = 3.
	// spreadIntervals is for how many intervals Spread is remembered: such moments may be months
	// apart.
	spreadIntervals = 12.
	// mostExpected is the largest number of expected changes at which a visit tells
	// anything: beyond that, nearly every visit finds one.
	mostExpected = 2.5
)

// pass discounts the evidence as time goes by, given how many days lie between two visits
// to a page.
func (f *Drift) pass(passed, every float64) {
	if f.Settling = max(f.Settling-passed, 0); f.Settling == 0 {
		keep := math.Exp(-passed / (2 * every))
		f.Score *= keep
		f.Information *= keep
	}
	keep := math.Exp(-passed / (spreadIntervals * every))
	f.Spread *= keep
	f.Independent *= keep
}

// disperse adds to Spread what visits have said since before.
func (f *Drift) disperse(before Drift) {
	information := f.Information - before.Information
	if !(information > 0) {
		return
	}
	beyond := f.Score - before.Score - f.Score/f.Information*information
	f.Spread += beyond * beyond
	f.Independent += information
}

// dispersion returns by what factor the variance of Score exceeds Information, which it is if
// pages change independently.
func (f *Drift) dispersion() float64 {
	if f.Independent > 0 {
		return max(1, f.Spread/f.Independent)
	}
	return 1
}

// add adds the evidence of a visit that found a change or none, given the number of changes
// expected.
func (f *Drift) add(o outcome) {
	grown := math.Expm1(o.expected)
	if o.changed {
		f.Score += o.expected / grown
	} else {
		f.Score -= o.expected
	}
	f.Information += o.expected * o.expected / grown
}

// shift moves the level if there is reason to.
func (f *Drift) shift(every float64) {
	by, sigmas := shiftBy, shiftSigmas
	if f.Settling > 0 {
		by, sigmas = settleBy, settleSigmas
	}
	log := f.Score / f.Information
	if !(math.Abs(log) > by && math.Abs(f.Score) > sigmas*math.Sqrt(f.Information*f.dispersion())) {
		return
	}
	f.Level = int8(max(-127, min(float64(f.Level)+math.Round(octave*max(-1, min(log/math.Ln2, 1))), 127)))
	if f.Settling == 0 {
		f.Settling = settleIntervals * every
	}
	f.Score, f.Information = 0, 0
}

func (f *Drift) valid() bool {
	const most = 1e15
	return math.Abs(f.Score) <= most && f.Information >= 0 && f.Information <= most && f.Settling >= 0 && f.Settling <= most &&
		f.Spread >= 0 && f.Spread <= most && f.Independent >= 0 && f.Independent <= most
}

// since returns when the shift that is followed closely was seen; zero if there is none.
func (f *Drift) since(now time.Time, every float64) time.Time {
	if f.Settling == 0 {
		return time.Time{}
	}
	return now.Add(-fromDays(max(settleIntervals*every-f.Settling, 0)))
}

// level returns the level for a page.
func (p *Plan) level(url string) int8 {
	if p == nil {
		return 0
	}
	if len(p.HostDrift) > 0 {
		if f, ok := p.HostDrift[crawldb.Host(url)]; ok {
			return f.Level
		}
	}
	return p.Drift.Level
}

// at converts a rate to another level.
func (l learned) at(level int8) learned {
	if level != l.level {
		l.Days *= math.Exp2(float64(int(l.level)-int(level)) / octave)
		l.level = level
	}
	return l
}

// known returns what was learned of a page, at the present level.
func (s Learned) known(d *crawldb.Datum) (l learned, ok bool) {
	l, ok = learnedOf(d)
	if ok && s.Plan != nil {
		l = l.at(s.Plan.level(d.URL))
	}
	return l, ok
}

// rate is like known, and returns what is expected of a page if nothing was learned.
func (s Learned) rate(d *crawldb.Datum) (l learned, ok bool) {
	if l, ok = s.known(d); !ok {
		l.Rate = s.Plan.prior(d.URL, kindUnknown)
	}
	l.Rate = s.Plan.homogenized(d.URL, l.kind, l.Rate)
	return l, ok
}

// outcome is what the last visit found, and how many changes were expected of it; zero
// if the visit tells nothing.
type outcome struct {
	expected float64
	changed  bool
	after    float64 // days since the visit before; zero if unknown
}

// expect returns the number of changes expected in a time, such that the chance of at least
// one is 1 - exp(-expected).
func (r Rate) expect(after time.Duration) float64 { return r.Shape * math.Log1p(days(after)/r.Days) }

// An outcome is two bytes: one with what was expected, and one with the logarithm of the
// time, to 2.5 %, from half an hour to 18 years. Expectations above mostExpected are not
// kept, since a visit hardly changes them.
const afterStep, afterLeast = 0.05, 1. / 48

func (o outcome) encode() (expected, after byte) {
	if o.after >= afterLeast {
		after = byte(min(1+math.Round(math.Log(o.after/afterLeast)/afterStep), 255))
	}
	switch {
	case !(o.expected > 0), o.expected > mostExpected && after == 0:
		return 0, 0
	case o.expected <= mostExpected:
		expected = byte(max(1, math.Round(127*math.Sqrt(o.expected/mostExpected))))
	}
	if o.changed {
		expected |= 0x80
	}
	return expected, after
}

// decodeOutcome reads an outcome, given what is known after it.
func decodeOutcome(expected, after byte, known Rate) (o outcome) {
	x := float64(expected&0x7f) / 127
	o = outcome{expected: mostExpected * x * x, changed: expected&0x80 != 0}
	if after > 0 {
		o.after = afterLeast * math.Exp(float64(after-1)*afterStep)
	}
	if x > 0 || !known.Known() || after == 0 {
		return o
	}
	e := 0.0
	if o.changed {
		e = known.Shape * math.Log1p(o.after/known.Days)
		e *= -math.Expm1(-e) // undo the change that was found
	} else { // a difference of two numbers that may be nearly equal
		e = known.Shape * math.Log1p(o.after/max(known.Days-o.after, 0.05*known.Days))
	}
	o.expected = max(e, mostExpected*1.001)
	return o
}

// setDrifts takes in the evidence of visits since the last plan, about all pages and about
// those of hosts, and converts the sample to the present levels.
func (p *Plan) setDrifts(old *Plan, kept []page) {
	hosts := map[string]*hostDrift{}
	for i := range kept {
		k := &kept[i]
		if !k.known {
			continue
		}
		h := hosts[k.s.Host]
		if h == nil {
			h = &hostDrift{}
			if old != nil {
				f, own := old.HostDrift[k.s.Host]
				if h.Drift = f; !own {
					h.Level = old.Drift.Level
				}
			}
			hosts[k.s.Host] = h
		}
		h.pages++
	}
	if old == nil {
		p.restore(hosts, kept)
	} else {
		p.follow(old, hosts, kept)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(hosts)), func(n string) bool {
		h := hosts[n]
		return h.Level == p.Drift.Level && (h.pages < enoughPages || len(hosts) == 1)
	})
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(hosts[b].pages, hosts[a].pages) })
	for _, n := range names[:min(len(names), maxPriors)] {
		if p.HostDrift == nil {
			p.HostDrift = map[string]Drift{}
		}
		p.HostDrift[n] = hosts[n].Drift
	}
	for i := range kept {
		if k := &kept[i]; k.known {
			k.learned = k.learned.at(p.level(k.url))
			k.s.PerDay = k.learned.PerDay()
		}
	}
}

// hostDrift is the evidence of a sample about a host.
type hostDrift struct {
	Drift
	before Drift // without the visits since the last plan
	pages  int
	last   time.Time
}

// follow adds the visits since the last plan.
func (p *Plan) follow(old *Plan, hosts map[string]*hostDrift, kept []page) {
	every := max(3, min(old.every(), 100)) // days between two visits to a page, on average
	passed := max(days(p.Made.Sub(old.Made)), 0)
	p.Drift = old.Drift
	p.Drift.pass(passed, every)
	for _, h := range hosts {
		h.pass(passed, every)
	}
	if days(p.Made.Sub(p.Begun)) < 3*every {
		return // expectations are not learned yet
	}
	since := p.Drift.since(p.Made, every)
	all := p.Drift
	for _, h := range hosts {
		h.before = h.Drift
	}
	for i := range kept {
		k := &kept[i]
		if !k.tells || !k.fetched.After(old.Made) {
			continue
		}
		o := k.learned.last
		if shape := old.Homogeneity.Shape; shape >= fullyHomogeneous || old.Uniform { // the pages' own rates lag behind
			o.expected = old.expected(k, fullyHomogeneous)
		}
		if o.expected > mostExpected {
			continue
		}
		before := k.fetched.Add(-fromDays(o.after))
		if before.Before(since) {
			continue
		}
		p.Drift.add(o)
		if h := hosts[k.s.Host]; !before.Before(h.since(p.Made, every)) {
			h.add(o)
		}
	}
	p.Drift.disperse(all)
	p.Drift.shift(every)
	by := int(p.Drift.Level) - int(old.Drift.Level)
	for _, h := range hosts {
		h.disperse(h.before)
		switch {
		case by != 0: // its visits say what those of all pages say
			h.Level = int8(max(-127, min(int(h.Level)+by, 127)))
			h.Score, h.Information = 0, 0
		case h.pages >= enoughPages:
			h.shift(every)
		}
	}
}

// restore takes the levels from the latest records if the plan that had them is lost.
func (p *Plan) restore(hosts map[string]*hostDrift, kept []page) {
	var last time.Time
	for i := range kept {
		k := &kept[i]
		if !k.known {
			continue
		}
		if h := hosts[k.s.Host]; k.fetched.After(h.last) {
			h.last, h.Level = k.fetched, k.learned.level
		}
		if k.fetched.After(last) {
			last, p.Drift.Level = k.fetched, k.learned.level
		}
	}
}
