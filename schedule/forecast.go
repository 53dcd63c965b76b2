package schedule

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Outlook is how up to date the copies of a crawl are, and what its budget achieves.
type Outlook struct {
	// At is the time it describes, and Sampled the number of records it was estimated from;
	// zero says that all were read. From 20,000 sampled records a share is accurate to half
	// a percentage point; that of a host with few pages among them, or of importance that
	// few pages have, much less so. Pages and Never are exact either way.
	At      time.Time
	Sampled int `json:",omitempty"`
	Condition
	// Hosts are those with the most importance that is not fresh, the worst
	// first.
	Hosts []HostCondition `json:",omitempty"`
	// Noisy lists hosts where nearly every visit finds a change, however soon it comes; see
	// [NoisyHost].
	Noisy []NoisyHost `json:",omitempty"`
	// Forecast is nil without a budget, or if nothing was learned yet.
	Forecast *Forecast `json:",omitempty"`
	// Trend is how fast the number of pages never visited changes.
	Trend BacklogTrend `json:"Pace"` // the name in stored plans
}

// BacklogTrend is how many pages a day were visited for the first time, and how many were found,
// from Since to Outlook.At. Since is zero if that is not known.
type BacklogTrend struct {
	Since          time.Time `json:",omitzero"`
	Visited, Found float64
}

// BacklogEnd returns when, at the rate of Trend, all pages will have been visited once. ok is false if
// that is never, or Trend is not known.
func (o *Outlook) BacklogEnd() (at time.Time, ok bool) {
	fewer := o.Trend.Visited - o.Trend.Found
	switch {
	case o.Never == 0:
		return o.At, true
	case o.Trend.Since.IsZero() || !(fewer > 0) || float64(o.Never)/fewer > 100*365:
		return time.Time{}, false
	}
	return o.At.Add(fromDays(float64(o.Never) / fewer)), true
}

// fewest is below all budgets of a curve, so that their quotients are finite.
const fewest = 1e-100

// valid reports whether its curve can be read off; a nil Outlook is valid.
func (o *Outlook) valid() bool {
	if o == nil || o.Forecast == nil {
		return true
	}
	perDay := fewest
	for _, r := range o.Forecast.Curve {
		if !(r.PerDay > perDay && r.PerDay < 1e100 && r.Freshness >= 0 && r.Freshness < 1.001) { // sums are rounded
			return false
		}
		perDay = r.PerDay
	}
	return true
}

// setTrend sets Trend by comparison with the last outlook. Less than an hour says little: then
// the earlier trend stays.
func (o *Outlook) setTrend(old *Outlook) {
	const least = time.Hour
	if old == nil {
		return
	}
	span := o.At.Sub(old.At)
	if span < least && !old.Trend.Since.IsZero() || span <= 0 {
		o.Trend = old.Trend
		return
	}
	found := o.Pages - old.Pages
	perDay := func(n int) float64 { return float64(max(n, 0)) / days(span) }
	o.Trend = BacklogTrend{Since: old.At, Visited: perDay(found - (o.Never - old.Never)), Found: perDay(found)}
}

// hostsKept is the number of hosts whose condition is in a plan.
const hostsKept = 20

// outlook returns the outlook estimated from the sample, for a plan that was made from
// it with those options.
func (x *learnedSample) outlook(p *Plan, o PlanOptions) Outlook {
	out := Outlook{At: p.Made, Sampled: len(x.kept)}
	if x.pages == len(x.kept) {
		out.Sampled = 0
	}
	by := map[string]*tally{}
	for i := range x.kept {
		k := &x.kept[i]
		t := by[k.s.Host]
		if t == nil {
			t = &tally{}
			by[k.s.Host] = t
		}
		rate := Rate{}
		if k.known || p.expects() {
			rate = p.rateOf(k)
		}
		weight := k.s.Weight
		if i < len(x.sampled) {
			weight = x.sampled[i].Weight
		}
		trust := 1.0
		if w := p.signalModels[k.s.Host]; w != nil && k.hasSignals {
			rate, trust = w.unsigned(rate), w.none(k.signals)
		}
		t.add(k.at, rate, trust, k.known, weight, k.hash)
	}
	out.Condition, out.Hosts = conditions(by, hostsKept, float64(x.pages)/float64(max(len(x.kept), 1)))
	out.Noisy = slices.Clip(x.noisyHosts[:min(len(x.noisyHosts), hostsKept)])
	out.Pages, out.Never = x.pages, x.never
	if out.Estimated > 0 {
		out.Forecast = x.forecast(p, o.Hosts)
	}
	if x.s.Plan != nil {
		out.setTrend(x.s.Plan.Outlook)
	}
	return out
}

