package scheduletest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

var rules = []rule{
	{"Init makes a record due", nil, initIsDue},
	{"Init keeps an interval that was set", nil, initKeepsInterval},
	{"the next fetch is after the visit", nil, nextIsAfterVisit},
	{"a page is not due again at the visit", nil, notDueAtVisit},
	{"an interval is never zero or negative", nil, intervalIsPositive},
	{"Retry counts and Fetched ends the count", nil, retriesCount},
	{"Force makes a record due and forgets its content", nil, forceForgets},
	{"fields of others are not changed", nil, othersStay},
	{"the arguments are not changed", nil, argumentsStay},
	{"the same arguments give the same result", nil, isAFunction},
	{"Modified is not after the visit", nil, modifiedIsPast},
	{"Due depends on the fetch time and the horizon", needsHorizon, dueByHorizon},
	{"no next fetch is beyond the horizon", needsHorizon, nextWithinHorizon},
	{"interval and next fetch are within the bounds", needsBounds, withinBounds},
	{"a visit without change never makes the next one sooner", needsBounds, unchangedNotSooner},
	{"a visit with a change never makes the next one later", needsBounds, changedNotLater},
	{"the age of a page does not replace its interval", needsBounds, ageIsNotInterval},
	{"intervals follow the changes", needsBounds, adapts},
	{"a page that never changes is visited less and less", needsBounds, noHotLoop},
	{"a plan replaces the plan and nothing else", needsPlanner, planReplacesPlan},
	{"a plan depends on the records and not on their order", needsPlanner, planOfRecords},
}

// outcomes are the three methods that end a visit.
var outcomes = []struct {
	name string
	f    func(s schedule.FetchSchedule, d crawldb.Datum, v schedule.Visit) crawldb.Datum
}{
	{"Fetched", schedule.FetchSchedule.Fetched},
	{"Retry", schedule.FetchSchedule.Retry},
	{"Gone", schedule.FetchSchedule.Gone},
}

func initIsDue(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		if d := s.Init(c.d, c.v.Time); !d.FetchTime.Equal(c.v.Time) || !s.Due(&d, c.v.Time) {
			return fmt.Errorf("Init at %v: fetch time is %v, Due returns %v", c.v.Time, d.FetchTime, s.Due(&d, c.v.Time))
		}
		return nil
	})
}

func initKeepsInterval(h Harness) error {
	s := h.New()
	for _, want := range []time.Duration{time.Hour, day, 7 * day} {
		if ahead, ok := schedule.Horizon(s); ok && ahead > 0 && want > ahead {
			continue
		}
		if got := s.Init(crawldb.Datum{URL: "http://example.com/", Interval: want}, now).Interval; got != want {
			return fmt.Errorf("Init of a record with an interval of %v: interval is %v", want, got)
		}
	}
	return nil
}

func nextIsAfterVisit(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		for _, o := range outcomes {
			// Stores keep milliseconds.
			if d := o.f(s, c.d, c.v); d.FetchTime.UnixMilli() <= c.v.Time.UnixMilli() {
				return fmt.Errorf("%s: the next fetch is at %v, not after the visit", o.name, d.FetchTime)
			}
		}
		return nil
	})
}

// notDueAtVisit finds schedules that set a fetch time which their own Due, perhaps that of
// a schedule they wrap, takes for the mistake of a clock: such a page is fetched without end.
func notDueAtVisit(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		for _, o := range outcomes {
			d := o.f(s, c.d, c.v)
			if d.FetchTime.After(c.v.Time) && s.Due(&d, c.v.Time) {
				return fmt.Errorf("%s: the next fetch is at %v, %v after the visit, and Due returns true at the visit: that may be beyond the horizon of a schedule that this one wraps",
					o.name, d.FetchTime, d.FetchTime.Sub(c.v.Time))
			}
		}
		return nil
	})
}

func intervalIsPositive(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		check := func(name string, d crawldb.Datum) error {
			if d.Interval < time.Second || d.Interval%time.Second != 0 {
				return fmt.Errorf("%s: interval is %v, want whole seconds, at least one", name, d.Interval)
			}
			return nil
		}
		errs := []error{check("Init", s.Init(zeroInterval(c.d), now)), check("Force", s.Force(c.d, now))}
		for _, o := range outcomes {
			errs = append(errs, check(o.name, o.f(s, c.d, c.v)))
		}
		return errors.Join(errs...)
	})
}

