package recrawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/segment"
)

// accountMark is the mark with the account of the visits.
const accountMark = "schedule/account"

// mostBudget is more than any budget, and keeps the account finite.
const mostBudget = 1e15

// account is the tally of the visits of a crawl.
type account struct {
	// Visits counts those of the segments that are done.
	Visits int64
	// Left is how many visits the budget had left at At. Both are zero without a
	// budget that is a limit: visits made without one are not charged to the first.
	Left float64
	At   time.Time
	// Read has the values of Visits at times of the last day: see read.
	Read []reading `json:",omitempty"`
}

// accruedTo returns the account at a later time. The budget accrues evenly, and what is
// not used within a day is lost, or within the time in which one visit accrues,
// if that is longer: so a budget of five visits a week yields one every 34 hours.
func (a account) accruedTo(now time.Time, budget float64) account {
	most := max(budget, 1)
	switch passed := now.Sub(a.At); {
	case a.At.IsZero(), passed < -24*time.Hour: // then the clock was ahead, and may have been by years
		a.Left = most
	case passed > 0:
		a.Left = min(a.Left+passed.Hours()/24*budget, most)
	}
	a.At = now.UTC()
	return a
}

// readAccount reads the tally of the visits. If it cannot be read, counting starts
// over.
func (c *Crawler) readAccount(ctx context.Context) (a account, err error) {
	mark, err := c.stores.Crawl.Mark(ctx, accountMark)
	if err != nil || mark == "" {
		return a, err
	}
	if e := json.Unmarshal([]byte(mark), &a); e != nil {
		c.opts.Logger.Warn("recrawl: the account of the visits could not be read, and begins anew", "error", e)
		a = account{}
	}
	return a, nil
}

// limitToBudget limits a selection to what the budget has left, if it is a limit. If that
// is less than an hour's worth, nothing is selected until there is as much.
func (c *Crawler) limitToBudget(ctx context.Context, o generate.Options) (_ generate.Options, until time.Time, err error) {
	planner := c.planner()
	if planner == nil || !(planner.VisitsPerDay() > 0) {
		return o, until, nil
	}
	budget := planner.VisitsPerDay()
	a, err := c.readAccount(ctx)
	if err != nil {
		return o, until, fmt.Errorf("recrawl: %w", err)
	}
	now := c.opts.Now()
	a = a.accruedTo(now, budget)
	if least := max(1, budget/24); a.Left < least {
		const longest = 100 * 365 // days: a Duration has an end
		days := min((least-a.Left)/budget, longest)
		return o, now.Add(time.Duration(days * 24 * float64(time.Hour))).Truncate(time.Second).Add(time.Second), nil
	}
	left := int(min(a.Left, 1<<40, math.MaxInt))
	if o.TopN <= 0 || o.TopN > left { // without a limit of its own, too
		o.TopN = left
	}
	if o.Segments > 1 {
		o.Segments = max(1, min(o.Segments, left/o.TopN))
	}
	return o, until, nil
}

// countVisits returns the account with the visits of a segment, as its mark.
func (c *Crawler) countVisits(ctx context.Context, name string, budget float64) (mark string, err error) {
	a, err := c.readAccount(ctx)
	if err != nil {
		return "", err
	}
	a = a.accruedTo(c.opts.Now(), max(budget, 0))
	visitsBefore, began := a.Visits, time.Time{}
	for v, err := range segment.Records[segment.Visit](ctx, c.stores.Segments, name) {
		if errors.Is(err, segment.ErrNotFound) {
			break
		}
		if err != nil {
			return "", err
		}
		if v.Outcome.Code.Asked() {
			a.Visits++
			a.Left--
			if began.IsZero() || v.Time.Before(began) {
				began = v.Time
			}
		}
	}
	a.addReading(began, visitsBefore)
	if !(budget > 0) {
		a.Left, a.At = 0, time.Time{}
	}
	text, err := json.Marshal(a)
	return string(text), err
}

// reading is how many visits there had been at a moment.
type reading struct {
	At     time.Time
	Visits int64
}

// An account keeps hourly readings of the last day, and the last one.
const (
	readEvery = time.Hour
	readFor   = 24 * time.Hour
)

// addReading adds a reading, given when the visits since the last reading began, and how many
// there had been by then.
func (a *account) addReading(began time.Time, visits int64) {
	a.Read = slices.DeleteFunc(a.Read, func(r reading) bool { return r.At.After(a.At) }) // the clock was ahead
	if len(a.Read) == 0 && !began.IsZero() {
		a.Read = append(a.Read, reading{began.UTC(), visits})
	}
	if n := len(a.Read); n > 1 && (a.Read[n-1].At.Sub(a.Read[n-2].At) < readEvery || !a.At.After(a.Read[n-1].At)) {
		a.Read = a.Read[:n-1]
	}
	a.Read = append(a.Read, reading{a.At, a.Visits})
	for len(a.Read) > 1 && a.At.Sub(a.Read[1].At) >= readFor {
		a.Read = a.Read[1:]
	}
}

// usedPerDay is how many visits a day there were until now, and since when: the last reading that
// is a day old, or the first. A crawl that has not been at work for a day may spend all of a
// day's budget at once, so what it made is not projected.
func (a *account) usedPerDay(now time.Time) (perDay float64, since time.Time) {
	if len(a.Read) == 0 {
		return 0, time.Time{}
	}
	from := a.Read[0]
	for _, r := range a.Read[1:] {
		if now.Sub(r.At) >= readFor {
			from = r
		}
	}
	span := now.Sub(from.At)
	if span <= 0 {
		return 0, time.Time{}
	}
	return float64(a.Visits-from.Visits) / max(1, span.Hours()/readFor.Hours()), from.At
}
