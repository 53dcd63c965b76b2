package schedule

import (
	"math"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Adaptive shortens the interval of a page that has changed and lengthens that
// of one that has not. The zero value is ready to use; a value must not be
// changed while it is in use. (Nutch: AdaptiveFetchSchedule.)
//
// An interval settles where a share of ln(1+IncRate) / (ln(1+IncRate) -
// ln(1-DecRate)) of the visits finds a change: 60 % with the defaults.
//
// Beyond the laws of [FetchSchedule]: whatever a visit brought, the next fetch
// lies no sooner than MinInterval after it, and no later than the interval unless
// the visit failed. A visit that found no change never makes the gap to the next
// shorter than the gap before; one that found a change never makes it longer. The
// bounds take precedence over this, the greatest interval over the least, and a
// page's own interval ([FixedKey]) over both. Nutch's schedule has none of these
// properties: see NutchCompat.
type Adaptive struct {
	// Default sets the interval of a record that has none, the greatest
	// interval, and what happens to new, failing and missing pages.
	Default
	// IncRate is the share by which the interval of an unchanged page grows;
	// zero means 0.4, negative none. (Nutch: db.fetch.schedule.adaptive.inc_rate.)
	IncRate float64
	// DecRate is the share by which the interval of a changed page shrinks; zero
	// means 0.2, negative none. (Nutch: db.fetch.schedule.adaptive.dec_rate.)
	DecRate float64
	// MinInterval is the least interval, and the least time between two visits;
	// zero means one minute, negative one second, or with NutchCompat none.
	// (Nutch: db.fetch.schedule.adaptive.min_interval.)
	MinInterval time.Duration
	// AdaptiveMax is the greatest interval that adapting leads to; zero means
	// 365 days. MaxInterval applies as well. (Nutch:
	// db.fetch.schedule.adaptive.max_interval.)
	AdaptiveMax time.Duration
	// SyncRate is how far the next fetch moves towards the time of day or week
	// at which the page changes: as a share of the age of a change when it was
	// found, according to Last-Modified. Zero means 0.3, negative not at all.
	// (Nutch: db.fetch.schedule.adaptive.sync_delta and sync_delta_rate.)
	//
	// The fetch moves only after a change, since only then is anything known of
	// its time, and never by more than this share of the interval; until a visit
	// finds no change, the gaps that follow are no longer than that. Nutch also
	// moves it for a page that has not changed, by a share of its age: the older
	// the page, the sooner the next fetch, down to a hot loop (NUTCH-1564).
	SyncRate float64
	// HostIntervals are bounds for the pages of some hosts, by host name in
	// lower case. They can only narrow MinInterval and AdaptiveMax: a wider bound is
	// cut to those. With NutchCompat, wider bounds are ignored, and so are the
	// bounds of a host that the URL does not have in lower case. See
	// [ParseHostIntervals]. (Nutch: adaptive-host-specific-intervals.txt.)
	HostIntervals map[string]Bounds
}

// Bounds are the least and the greatest interval of a host. Zero means the
// bound for all hosts.
type Bounds struct{ Min, Max time.Duration }

// AdaptiveRates are shares by which an interval grows when the page has not changed,
// and shrinks when it has. Unlike in [Adaptive], zero is zero.
type AdaptiveRates struct{ Inc, Dec float64 }

var _ FetchSchedule = Adaptive{}

// Fetched implements [FetchSchedule].
func (s Adaptive) Fetched(d crawldb.Datum, v Visit) crawldb.Datum {
	return s.fetched(d, v, s.rates())
}

func (s Adaptive) rates() AdaptiveRates {
	return AdaptiveRates{rate(s.IncRate, 0.4), rate(s.DecRate, 0.2)}
}

// rate reads an option: zero means def; negative or NaN means 0.
func rate(option, def float64) float64 {
	switch {
	case option == 0:
		return def
	case option > 0:
		return option
	}
	return 0
}

// fetched does the work with the rates as an argument, so that [MimeAdaptive]
// has no state to change.
func (s Adaptive) fetched(d crawldb.Datum, v Visit, r AdaptiveRates) crawldb.Datum {
	if s.NutchCompat {
		return s.nutchFetched(d, v, r)
	}
	if _, ok := fixedInterval(d); ok {
		return s.Default.Fetched(d, v)
	}
	retried := d.Retries > 0
	d.Retries = 0
	d.Modified = modified(v)

	least, most := s.bounds(d.URL)
	old := max(least, min(s.interval(d), most))
	d.Interval = old
	gap := old
	switch v.Change {
	case Unchanged:
		d.Interval = seconds(old.Seconds()*(1+r.Inc), old, most)
		gap = d.Interval
	case Changed:
		d.Interval = seconds(old.Seconds()*(1-r.Dec), least, old)
		age := min(v.Time.Sub(d.Modified), d.Interval)
		sync := min(rate(s.SyncRate, 0.3), 1)
		gap = seconds(d.Interval.Seconds()-float64(sync*age.Seconds()), least, d.Interval)
		// If the gap before was shortened to move the visit, this one is not longer.
		// Only a gap that was set here counts, not one set by a retry or by hand.
		if v.PrevFetch.IsZero() || retried {
			break
		}
		before := d.FetchTime.Sub(v.PrevFetch)
		if before >= seconds(old.Seconds()*(1-sync), least, old) {
			gap = min(gap, before)
		}
	}
	d.FetchTime = v.Time.Add(gap)
	return d
}

// Retry implements [FetchSchedule], as [Default.Retry] does, but no sooner than
// the least interval unless the visit was skipped.
func (s Adaptive) Retry(d crawldb.Datum, v Visit) crawldb.Datum {
	d = s.Default.Retry(d, v)
	if s.NutchCompat || v.Skipped {
		return d
	}
	least, _ := s.bounds(d.URL)
	if at := v.Time.Add(least); d.FetchTime.Before(at) {
		d.FetchTime = at
	}
	return d
}

// Gone implements [FetchSchedule], as [Default.Gone] does, but within the bounds
// of the host.
func (s Adaptive) Gone(d crawldb.Datum, v Visit) crawldb.Datum {
	if s.NutchCompat {
		return s.nutchGone(d, v)
	}
	least, most := s.bounds(d.URL)
	d.Interval = seconds(1.5*s.interval(d).Seconds(), least, most)
	d.FetchTime = v.Time.Add(d.Interval)
	return d
}

// bounds returns the bounds for a URL, in whole seconds, at least one, the
// first not above the second.
func (s Adaptive) bounds(url string) (least, most time.Duration) {
	least, most = s.globalBounds()
	most = max(min(most, s.max()).Truncate(time.Second), time.Second)
	least = min(upToSecond(least), most)
	if len(s.HostIntervals) > 0 {
		b := s.HostIntervals[strings.TrimSuffix(crawldb.Host(url), ".")]
		lo, hi := max(least, min(upToSecond(b.Min), most)), most
		if b.Max > 0 {
			hi = max(least, min(b.Max.Truncate(time.Second), most))
		}
		least, most = min(lo, hi), hi
	}
	return least, most
}

// upToSecond rounds up to whole seconds, at least one.
func upToSecond(d time.Duration) time.Duration {
	if part := d % time.Second; part > 0 && d < math.MaxInt64-time.Second {
		d += time.Second - part
	}
	return max(d, time.Second)
}

func (s Adaptive) globalBounds() (least, most time.Duration) {
	least, most = s.MinInterval, s.AdaptiveMax
	switch {
	case least == 0:
		least = time.Minute
	case least < 0:
		least = 0
	}
	if most <= 0 {
		most = 365 * day
	}
	return least, most
}

// MimeAdaptive is [Adaptive] with rates that depend on the content type. Its
// zero value behaves like the zero Adaptive. (Nutch:
// MimeAdaptiveFetchSchedule.)
type MimeAdaptive struct {
	// Adaptive has the rates for types that are not listed, and everything
	// else.
	Adaptive
	// Types are the rates by media type, in lower case and without parameters.
	// See [ParseMimeRates]. With NutchCompat the type is that of the visit or, if
	// there was none, the "Content-Type" in the record up to a ';', in its original
	// case. (Nutch: db.fetch.schedule.mime.file.)
	Types map[string]AdaptiveRates
}

var _ FetchSchedule = MimeAdaptive{}

// Fetched implements [FetchSchedule].
func (s MimeAdaptive) Fetched(d crawldb.Datum, v Visit) crawldb.Datum {
	typ := v.ContentType
	if s.NutchCompat {
		typ = nutchType(&d, v)
	}
	r, ok := s.Types[typ]
	if !ok {
		r = s.rates()
	}
	return s.fetched(d, v, AdaptiveRates{max(r.Inc, 0), max(r.Dec, 0)})
}
