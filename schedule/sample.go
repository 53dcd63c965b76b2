package schedule

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// learnedSample is the [Sample] of a [Learned]. Which records it keeps depends only on their
// URLs, not on their order.
type learnedSample struct {
	s     Learned
	now   time.Time
	size  int
	kept  farthest
	pages int
	never int // were never visited
	// sampled is what the plan was solved for, in the order of kept.
	sampled    []sampled
	noisyHosts []NoisyHost
}

// sampleSize is the number of records in a sample. With five hundred, the threshold costs
// less than a five-hundredth of the freshness; more are needed to know about hosts.
const sampleSize = 20_000

// NewSample starts a sample for a new plan of the schedule, as of now. The Plan of
// the schedule is the one so far, if there is one. (It implements [Planner].)
func (s Learned) NewSample(now time.Time) Sample { return s.newSample(now) }

func (s Learned) newSample(now time.Time) *learnedSample {
	s.NutchCompat = false
	return &learnedSample{s: s, now: now, size: sampleSize}
}

// page is a record in the sample.
type page struct {
	url        string
	hash       uint64
	known      bool // something was learned
	tells      bool // the last visit found whether it has changed
	fetched    time.Time
	learned    learned
	s          sampled
	overdue    bool
	late       bool // more than a day after its latest moment
	hasSignals bool // there are signals of its changes
	signals    int  // since the last visit
	at         standing
}

// farthest is a heap whose root has the greatest hash.
type farthest []page

func (h *page) compare(g *page) int {
	return cmp.Or(cmp.Compare(h.hash, g.hash), cmp.Compare(h.url, g.url))
}
func (h farthest) Len() int           { return len(h) }
func (h farthest) Less(i, j int) bool { return h[i].compare(&h[j]) > 0 }
func (h farthest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *farthest) Push(x any)        { *h = append(*h, x.(page)) }
func (h *farthest) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// Add implements [Sample].
func (x *learnedSample) Add(d *crawldb.Datum) {
	x.pages++
	if d.LastFetch.IsZero() {
		x.never++
	}
	p := page{url: d.URL, hash: hash(d.URL)}
	if len(x.kept) == x.size && p.compare(&x.kept[0]) > 0 {
		return
	}
	s := &x.s
	p.learned, p.known = learnedOf(d) // at the level of that time: see drifts
	if !p.known {
		p.learned.Rate = s.Plan.prior(d.URL, kindUnknown)
	}
	p.s = sampled{Host: crawldb.Host(d.URL), PerDay: p.learned.PerDay(), Weight: float64(d.Score)}
	if s.Weight != nil {
		p.s.Weight = s.Weight(d)
	}
	p.s.Least, p.s.Most = s.bounds(d.URL)
	p.fetched = d.LastFetch
	p.tells = p.learned.last.expected > 0 && d.Retries == 0 && (d.Status == crawldb.Fetched || d.Status == crawldb.NotModified)
	p.at = s.standing(d, x.now)
	gone := goneFor(d, p.s.Most)
	p.overdue = !p.at.never && !gone && !d.FetchTime.After(x.now)
	p.late = !p.at.never && !s.latest(d, 45).Add(s.Plan.grace()).After(x.now)
	fixed, ok := fixedInterval(*d)
	if p.hasSignals = !ok && hasSignals(d); p.hasSignals {
		p.signals = signalsSince(d, since(d, d.LastFetch))
	}
	switch {
	case ok:
		fixed = wholeSeconds(fixed, s.max())
		p.s.Least, p.s.Most = fixed, fixed
	case d.Status == crawldb.Gone, d.Status == crawldb.ParseFailed:
		p.known, p.s.Gone = false, d.Status == crawldb.Gone
		i := max(p.s.Least, min(s.interval(*d), p.s.Most))
		if gone {
			i = s.Plan.patience(i)
		}
		p.s.Least, p.s.Most = i, i
	case p.at.never:
		p.s.Most = 0 // there is no greatest interval before the first visit
	}
	if len(x.kept) == x.size {
		x.kept[0] = p
		heap.Fix(&x.kept, 0)
		return
	}
	heap.Push(&x.kept, p)
}

