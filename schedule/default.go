package schedule

import (
	"math"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// FixedKey is the name of the Meta entry that gives a page its own interval, in
// seconds as a decimal number, which every stock schedule then keeps. Seeds may
// set it. (Nutch: nutch.fetchInterval.fixed, kept as fixedInterval.)
const FixedKey = "schedule.fixed"

const day = 24 * time.Hour

// Default fetches every page at the interval its record has. The zero value is
// ready to use; a value must not be changed while it is in use. (Nutch:
// DefaultFetchSchedule.)
//
// The other stock schedules are based on it, and treat new, failing, missing
// and forced pages as it does.
type Default struct {
	// DefaultInterval is the interval of a record that has none; zero means 30
	// days. (Nutch: db.fetch.interval.default.)
	DefaultInterval time.Duration
	// MaxInterval limits every interval, and with it how far ahead the next
	// fetch may lie; zero means 90 days, and the maximum is 68 years. (Nutch:
	// db.fetch.interval.max.)
	MaxInterval time.Duration
	// RetryDelay is how long a page waits after a transient failure, at least a
	// second; zero means one day. (Nutch has one day.)
	RetryDelay time.Duration
	// Since is when the crawl switched to this schedule from one that sets its own
	// intervals; zero if it did not. A page last visited before that has such an
	// interval, and gets DefaultInterval at its next visit. A recrawl.Crawler knows
	// when that was, if the other was [Learned].
	Since time.Time
	// NutchCompat does Nutch's arithmetic bit for bit, its faults included: an
	// interval of zero is due again at once when the page is gone, and an
	// interval may exceed MaxInterval. Then the laws of [FetchSchedule] do not
	// hold. It is for comparing crawls, not for crawling.
	NutchCompat bool
}

var _ interface {
	HorizonSchedule
	SelectedSchedule
} = Default{}

// Horizon returns MaxInterval: Due answers by the fetch time alone, and none
// lies further ahead. See the function [Horizon].
func (s Default) Horizon() time.Duration { return s.max() }

// Init implements [FetchSchedule].
func (s Default) Init(d crawldb.Datum, now time.Time) crawldb.Datum {
	d.FetchTime = now
	d.Retries = 0
	if s.NutchCompat {
		if d.Interval == 0 {
			d.Interval = s.defaultInterval()
		}
		return d
	}
	d.Interval = s.interval(d)
	return d
}

// Fetched implements [FetchSchedule]: the next fetch is one interval after the
// visit. Modified becomes the time of the change, as precisely as it is known.
func (s Default) Fetched(d crawldb.Datum, v Visit) crawldb.Datum {
	d.Interval = s.own(d.Interval, v)
	if s.NutchCompat {
		return s.nutchFetched(d, v)
	}
	d.Retries = 0
	d.Interval = s.interval(d)
	if fixed, ok := fixedInterval(d); ok {
		d.Interval = wholeSeconds(fixed, s.max())
	}
	d.FetchTime = v.Time.Add(d.Interval)
	d.Modified = modified(v)
	return d
}

// Retry implements [FetchSchedule]: the next fetch is RetryDelay after the
// visit, and the interval stays.
func (s Default) Retry(d crawldb.Datum, v Visit) crawldb.Datum {
	d.Interval = s.own(d.Interval, v)
	d.Retries++
	delay := s.RetryDelay
	if delay == 0 {
		delay = day
	}
	if s.NutchCompat {
		d.Retries &= 0xff // a byte, whose upper half is negative in Nutch
	} else {
		delay = max(time.Second, min(delay, s.max()))
		d.Interval = s.interval(d)
	}
	d.FetchTime = v.Time.Add(delay)
	return d
}

// Gone implements [FetchSchedule]: the interval grows by half, up to
// MaxInterval, and the next fetch is one interval after the visit. So a page
// that stays away is requested ever less often, but never forgotten.
func (s Default) Gone(d crawldb.Datum, v Visit) crawldb.Datum {
	d.Interval = s.own(d.Interval, v)
	if s.NutchCompat {
		return s.nutchGone(d, v)
	}
	d.Interval = seconds(1.5*s.interval(d).Seconds(), time.Second, s.max())
	d.FetchTime = v.Time.Add(d.Interval)
	return d
}

// Force implements [FetchSchedule]: the record becomes unfetched and due, and
// forgets signature, validators, retries and when its content last changed.
func (s Default) Force(d crawldb.Datum, now time.Time) crawldb.Datum {
	if s.NutchCompat {
		d.Interval = s.nutchClamp(d.Interval)
	} else {
		d.Interval = s.interval(d)
	}
	d.Status = crawldb.Unfetched
	d.Retries = 0
	d.Signature = nil
	d.ETag, d.LastModified = "", ""
	d.Modified = time.Time{}
	d.FetchTime = now
	return d
}

// Due implements [FetchSchedule]: the fetch time has come, or lies so far ahead
// that a clock must have been wrong.
func (s Default) Due(d *crawldb.Datum, now time.Time) bool {
	return !d.FetchTime.After(now) || d.FetchTime.Sub(now) > s.max()
}

// Selected returns d, but with NutchCompat a fetch time beyond the horizon becomes
// now, and the interval of such a record nine tenths of MaxInterval if it is above
// that. See the function [Selected].
func (s Default) Selected(d crawldb.Datum, now time.Time) crawldb.Datum {
	if s.NutchCompat && d.FetchTime.Sub(now) > s.max() {
		d.Interval = s.nutchClamp(d.Interval)
		d.FetchTime = now
	}
	return d
}

func (s Default) max() time.Duration {
	if s.MaxInterval <= 0 {
		return 90 * day
	}
	const most = math.MaxInt32 * time.Second // the most that a record can have
	return max(min(s.MaxInterval, most).Truncate(time.Second), time.Second)
}

func (s Default) defaultInterval() time.Duration {
	if s.DefaultInterval <= 0 {
		return 30 * day
	}
	return s.DefaultInterval
}

// own returns the interval that a visit finds, except that one from another
// schedule becomes that of new pages.
func (s Default) own(interval time.Duration, v Visit) time.Duration {
	if s.Since.IsZero() || v.PrevFetch.IsZero() || !v.PrevFetch.Before(s.Since) {
		return interval
	}
	return s.defaultInterval()
}

// interval returns the interval of a record in whole seconds, from one second
// to the maximum.
func (s Default) interval(d crawldb.Datum) time.Duration {
	i := d.Interval
	if i <= 0 {
		i = s.defaultInterval()
	}
	return wholeSeconds(i, s.max())
}

func wholeSeconds(i, most time.Duration) time.Duration {
	if i >= most {
		return most
	}
	return max(i.Round(time.Second), time.Second)
}

// seconds returns a number of seconds as a Duration, rounded to whole seconds
// (half up) and within bounds.
func seconds(s float64, least, most time.Duration) time.Duration {
	switch {
	case !(s > least.Seconds()):
		return least
	case s >= most.Seconds():
		return most
	}
	return max(least, min(time.Duration(math.Floor(float64(s)+0.5))*time.Second, most)) // a product is not fused
}

// fixedInterval returns the interval that Meta fixes.
func fixedInterval(d crawldb.Datum) (time.Duration, bool) {
	text, ok := d.Meta.Get(FixedKey)
	if !ok {
		return 0, false
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s > 0) {
		return 0, false
	}
	return seconds(s, 0, 100*365*day), true
}

// oldest is the first day on which a web page can have changed. Servers that do
// not know the date send an earlier one, mostly the epoch of their clock.
var oldest = time.Date(1991, 1, 1, 0, 0, 0, 0, time.UTC)

// modified returns when the content last changed, as far as is known after v,
// never a time after it. The server is believed unless it contradicts what was
// seen: content that changed since the visit before has changed after that
// visit.
func modified(v Visit) time.Time {
	said := v.Modified
	if said.Before(oldest) || said.After(v.Time) {
		said = time.Time{}
	}
	switch {
	case v.Change == Changed:
		if said.After(v.PrevFetch) {
			return said
		}
		return v.Time
	case !v.PrevModified.IsZero() && !v.PrevModified.After(v.Time):
		return v.PrevModified
	case !said.IsZero():
		return said
	case v.Change == Unchanged:
		return time.Time{}
	}
	return v.Time
}