// Forecast is how much importance budgets keep fresh in the long run, once the backlog is
// gone. It covers all known pages, including those never visited but not those without
// content that could be fresh. It is estimated from the sample of the plan, for the pages
// known now and their present rates of change.
type Forecast struct {
	// Budget is that of the plan, in visits a day, and Freshness what it
	// achieves.
	Budget, Freshness float64
	// Revisits is how many visits a day the plan has for pages visited before, Least how many
	// it takes to keep to their greatest intervals: with fewer, pages are late.
	Revisits, Least float64
	// Worth is how many of the pages never visited are worth a visit within the budget:
	// the others wait until it is larger, or there is nothing better to do.
	Worth int
	// Curve is what other budgets would achieve, in ascending order. The last budget is
	// as large as the least intervals and politeness to hosts allow.
	Curve []CurvePoint
}

// CurvePoint is a point of [Forecast].Curve: a budget, in visits a day, and the share of
// importance that it keeps fresh.
type CurvePoint struct{ PerDay, Freshness float64 }

// Reaches returns how much importance a budget, in visits a day, keeps fresh, read off the
// curve.
func (f *Forecast) Reaches(perDay float64) float64 {
	if len(f.Curve) == 0 || !(perDay > 0) {
		return 0
	}
	if first := f.Curve[0]; perDay <= first.PerDay {
		return first.Freshness * perDay / first.PerDay
	}
	for i, to := range f.Curve[1:] {
		if from := f.Curve[i]; perDay < to.PerDay {
			return from.Freshness + (to.Freshness-from.Freshness)*math.Log(perDay/from.PerDay)/math.Log(to.PerDay/from.PerDay)
		}
	}
	return f.Curve[len(f.Curve)-1].Freshness
}

// Needs returns the least budget, in visits a day, that keeps the given share of the
// importance fresh, read off the curve. ok is false if none does.
func (f *Forecast) Needs(freshness float64) (perDay float64, ok bool) {
	if !(freshness > 0) {
		return 0, true
	}
	for i, to := range f.Curve {
		if to.Freshness < freshness {
			continue
		}
		if i == 0 {
			return to.PerDay * freshness / to.Freshness, true
		}
		from := f.Curve[i-1]
		return from.PerDay * math.Pow(to.PerDay/from.PerDay, (freshness-from.Freshness)/(to.Freshness-from.Freshness)), true
	}
	return 0, false
}

// prospect computes what to expect of the pages of a sample at a threshold.
type prospect struct {
	pages  []sampled // by host
	rates  []Rate
	counts []bool // has a copy, or was never visited
	never  []bool // never visited
	weight float64
	hosts  func(string) float64
	capped map[string]CurvePoint // hosts with as many visits as they allow
	// late is the mean delay of a visit, in days after it is due.
	late float64
}

func (x *learnedSample) prospect(p *Plan, hosts func(string) float64) *prospect {
	f := &prospect{hosts: hosts, capped: map[string]CurvePoint{}}
	order := make([]int, len(x.sampled))
	for i := range order {
		order[i] = i
	}
	if hosts != nil {
		slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(x.sampled[a].Host, x.sampled[b].Host) })
	}
	for _, i := range order {
		k := &x.kept[i]
		f.pages = append(f.pages, x.sampled[i])
		f.rates = append(f.rates, p.rateOf(k))
		f.counts = append(f.counts, k.at.copied || k.at.never)
		f.never = append(f.never, k.at.never)
		if k.at.copied || k.at.never {
			f.weight += x.sampled[i].Weight
		}
	}
	return f
}

// free returns the prospect without greatest intervals.
func (f *prospect) free() *prospect {
	g := *f
	g.capped = map[string]CurvePoint{}
	g.pages = unbounded(f.pages)
	return &g
}

// at returns the result of a threshold.
func (f *prospect) at(mu float64) CurvePoint {
	sum := CurvePoint{}
	for from := 0; from < len(f.pages); {
		to := len(f.pages)
		if f.hosts != nil {
			for to = from + 1; to < len(f.pages) && f.pages[to].Host == f.pages[from].Host; to++ {
			}
		}
		r := f.part(from, to, mu)
		if f.hosts != nil {
			if most := f.hosts(f.pages[from].Host); r.PerDay > most*(1+1e-9) {
				r = f.most(from, to, most)
			}
		}
		sum.PerDay += r.PerDay
		sum.Freshness += r.Freshness
		from = to
	}
	return CurvePoint{sum.PerDay, ratio(sum.Freshness, f.weight)}
}