func zeroInterval(d crawldb.Datum) crawldb.Datum {
	d.Interval = 0
	return d
}

func retriesCount(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		if d := s.Retry(c.d, c.v); d.Retries != c.d.Retries+1 {
			return fmt.Errorf("Retry: %d retries, want %d", d.Retries, c.d.Retries+1)
		}
		if d := s.Fetched(c.d, c.v); d.Retries != 0 {
			return fmt.Errorf("Fetched: %d retries, want 0", d.Retries)
		}
		return nil
	})
}

func forceForgets(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		d := s.Force(c.d, c.v.Time)
		switch {
		case !s.Due(&d, c.v.Time):
			return fmt.Errorf("Force at %v: the record is not due, fetch time %v", c.v.Time, d.FetchTime)
		case d.Status != crawldb.Unfetched:
			return fmt.Errorf("Force: status is %v, want db_unfetched", d.Status)
		case d.Signature != nil || d.ETag != "" || d.LastModified != "" || !d.Modified.IsZero():
			return fmt.Errorf("Force: signature %x, ETag %q, Last-Modified %q, modified %v, want none of them", d.Signature, d.ETag, d.LastModified, d.Modified)
		}
		return nil
	})
}

func othersStay(h Harness) error {
	s := h.New()
	// foreign returns a record without what a method may set.
	foreign := func(d crawldb.Datum, forced bool) crawldb.Datum {
		var meta crawldb.Meta
		for name, value := range d.Meta.All() {
			if !strings.HasPrefix(name, "schedule.") {
				meta.Set(name, value)
			}
		}
		d.FetchTime, d.Modified = time.Time{}, time.Time{}
		d.Interval, d.Retries, d.Meta = 0, 0, meta
		if forced {
			d.Status, d.Signature, d.ETag, d.LastModified = 0, nil, "", ""
		}
		return d
	}
	return h.each(func(c sample) error {
		check := func(name string, got crawldb.Datum, forced bool) error {
			if d, want := foreign(got, forced), foreign(c.d, forced); !reflect.DeepEqual(d, want) {
				return fmt.Errorf("%s changed other fields: %s", name, differences(d, want))
			}
			return nil
		}
		errs := []error{check("Init", s.Init(c.d, now), false), check("Force", s.Force(c.d, now), true)}
		for _, o := range outcomes {
			errs = append(errs, check(o.name, o.f(s, c.d, c.v), false))
		}
		return errors.Join(errs...)
	})
}

func argumentsStay(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		signature := string(c.d.Signature)
		s.Init(c.d, now)
		s.Force(c.d, now)
		for _, o := range outcomes {
			o.f(s, c.d, c.v)
		}
		if string(c.d.Signature) != signature {
			return fmt.Errorf("the bytes of the signature became %x", c.d.Signature)
		}
		d := copyOf(c.d)
		for _, at := range []time.Time{now, c.v.Time, now.Add(-10000 * day), now.Add(10000 * day)} {
			if s.Due(&d, at); !reflect.DeepEqual(d, c.d) {
				return fmt.Errorf("Due at %v changed the record: %s", at, differences(d, c.d))
			}
		}
		return nil
	})
}