// hash is FNV-1a with the finalizer of MurmurHash3, which spreads it over all bits.
func hash(url string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(url) {
		h = (h ^ uint64(url[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// mostBudget exceeds any real budget, and can be encoded in a plan.
const mostBudget = 1e15

// asked returns the Budget of a schedule in a form that JSON can encode.
func asked(budget float64) float64 {
	if math.IsNaN(budget) {
		return 0
	}
	return max(-mostBudget, min(budget, mostBudget))
}

// For reports whether a plan was made for a schedule with that Budget.
func (p *Plan) For(budget float64) bool { return p.Asked == asked(budget) }

// PlanOptions say what a plan is made from besides records.
type PlanOptions struct {
	// Visits is how many visits the crawl has made since it began; zero means that
	// they are not counted. It lets a plan correct itself: see [Plan].Scale.
	Visits int64
	// Hosts returns how many visits a day a host may have. Nil means any
	// number.
	Hosts func(host string) float64
	// Signals returns what signals are worth for the pages of a host; ok is false
	// if that is not known. It is called for hosts that have signals. Nil means not known.
	Signals func(host string) (s SignalQuality, ok bool)
	// Allowed is the budget of a schedule whose budget is negative.
	Allowed float64
	// Budget, if above zero, replaces the budget of the schedule.
	Budget float64
	// Outlook asks for Plan.Outlook.
	Outlook bool
}

// Plan implements [Sample].
func (x *learnedSample) Plan(o PlanOptions) *Plan {
	if o.Budget > 0 {
		x.s.Budget = o.Budget
	}
	p := x.plan(o)
	if o.Outlook {
		out := x.outlook(p, o)
		p.Outlook = &out
	}
	return p
}

func (x *learnedSample) plan(o PlanOptions) *Plan {
	old := x.s.Plan
	p := &Plan{Made: x.now.UTC(), Visits: o.Visits, Scale: 1, Budget: x.budget(o), Asked: asked(x.s.Budget), Pages: float64(x.pages)}
	if p.Begun = p.Made; old != nil && old.Begun.Before(p.Made) && !old.Begun.IsZero() {
		p.Begun = old.Begun
	}
	slices.SortFunc(x.kept, func(a, b page) int { return a.compare(&b) }) // the same pages, but no heap
	slices.Reverse(x.kept)                                                // and a heap again
	if len(x.kept) == 0 {
		return p
	}
	multiple := float64(x.pages) / float64(len(x.kept))
	p.Mean = meanWeight(x.kept)
	for i := range x.kept {
		if x.kept[i].s.Gone {
			p.Gone += multiple
		}
	}
	p.setDoubt(old, x.kept)
	p.setDrifts(old, x.kept)
	p.setPriors(x.kept)
	p.setHomogeneity(old, x.kept)
	p.setHostSignals(o.Signals, x.kept, old)
	x.noisyHosts = findNoisyHosts(x.kept)
	late, signed := x.weigh(p, multiple)
	if p.Budget == 0 {
		return p
	}
	p.correct(old, o.Visits, late, signed, days(x.s.max()))
	p.tellApart(old, x.sampled, x.kept, x.s.max(), o.Hosts)
	return p
}

// meanWeight returns the mean weight of the pages that have some; those without count for little.
func meanWeight(kept []page) float64 {
	sum, n := 0.0, 0
	for i := range kept {
		if w := kept[i].s.Weight; w > 0 {
			sum += min(w, math.MaxFloat32)
			n++
		}
	}
	if sum > 0 {
		return sum / float64(n)
	}
	return 1
}

// weigh sets what the plan is solved for, each page of the sample standing for as many as
// multiple says, and counts what waits. It returns how many pages are late, and how many have
// signals.
func (x *learnedSample) weigh(p *Plan, multiple float64) (late, signed float64) {
	x.sampled = make([]sampled, len(x.kept))
	for i := range x.kept {
		k := &x.kept[i]
		s := &x.sampled[i]
		*s = k.s
		s.Multiple = multiple
		if !(s.Weight > p.Mean/1000) {
			s.Weight = p.Mean / 1000
		}
		s.Weight = min(s.Weight, math.MaxFloat32)
		if !k.known {
			s.PerDay = p.unseen(k.url, k.learned.kind).PerDay()
		} else {
			s.PerDay = p.pace(&k.learned, k.learned.Rate, true).PerDay()
			s.Weight = p.effectiveWeight(&k.learned, true, s.Weight)
		}
		if k.hasSignals && s.Most != s.Least {
			if s.signs = p.signalModels[s.Host]; s.signs != nil {
				signed += multiple
			}
		}
		if k.at.never {
			p.New += multiple
		} else if k.overdue {
			p.Backlog += multiple
		}
		if k.late {
			late += multiple
		}
	}
	return late, signed
}

// budget returns the number of visits a day that a plan is for.
func (x *learnedSample) budget(o PlanOptions) float64 {
	budget := x.s.Budget
	switch {
	case budget < 0:
		budget = o.Allowed
	case budget == 0:
		budget = float64(x.pages) / days(wholeSeconds(x.s.defaultInterval(), x.s.max()))
	}
	if !(budget > 0) {
		return 0
	}
	return min(budget, mostBudget)
}

// solve sets the threshold.
func (p *Plan) solve(sample []sampled, most time.Duration, hosts func(string) float64) {
	budget := p.planned()
	if p.Uniform {
		sample = slices.DeleteFunc(slices.Clone(sample), func(s sampled) bool { return s.Gone })
	}
	even := p.stretch() // from correct
	some := sample
	if p.Stretch = 0; even < 1 {
		p.Stretch = even
		some = stretched(sample, even)
	}
	// Hosts with their own threshold have all the visits they allow: nothing is left to use.
	p.Mu, p.HostMu = solveAll(some, sample, budget, hosts)
	if p.Stretch > 0 {
		some = p.free(sample, even)
	}
	p.Needed = p.needs(some)
	least, first := 0.0, 0.0 // for the greatest intervals, and for first visits within them
	for i := range sample {
		switch s := &sample[i]; {
		case s.Gone: // pages that are gone take what is left
		case s.Most > 0:
			least += s.Multiple / days(s.Most)
		default:
			first += s.Multiple / days(most)
		}
	}
	p.AllNew = least+first <= p.Budget || first <= fewNew*p.Budget
	switch {
	case least > p.Budget*1.001:
		// Not enough for the greatest intervals: a part of it, half at most, goes where it is worth most,
		// and the rest is given to pages in turn.
		by := least / p.Budget
		p.Stretch = min(by*min(by, 2), 1e6)
		late := stretched(sample, p.Stretch)
		p.Mu, p.HostMu = solveAll(late, late, budget, hosts)
	case p.Needed < 0.99*budget:
		// At this threshold no further visit is worthwhile, and at any lower one all
		// would be: these pages change far too often, all equally.
		p.use(sample, budget, hosts)
	}
}

// fewNew is the share of the budget that first visits within the greatest interval may take, whatever others take.
const fewNew = 0.1

// use makes the greatest intervals as short as the budget allows. Hosts that would be visited
// too often keep theirs, and get their own threshold.
func (p *Plan) use(sample []sampled, budget float64, hosts func(string) float64) {
	for {
		low, high := math.Log(1e-4), math.Log(p.stretch())
		for high-low > 1e-3 {
			mid := (low + high) / 2
			if p.needs(p.free(sample, math.Exp(mid))) > budget {
				low = mid
			} else {
				high = mid
			}
		}
		p.Stretch = math.Exp(high) // exactly as before if nothing was gained
		free := p.free(sample, p.Stretch)
		p.Needed = p.needs(free)
		if hosts == nil {
			return
		}
		visits := map[string]float64{}
		for i := range free {
			visits[free[i].Host] += free[i].visits(p.muOf(free[i].Host))
		}
		more := false
		for host, sum := range visits {
			if _, ok := p.HostMu[host]; ok || sum <= hosts(host) {
				continue
			}
			if p.HostMu == nil {
				p.HostMu = map[string]float64{}
			}
			p.HostMu[host], more = p.Mu, true
		}
		if !more {
			return
		}
	}
}

// free is stretched, except for pages of hosts with their own threshold.
func (p *Plan) free(sample []sampled, by float64) []sampled {
	some := stretched(sample, by)
	for i := range some {
		if _, ok := p.HostMu[some[i].Host]; ok {
			some[i] = sample[i]
		}
	}
	return some
}

// stretched returns the sample with greatest intervals multiplied by a factor, except for
// pages with their own interval.
func stretched(sample []sampled, by float64) []sampled {
	some := slices.Clone(sample)
	for i := range some {
		if s := &some[i]; s.Most > s.Least {
			s.Most = max(s.Least, fromDays(days(s.Most)*by))
		}
	}
	return some
}

// setHostSignals sets HostSignals for the hosts with the most pages in the sample that have signals.
func (p *Plan) setHostSignals(of func(host string) (SignalQuality, bool), kept []page, old *Plan) {
	if of == nil {
		return
	}
	pages := map[string]int{}
	for i := range kept {
		if kept[i].hasSignals {
			pages[kept[i].s.Host]++
		}
	}
	names := slices.Sorted(maps.Keys(pages))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(pages[b], pages[a]) })
	for _, n := range names[:min(len(names), maxPriors)] {
		s, ok := of(n)
		if !ok || s.Precision != s.Precision || s.Recall != s.Recall {
			continue
		}
		if p.HostSignals == nil {
			p.HostSignals = map[string]SignalQuality{}
		}
		p.HostSignals[n] = SignalQuality{max(0, min(s.Precision, 1)), max(0, min(s.Recall, 1))}
	}
	p.prepare(old)
}

// unbounded returns the sample without greatest intervals, except for pages with their own
// interval.
func unbounded(sample []sampled) []sampled {
	free := slices.Clone(sample)
	for i := range free {
		if free[i].Most > free[i].Least {
			free[i].Most = 0
		}
	}
	return free
}

// needs adds up what the plan takes.
func (p *Plan) needs(sample []sampled) float64 {
	sum := 0.0
	for i := range sample {
		sum += sample[i].visits(p.muOf(sample[i].Host))
	}
	return sum
}

// correct sets Scale. Visits wait for a round, so they come later than due, there are fewer
// of them than intended, and there is room for more. But if many pages are late by more than
// a day, there should be fewer. A correction takes effect only when intervals are over, so
// steps up are small.
func (p *Plan) correct(old *Plan, visits int64, late, signed, most float64) {
	if old == nil || visits == 0 || !(old.Scale > 0) {
		return
	}
	p.Scale = old.Scale
	passed := days(p.Made.Sub(old.Made))
	if passed <= 0 {
		return
	}
	// Visits are whole numbers, and one page may wait alone. With less than one visit a day,
	// a few say little about their rate: they are counted over several plans.
	from, had := old.Made, old.Visits
	if !old.Counted.IsZero() {
		from, had = old.Counted, old.CountedVisits
	}
	counted := max(days(p.Made.Sub(from)), passed)
	if p.Budget < 1 && counted*p.Budget < enoughVisits {
		p.Counted, p.CountedVisits = from, had
	}
	used := float64(visits-had) / counted
	idle := used < 0.99*p.Budget-1/counted && p.Backlog <= max(3*p.Budget, 1)
	every := p.every()
	much, shortest := late/max(0.25*p.Budget, 1), every/(ofMost*most)
	every = max(3, every)
	passed = min(passed, 5)
	// If much goes unused for long, the plan overestimates what it will take: of pages that
	// are all alike it visits those that seem a little slower, until they no longer do.
	p.Stretch = min(old.stretch(), 1)
	// Steps are no longer than what happens until they take effect.
	quick, slow := min(0.012, 0.36/every), min(0.005, 0.15/every)
	more, less := 0.15/every, slow*min(much, 4)
	if p.Scale < 1 { // it was lowered for a crowd of pages
		more = max(more, quick)
	}
	young := days(p.Made.Sub(p.Begun)) < 4*every
	if young { // the first visits come all at once, and what is used is not known yet
		more, less = quick, slow
	}
	if idle && !young && used < 0.95*p.Budget {
		p.Unused = old.Unused + passed
	}
	switch {
	case much > 1:
		p.Stretch = min(p.Stretch*math.Exp(0.5*passed/every), 1)
	case !idle:
		p.Stretch = min(p.Stretch*math.Exp(0.1*passed/every), 1)
	case p.Unused > every:
		p.Stretch = p.Stretch * math.Exp(-0.5*passed/every)
	}
	// It is never so short that the present pages take more than the whole budget.
	p.Stretch = max(p.Stretch, min(shortest, 1))
	switch {
	case idle:
		p.Scale *= min(p.Budget/max(used, 1e-9), math.Exp(more*passed))
	case much > 1 && old.Needed <= 1.01*old.planned():
		p.Scale /= math.Exp(less * passed)
	case p.Scale < 1 && much < 0.25 && p.New+p.Backlog <= p.Budget: // only pages that are gone wait
		p.Scale = min(p.Scale*math.Exp(more*passed), 1)
	}
	// Late pages take one more visit each, not one in each of their intervals, and that is made up for
	// in two mean intervals. A lower Scale would leave the budget unused afterwards. At first all pages
	// are one crowd, and it takes a lower one to spread them. The share of the budget that signals take
	// is known only on average: for pages that have signals, Scale may fall as far as it must.
	if !young {
		least := leastScale - late/(2*p.Pages)
		p.Scale = max(p.Scale, least-(least-0.5)*signed/p.Pages)
	}
	p.Scale = max(0.5, min(p.Scale, 2))
}

// uniformScale is the least factor by which a plan exceeds the budget if all pages have one interval, visits to
// pages that are gone not counted. Then it costs nothing that a page waits in line, since all wait alike.
const uniformScale = 1.03

// planned returns how many visits a day are planned.
func (p *Plan) planned() float64 {
	if p.Uniform {
		return p.Budget * max(p.Scale, uniformScale)
	}
	return p.Budget * p.Scale
}

// leastScale is the least Scale of a plan when no page is late and there are no signals.
const leastScale = 0.95

// enoughVisits is the number of visits that a plan must have counted.
const enoughVisits = 20

// enoughPages is the number of pages with something learned from which their host or kind
// has its own prior. maxPriors limits the number of hosts that have one.
const (
	enoughPages = 50
	maxPriors   = 2000
)

// setPriors estimates what to expect of pages: the Gamma distribution with the mean and the
// variance of the rates in the sample. The variance is that between pages plus that of
// what is known of each (empirical Bayes by the method of moments).
func (p *Plan) setPriors(kept []page) {
	var all moments
	hosts, byKind := map[string]*moments{}, map[string]*moments{}
	add := func(to map[string]*moments, name string, r Rate) {
		m := to[name]
		if m == nil {
			m = &moments{}
			to[name] = m
		}
		m.add(r)
	}
	for i := range kept {
		if k := &kept[i]; k.known {
			r := k.learned.Rate
			if most := p.pace(&k.learned, r, true).PerDay(); most < r.PerDay() {
				r.Days = r.Shape / most
			}
			all.add(r)
			add(hosts, k.s.Host, r)
			if k.learned.kind != kindUnknown {
				add(byKind, k.learned.kind.String(), r)
			}
		}
	}
	if all.n < enoughPages {
		return
	}
	p.Prior = all.fit()
	pick := func(of map[string]*moments, most int) map[string]Rate {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(n string) bool { return of[n].n < enoughPages })
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(of[b].n, of[a].n) })
		rates := map[string]Rate{}
		for _, n := range names[:min(len(names), most)] {
			rates[n] = of[n].fit()
		}
		if len(of) <= 1 {
			return nil // as all are
		}
		return rates
	}
	p.HostPrior, p.KindPrior = pick(hosts, maxPriors), pick(byKind, kinds)
}

// moments adds up rates.
type moments struct {
	n                    int
	sum, squares, within float64
}

func (m *moments) add(r Rate) {
	x, d := r.PerDay(), r.Deviation()
	m.n++
	m.sum += x
	m.squares += x * x
	m.within += d * d
}

// fit returns the Gamma distribution. Its shape is kept from being so small, where
// few pages change very often, or so large that a visit would tell too much or too
// little.
func (m *moments) fit() Rate {
	n := float64(m.n)
	mean := m.sum / n
	variance := m.squares/n - mean*mean + m.within/n
	shape := max(0.3, min(mean*mean/variance, 3))
	if !(mean > 0) || math.IsInf(mean, 0) {
		return Rate{}
	}
	if shape != shape {
		shape = 0.5
	}
	return Rate{shape, shape / mean}
}

// grace is for how long a page may be late before that says anything: where there are few visits
// it is chance for how long a page waits for one.
func (p *Plan) grace() time.Duration {
	if p == nil || !(p.Budget > 0) {
		return day
	}
	return max(day, fromDays(2/p.Budget))
}