func (f *prospect) part(from, to int, mu float64) (r CurvePoint) {
	for i := from; i < to; i++ {
		p := &f.pages[i]
		interval := p.interval(mu) + f.late
		r.PerDay += p.Multiple / interval
		if f.counts[i] {
			r.Freshness += p.Weight * p.freshness(mu, f.rates[i], interval)
		}
	}
	return r
}

// most returns the result of as many visits as a host allows.
func (f *prospect) most(from, to int, perDay float64) CurvePoint {
	host := f.pages[from].Host
	r, ok := f.capped[host]
	if !ok {
		pages := make([]*sampled, 0, to-from)
		for i := from; i < to; i++ {
			pages = append(pages, &f.pages[i])
		}
		r = f.part(from, to, solve(pages, perDay))
		f.capped[host] = r
	}
	return r
}

// A threshold of half takes about 1.4 times the visits: that is a step of the curve.
const (
	curveStep  = 2
	curveSteps = 50
)

// rising lists the results of lower and lower thresholds, from a given number of visits a
// day on, until more visits are useless or impossible.
func (f *prospect) rising(perDay float64) (curve []CurvePoint) {
	pages := make([]*sampled, len(f.pages))
	for i := range f.pages {
		pages[i] = &f.pages[i]
	}
	mu := solve(pages, perDay)
	for range curveSteps {
		r := f.at(mu)
		if len(curve) == 0 && r.PerDay <= fewest {
			mu /= curveStep // all visits begin at one threshold, which is lower
			continue
		}
		if n := len(curve); n > 0 && r.PerDay <= curve[n-1].PerDay*1.001 {
			break
		}
		if curve = append(curve, r); r.Freshness > 0.9995 {
			break
		}
		mu /= curveStep
	}
	return curve
}

// lateness returns the mean delay of a visit, in days after it is due. Plan.Scale tells it:
// by that factor, fewer visits were made than the intervals ask for.
func lateness(f *prospect, p *Plan) float64 {
	if p.Scale <= 1 {
		return 0
	}
	intervals := make([]float64, len(f.pages))
	sum := func(late float64) (perDay float64) {
		for i := range f.pages {
			perDay += f.pages[i].Multiple / (intervals[i] + late)
		}
		return perDay
	}
	for i := range f.pages {
		intervals[i] = f.pages[i].interval(p.muOf(f.pages[i].Host))
	}
	low, high := 0.0, 100.0
	for most := sum(0) / p.Scale; high-low > 1e-4; {
		if mid := (low + high) / 2; sum(mid) > most {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// forecast makes the forecast of a plan.
func (x *learnedSample) forecast(p *Plan, hosts func(string) float64) *Forecast {
	if !(p.Budget > 0) || !(p.Mu > 0) || !(p.Scale > 0) || len(x.sampled) == 0 {
		return nil
	}
	bound := x.prospect(p, hosts)
	free := bound.free()
	f := &Forecast{Budget: p.Budget, Least: bound.at(math.Inf(1)).PerDay}
	now := bound
	if p.stretch() > 1 {
		now = free
	}
	now.late = lateness(now, p)
	bound.late, free.late = now.late, now.late
	f.Freshness = now.at(p.Mu).Freshness
	worth := 0.0
	for i := range now.pages {
		page := &now.pages[i]
		mu := p.muOf(page.Host)
		switch {
		case !now.never[i]:
			f.Revisits += page.Multiple / (page.interval(mu) + now.late)
		case !math.IsInf(page.interval(mu), 1):
			worth += page.Multiple
		}
	}
	f.Worth = int(math.Round(worth))
	// With less than Least, pages are left alone for longer than they should be.
	from := p.Budget
	if f.Least > 0 {
		from = min(from, f.Least)
	}
	for _, r := range free.rising(from / 256) {
		if f.Least > 0 && r.PerDay >= f.Least {
			break
		}
		f.Curve = append(f.Curve, r)
	}
	if f.Least > 0 {
		for _, r := range bound.rising(f.Least * 1.02) {
			if n := len(f.Curve); n == 0 || r.PerDay > f.Curve[n-1].PerDay {
				f.Curve = append(f.Curve, r)
			}
		}
	}
	return f
}