func isAFunction(h Harness) error {
	one := h.New()
	methods := [...]string{"Init", "Fetched", "Retry", "Gone", "Force"}
	type result struct {
		records [len(methods)]crawldb.Datum
		due     bool
	}
	ask := func(s schedule.FetchSchedule, c sample) result {
		d := copyOf(c.d)
		return result{[...]crawldb.Datum{s.Init(d, now), s.Fetched(d, c.v), s.Retry(d, c.v), s.Gone(d, c.v), s.Force(d, now)}, s.Due(&d, now)}
	}
	differ := func(got, want result) string {
		if got.due != want.due {
			return fmt.Sprintf("Due: %v, not %v", got.due, want.due)
		}
		for i, method := range methods {
			if d := differences(got.records[i], want.records[i]); d != "" {
				return method + ": " + d
			}
		}
		return ""
	}
	var cases []sample
	var want []result
	if err := h.each(func(c sample) error {
		cases, want = append(cases, c), append(want, ask(one, c))
		return nil
	}); err != nil {
		return err
	}
	errs := make([]error, 4)
	other := h.New()
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			s := one
			if w == 0 {
				s = other
			}
			for i := range cases {
				i = (i*7919 + w) % len(cases) // in another order
				if d := differ(ask(s, cases[i]), want[i]); d != "" {
					errs[w] = fmt.Errorf("%s, asked again: %s", cases[i].name, d)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func modifiedIsPast(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		if c.v.PrevModified.After(c.v.Time) {
			return nil // a clock went back, and the earlier time is wrong
		}
		if d := s.Fetched(c.d, c.v); d.Modified.After(c.v.Time) {
			return fmt.Errorf("Fetched at %v: modified %v", c.v.Time, d.Modified)
		}
		return nil
	})
}

func dueByHorizon(h Harness) error {
	s := h.New()
	ahead, _ := schedule.Horizon(s)
	return h.each(func(c sample) error {
		times := []time.Time{now, c.v.Time, c.d.FetchTime, c.d.FetchTime.Add(-time.Millisecond)}
		if ahead > 0 {
			times = append(times, c.d.FetchTime.Add(-ahead), c.d.FetchTime.Add(-ahead-time.Millisecond))
		}
		for _, at := range times {
			want := !c.d.FetchTime.After(at) || ahead > 0 && c.d.FetchTime.Sub(at) > ahead
			if got := s.Due(&c.d, at); got != want {
				return fmt.Errorf("Due at %v is %v, want %v with a horizon of %v", at, got, want, ahead)
			}
		}
		return nil
	})
}

func nextWithinHorizon(h Harness) error {
	s := h.New()
	ahead, _ := schedule.Horizon(s)
	if ahead <= 0 {
		return nil
	}
	return h.each(func(c sample) error {
		for _, o := range outcomes {
			if d := o.f(s, c.d, c.v); d.FetchTime.Sub(c.v.Time) > ahead {
				return fmt.Errorf("%s: the next fetch is %v ahead, beyond the horizon of %v", o.name, d.FetchTime.Sub(c.v.Time), ahead)
			}
		}
		return nil
	})
}

func withinBounds(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		least, most := h.Bounds(c.d.URL)
		d := s.Fetched(c.d, c.v)
		gap := d.FetchTime.Sub(c.v.Time)
		if d.Interval < least || d.Interval > most || gap < least || gap > d.Interval {
			return fmt.Errorf("interval %v, next fetch after %v, bounds %v and %v", d.Interval, gap, least, most)
		}
		return nil
	})
}

// inside reports whether the interval of a sample is one the schedule could have
// set.
func (h Harness) inside(c sample) bool {
	least, most := h.Bounds(c.d.URL)
	return least <= c.d.Interval && c.d.Interval <= most && c.d.Interval%time.Second == 0
}

func unchangedNotSooner(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		c.v.Change = schedule.Unchanged
		if d := s.Fetched(c.d, c.v); h.inside(c) && (d.Interval < c.d.Interval || d.FetchTime.Sub(c.v.Time) < c.d.Interval) {
			return fmt.Errorf("interval %v, next fetch after %v", d.Interval, d.FetchTime.Sub(c.v.Time))
		}
		return nil
	})
}

func changedNotLater(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		c.v.Change = schedule.Changed
		if d := s.Fetched(c.d, c.v); h.inside(c) && (d.Interval > c.d.Interval || d.FetchTime.Sub(c.v.Time) > c.d.Interval) {
			return fmt.Errorf("interval %v, next fetch after %v", d.Interval, d.FetchTime.Sub(c.v.Time))
		}
		return nil
	})
}

func ageIsNotInterval(h Harness) error {
	s := h.New()
	return h.each(func(c sample) error {
		want := s.Fetched(c.d, c.v).Interval
		for _, age := range ages {
			v := c.v
			v.PrevModified, v.Modified = c.v.Time.Add(-age), time.Time{}
			if got := s.Fetched(c.d, v).Interval; got != want {
				return fmt.Errorf("the interval is %v, but %v for a page that is %v old", want, got, age)
			}
		}
		return nil
	})
}

