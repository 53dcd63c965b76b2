package schedule

import (
	"math"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Learned fetches a page when a visit to it is worth as much as one to any other:
// it estimates how often the page changes from what each visit finds (see [Rate]),
// and sets the next visit to the moment at which the freshness lost without one,
// weighted by importance, reaches the threshold of its [Plan]:
//
//	next = last + h⁻¹(threshold·rate/weight)/rate,  h(r) = 1 - (1+r)·exp(-r)
//
// A page that rarely changes is rarely fetched; so is one that changes so often that a visit is soon worth
// nothing. Important pages are fetched more often. Where visits that far apart would hardly tell how often a
// page changes, they come in pairs, one sooner and one later. Pages that have always changed are visited again soon
// once in a while, to tell whether they change or the signature sees noise: see [NoisyHost]. For known rates this keeps as
// much importance up to date as that many visits can (Cho and Garcia-Molina 2003, Olston and Pandey 2008).
//
// The threshold comes from the budget: a recrawl.Crawler makes a plan when there is
// none, and new ones as the crawl db changes; without a Crawler, see
// [Learned.NewSample]. Without a plan, a page of average importance about which
// nothing is known is fetched at the interval of [Default], and all others around
// that.
//
// Where pages matter alike and telling them apart is hardly worth it, all are visited at one
// interval, give or take 5 % so that visits do not fall into step with pages that change
// regularly: see Plan.Uniform.
//
// When the pages of a host, or all pages, together begin to change more or less often, the
// plan sees it in what a few visits to each find (see [Drift]); a page that does so alone
// is followed as fast as Keep allows.
//
// What was learned of a page that was visited twice, or said when it last changed, is kept in its
// Meta, in 14 bytes when encoded. The zero value is ready to use; a value must not be changed while it
// is in use.
type Learned struct {
	// Default sets the interval of new, failing and missing pages, and the greatest
	// interval: no page goes unvisited for more than a tenth longer, if the budget allows that (see Priority), except
	// gone ones (see Gone).
	// NutchCompat has no effect.
	Default
	// Budget is how many visits a day the plan is for. Zero means as many as it would
	// take to fetch every page at the interval of Default; negative means as many as
	// politeness to hosts and the threads of the fetch allow. A positive Budget limits
	// what the rounds of a Crawler select: it accrues evenly, up to a day's worth, so
	// that the first day, and any after a pause, may have up to twice as many.
	Budget float64
	// MinInterval is the least interval, and the least time between two visits;
	// zero means one hour, negative one second.
	MinInterval time.Duration
	// HostIntervals are bounds for the pages of some hosts, by host name in lower
	// case. Like those of [Adaptive] they narrow the general bounds, never widen
	// them.
	HostIntervals map[string]Bounds
	// Weight is the importance of a page; nil means its score, and for the order of
	// due pages the priority that the scoring computed. Values below a thousandth
	// of the mean, and NaN, count as a thousandth of the mean.
	Weight func(d *crawldb.Datum) float64
	// Keep is the share of what was learned that is kept at each visit: the rest gives
	// way to what is expected of any page, so that changes in a page's rate are noticed.
	// Zero means 0.98; with one or more, nothing is forgotten.
	Keep float64
	// Plan is what is known of the crawl as a whole. It may be nil.
	Plan *Plan
}

var _ interface {
	HorizonSchedule
	PrioritySchedule
	SelectedSchedule
	SignalSchedule
} = Learned{}

// Fetched implements [FetchSchedule].
func (s Learned) Fetched(d crawldb.Datum, v Visit) crawldb.Datum {
	s.NutchCompat = false
	if _, ok := fixedInterval(d); ok {
		return s.Default.Fetched(d, v)
	}
	l, seen := s.learn(&d, v)
	if seen {
		l.keep(&d)
	}
	d.Meta.Delete(sinceKey)
	d.Meta.Delete(signalsKey)
	d.Retries = 0
	d.Modified = modified(v)
	least, most := s.within(d.URL)
	own := s.Plan.homogenized(d.URL, l.kind, l.Rate)
	rate := s.Plan.pace(&l, own, seen)
	d.Interval = s.wait(&d, rate, s.Plan.effectiveWeight(&l, seen, s.weight(&d, float64(d.Score))), least, most)
	switch {
	case d.Interval == most && most > least:
		d.Interval = spread(d.URL, v, least, most)
	case seen && d.Interval > least && 2*d.Interval <= most && s.Plan.signalModelOf(&d) == nil && s.Plan.pairs(d.URL): // with signals, pairs are not needed
		if l.tells() || s.Plan.believes(&l) && !s.Plan.probes(d.URL) {
			d.Interval = uneven(d.URL, v, own, d.Interval, least, most)
		} else {
			d.Interval = l.checkInterval(d.URL, v, s.Plan.every(), d.Interval, least)
		}
	}
	if rate.Shape >= fullyHomogeneous {
		d.Interval = seconds(beat(d.URL, d.Interval).Seconds(), least, most)
	}
	d.FetchTime = v.Time.Add(d.Interval)
	return d
}

// learn returns what is known after a visit, and whether anything was learned of the page.
func (s Learned) learn(d *crawldb.Datum, v Visit) (l learned, seen bool) {
	l, seen = s.known(d)
	l.last = outcome{}
	kind := kindOf(v.ContentType)
	if kind != kindUnknown {
		l.kind = kind
	}
	if !seen {
		l.Rate, l.level = s.Plan.prior(d.URL, l.kind), s.Plan.level(d.URL)
	}
	prev := since(d, v.PrevFetch)
	after := v.Time.Sub(prev)
	switch {
	case prev.IsZero() || v.Change == Unknown:
		// A server about which nothing is known is believed unless the date is
		// today, when it may have generated the page for this request.
		if ago := v.Time.Sub(v.Modified); !seen && !v.Modified.Before(oldest) && ago >= day {
			l.Rate, l.noiseState = l.ChangedAgo(ago), trusted
			return l, true
		}
		return l, seen
	case after <= 0:
		return l, seen
	}
	w, signs, expected := s.Plan.signalModelOf(d), 0, l.expect(after)
	if w != nil {
		signs = signalsSince(d, prev)
	}
	switch {
	case !seen || signs > 0 || l.noisy():
	case w != nil:
		l.last = outcome{expected: w.expect(l.Rate, after), changed: v.Change == Changed}
	default:
		l.last = outcome{expected, v.Change == Changed, days(after)}
	}
	if seen {
		l.Rate = s.fade(l.Rate, s.Plan.prior(d.URL, l.kind))
	}
	said := !v.Modified.Before(oldest) && !v.Modified.After(v.Time)
	if said && v.Modified.After(prev) != (v.Change == Changed) {
		l.lying = true
	}
	if w != nil { // the signature sees what the signals are of
		l.noiseState = trusted
	} else {
		l.updateNoiseState(v.Change == Changed, after, expected, s.Plan.every())
	}
	ago := v.Time.Sub(v.Modified)
	switch {
	case v.Change == Unchanged:
		l.Rate = l.Unchanged(after)
	case said && !l.lying && ago >= min(after/50, time.Minute): // servers that do not know send a time just before
		l.Rate, l.noiseState = l.ChangedAgo(ago), trusted
	case w != nil:
		l.Rate = w.changed(l.Rate, after, signs)
	case !s.Plan.knowsSignals(d.URL) && early(d, prev, v.Time):
		l.Rate = l.ChangedAgo(after) // the signal was right, and the visit came at once
	default:
		l.Rate = l.Changed(after)
	}
	return l, true
}

// fade forgets a part of what a page has shown, and puts the expectation for any page in its
// place: otherwise a page that is quiet for years would be taken for dead.
func (s Learned) fade(r, prior Rate) Rate {
	keep := s.keepShare()
	if keep >= 1 {
		return r
	}
	prior = prior.forget(1 - keep)
	// But it is never expected to change less often than it has shown: after few visits, a
	// page that changes eight times a day would be expected to change only twice.
	prior.Days = min(prior.Days, prior.Shape/r.PerDay())
	r = r.forget(keep)
	return Rate{r.Shape + prior.Shape, r.Days + prior.Days}
}

func (s Learned) keepShare() float64 {
	if !(s.Keep > 0) {
		return 0.98
	}
	return s.Keep
}

// early reports whether a visit was made before its time because of a signal that
// the page had changed.
func early(d *crawldb.Datum, prev, at time.Time) bool {
	hint, ok := crawldb.SitemapEntryOf(d.Meta)
	return ok && hint.Modified.After(prev) && at.Sub(prev) < d.Interval
}

// since returns when the content was last seen, given the time of the visit before:
// it may have failed.
func since(d *crawldb.Datum, prev time.Time) time.Time {
	text, ok := d.Meta.Get(sinceKey)
	if !ok {
		return prev
	}
	ms, err := strconv.ParseInt(text, 36, 64)
	if at := time.UnixMilli(ms); err == nil && at.Before(prev) {
		return at
	}
	return prev
}

// wait returns the interval of a page with a rate and a weight.
func (s Learned) wait(d *crawldb.Datum, r Rate, weight float64, least, most time.Duration) time.Duration {
	perDay := r.PerDay()
	x := s.Plan.signalModelOf(d).inverse(s.threshold(d.URL) * perDay / weight)
	return seconds(x/perDay*day.Seconds(), least, most)
}

// spread returns an interval for a page that has the greatest: a little shorter, depending
// on its URL and the day, and after the first visit by up to six tenths. Otherwise pages
// found together would be due together forever, and the budget would be too small on some
// days and too large on others.
func spread(url string, v Visit, least, most time.Duration) time.Duration {
	share := 0.15
	if v.PrevFetch.IsZero() {
		share = 0.6
	}
	return seconds(most.Seconds()*(1-share*chance(url, v)), least, most)
}

// chance returns a number from 0 to 1 that depends on the URL and the day.
func chance(url string, v Visit) float64 {
	u := hash(url) + uint64(v.Time.Unix()/86400)*0x9e3779b97f4a7c15
	u = (u ^ u>>32) * 0xd6e8feb86659fd93
	return float64(u>>40) / (1 << 24)
}

// If a page changes at least often times between two visits, they are too far apart to tell
// how often it changes: then one comes after the time of once changes.
const often, once = 1.8, 1.

// uneven returns the interval for a page that nearly always changes between two visits, which
// is best if visits are few. They tell next to nothing about its rate: it may change daily, so
// that no visit is worthwhile, or weekly. So while that is uncertain visits come in pairs: one
// after the time in which the page should change once, and the next correspondingly later.
func uneven(url string, v Visit, r Rate, interval, least, most time.Duration) time.Duration {
	perDay := r.PerDay()
	if v.PrevFetch.IsZero() || perDay*days(interval) <= often {
		return interval
	}
	soon := fromDays(once / perDay)
	if after := v.Time.Sub(v.PrevFetch); after < (soon+interval)/2 { // it was the sooner one
		return seconds((2*interval - after).Seconds(), least, most)
	}
	if chance(url, v)*r.Shape < 5 {
		return seconds(soon.Seconds(), least, most)
	}
	return interval
}

// threshold returns what a visit to the page must be worth.
func (s Learned) threshold(url string) float64 {
	if mu := s.Plan.mu(url); mu > 0 {
		return mu
	}
	perDay := s.Plan.prior("", kindUnknown).PerDay()
	return gain(perDay*days(wholeSeconds(s.defaultInterval(), s.max()))) / perDay * s.Plan.mean()
}

// weight returns the importance of a page: w, unless there is a Weight.
func (s Learned) weight(d *crawldb.Datum, w float64) float64 {
	if s.Weight != nil {
		record := *d // keeps d off the heap if there is no Weight
		w = s.Weight(&record)
	}
	if least := s.Plan.mean() / 1000; !(w > least) {
		return least
	}
	return min(w, math.MaxFloat32)
}

func (s Learned) bounds(url string) (least, most time.Duration) {
	least = s.MinInterval
	switch {
	case least == 0:
		least = time.Hour
	case least < 0:
		least = time.Second
	}
	return Adaptive{Default: s.Default, MinInterval: least, HostIntervals: s.HostIntervals}.bounds(url)
}

// within returns the bounds that the plan has for a page: the greatest interval is less if
// part of the budget would not be used.
func (s Learned) within(url string) (least, most time.Duration) {
	least, most = s.bounds(url)
	if by := s.Plan.stretch(); by < 1 && !s.Plan.own(url) {
		most = max(least, wholeSeconds(time.Duration(by*float64(most)), most))
	}
	return least, most
}

// Retry implements [FetchSchedule], as [Default.Retry] does, but no sooner than
// the least interval unless the visit was skipped.
func (s Learned) Retry(d crawldb.Datum, v Visit) crawldb.Datum {
	s.NutchCompat = false
	d = s.Default.Retry(d, v)
	if v.Skipped {
		return d
	}
	if _, ok := d.Meta.Get(sinceKey); !ok && d.Signature != nil && !v.PrevFetch.IsZero() {
		d.Meta.Set(sinceKey, strconv.FormatInt(v.PrevFetch.UnixMilli(), 36))
	}
	if least, _ := s.bounds(d.URL); d.FetchTime.Before(v.Time.Add(least)) {
		d.FetchTime = v.Time.Add(least)
	}
	return d
}

// Gone implements [FetchSchedule], as [Default.Gone] does, but within the bounds of
// the host. What was learned is kept, in case the page comes back.
//
// A page that was gone when it was asked for again after the greatest interval is due when that is
// over once more, but then lets all other due pages go first, for up to four times that interval,
// stretched as the budget stretches the greatest intervals. A site has more and more gone pages
// over the years, and they would take ever more of the budget.
func (s Learned) Gone(d crawldb.Datum, v Visit) crawldb.Datum {
	s.NutchCompat = false
	least, most := s.bounds(d.URL)
	d.Meta.Delete(sinceKey)
	d.Meta.Delete(signalsKey)
	grown := seconds(1.5*s.interval(d).Seconds(), least, most)
	if nearly := most - time.Second; grown == most && d.Interval < nearly && nearly >= least {
		grown = nearly // it may be gone only for the first time: see goneFor
	}
	d.Interval = grown
	d.FetchTime = v.Time.Add(d.Interval)
	return d
}

// Force implements [FetchSchedule], as [Default.Force] does.
func (s Learned) Force(d crawldb.Datum, now time.Time) crawldb.Datum {
	s.NutchCompat = false
	d.Meta.Delete(sinceKey)
	d.Meta.Delete(signalsKey)
	return s.Default.Force(d, now)
}

// Init implements [FetchSchedule], as [Default.Init] does.
func (s Learned) Init(d crawldb.Datum, now time.Time) crawldb.Datum {
	s.NutchCompat = false
	return s.Default.Init(d, now)
}

// Selected returns d.
func (s Learned) Selected(d crawldb.Datum, _ time.Time) crawldb.Datum { return d }