func adapts(h Harness) error {
	s := h.New()
	d := record(0)
	least, most := h.Bounds(d.URL)
	if most-least < 10*time.Second {
		return nil
	}
	start := (least + (most-least)/2).Truncate(time.Second)
	for _, c := range []schedule.Change{schedule.Changed, schedule.Unchanged, schedule.Unknown} {
		d.Interval = start
		at := now
		for range 10 {
			d = s.Fetched(d, schedule.Visit{Time: at, Change: c, PrevFetch: at.Add(-d.Interval), PrevModified: d.Modified})
			at = d.FetchTime
		}
		if c == schedule.Changed && d.Interval >= start || c == schedule.Unchanged && d.Interval <= start || c == schedule.Unknown && d.Interval != start {
			return fmt.Errorf("the interval is %v after ten visits that found the page %v; it was %v", d.Interval, c, start)
		}
	}
	return nil
}

func noHotLoop(h Harness) error {
	s := h.New()
	d := record(0)
	d.Interval, _ = h.Bounds(d.URL)
	at, gap := now, time.Duration(0)
	for i := range 1000 {
		d = s.Fetched(d, schedule.Visit{Time: at, Change: schedule.Unchanged, PrevFetch: at.Add(-d.Interval), PrevModified: now.Add(-day)})
		if g := d.FetchTime.Sub(at); g < gap {
			return fmt.Errorf("visit %d is %v after the one before, which was %v after its own", i+2, g, gap)
		} else {
			gap, at = g, d.FetchTime
		}
	}
	return nil
}

func planReplacesPlan(h Harness) error {
	s := h.New().(schedule.Planner)
	was := s.CurrentPlan()
	plan := s.NewSample(now).Plan(schedule.PlanOptions{})
	next, err := schedule.ReplacePlan(s, plan)
	switch {
	case err != nil:
		return err
	case next.CurrentPlan() != plan:
		return errors.New("CurrentPlan does not return what WithPlan was given")
	case s.CurrentPlan() != was:
		return errors.New("WithPlan changed its receiver")
	case next.VisitsPerDay() != s.VisitsPerDay():
		return fmt.Errorf("VisitsPerDay returns %v, and %v after WithPlan", s.VisitsPerDay(), next.VisitsPerDay())
	}
	back, err := schedule.ReplacePlan(next, was)
	if err != nil {
		return err
	}
	return h.each(func(c sample) error {
		for _, o := range outcomes {
			if got, want := o.f(back, c.d, c.v), o.f(s, c.d, c.v); !reflect.DeepEqual(got, want) {
				return fmt.Errorf("%s, with the former plan again: %s, not %s", o.name, fields(got), fields(want))
			}
		}
		return nil
	})
}

func planOfRecords(h Harness) error {
	var records []crawldb.Datum
	_ = h.each(func(c sample) error {
		c.d.URL = fmt.Sprintf("http://host%d.example/%d", len(records)%5, len(records))
		c.d.LeasedUntil, c.d.LeasedBy = time.Time{}, ""
		records = append(records, c.d)
		return nil
	})
	var plans [2]string
	for i := range plans {
		s := h.New().(schedule.Planner)
		x := s.NewSample(now)
		for j := range records {
			k := j
			if i == 1 {
				k = len(records) - 1 - j
			}
			d := records[k]
			x.Add(&d)
			if !reflect.DeepEqual(d, records[k]) {
				return fmt.Errorf("Add changed the record: %s, not %s", fields(d), fields(records[k]))
			}
		}
		p := x.Plan(schedule.PlanOptions{Visits: 7})
		if !p.Made.Equal(now) || p.Visits != 7 || !p.For(s.VisitsPerDay()) {
			return fmt.Errorf("a plan of %v with 7 visits says Made %v, Visits %d, For its own budget %v", now, p.Made, p.Visits, p.For(s.VisitsPerDay()))
		}
		text, err := p.Encode()
		if err == nil {
			_, err = schedule.DecodePlan(text)
		}
		if err != nil {
			return err
		}
		plans[i] = text
	}
	if plans[0] != plans[1] {
		return fmt.Errorf("the plan is %s, and of the same records in reverse order %s", plans[0], plans[1])
	}
	return nil
}
