package scheduletest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

// outcomes are the three methods that end a visit.
var outcomes = []struct {
	name string
	f    func(s schedule.FetchSchedule, d crawldb.Datum, v schedule.Visit) crawldb.Datum
}{
	{"Fetched", schedule.FetchSchedule.Fetched},
	{"Retry", schedule.FetchSchedule.Retry},
	{"Gone", schedule.FetchSchedule.Gone},
}

func initIsDue(k *check) {
	s := k.s
	k.each(func(c sample) {
		if d := s.Init(c.d, c.v.Time); !d.FetchTime.Equal(c.v.Time) || !s.Due(&d, c.v.Time) {
			k.Failf("Init at %v: fetch time is %v, Due returns %v", c.v.Time, d.FetchTime, s.Due(&d, c.v.Time))
		}
	})
}

func initKeepsInterval(k *check) {
	s := k.s
	for _, want := range []time.Duration{time.Hour, day, 7 * day} {
		if ahead, ok := schedule.Horizon(s); ok && ahead > 0 && want > ahead {
			continue
		}
		if got := s.Init(crawldb.Datum{URL: "http://example.com/", Interval: want}, now).Interval; got != want {
			k.Failf("Init of a record with an interval of %v: interval is %v", want, got)
		}
	}
}

func nextIsAfterVisit(k *check) {
	s := k.s
	k.each(func(c sample) {
		for _, o := range outcomes {
			// Stores keep milliseconds.
			if d := o.f(s, c.d, c.v); d.FetchTime.UnixMilli() <= c.v.Time.UnixMilli() {
				k.Failf("%s: the next fetch is at %v, not after the visit", o.name, d.FetchTime)
			}
		}
	})
}

// notDueAtVisit finds schedules that set a fetch time which their own Due, perhaps that of
// a schedule they wrap, takes for the mistake of a clock: such a page is fetched without end.
func notDueAtVisit(k *check) {
	s := k.s
	k.each(func(c sample) {
		for _, o := range outcomes {
			d := o.f(s, c.d, c.v)
			if d.FetchTime.After(c.v.Time) && s.Due(&d, c.v.Time) {
				k.Failf("%s: the next fetch is at %v, %v after the visit, and Due returns true at the visit: that may be beyond the horizon of a schedule that this one wraps",
					o.name, d.FetchTime, d.FetchTime.Sub(c.v.Time))
			}
		}
	})
}

func intervalIsPositive(k *check) {
	s := k.s
	k.each(func(c sample) {
		check := func(name string, d crawldb.Datum) {
			if d.Interval < time.Second || d.Interval%time.Second != 0 {
				k.Failf("%s: interval is %v, want whole seconds, at least one", name, d.Interval)
			}
		}
		check("Init", s.Init(zeroInterval(c.d), now))
		check("Force", s.Force(c.d, now))
		for _, o := range outcomes {
			check(o.name, o.f(s, c.d, c.v))
		}
	})
}

func zeroInterval(d crawldb.Datum) crawldb.Datum {
	d.Interval = 0
	return d
}

func retriesCount(k *check) {
	s := k.s
	k.each(func(c sample) {
		if d := s.Retry(c.d, c.v); d.Retries != c.d.Retries+1 {
			k.Failf("Retry: %d retries, want %d", d.Retries, c.d.Retries+1)
		}
		if d := s.Fetched(c.d, c.v); d.Retries != 0 {
			k.Failf("Fetched: %d retries, want 0", d.Retries)
		}
	})
}

func forceForgets(k *check) {
	s := k.s
	k.each(func(c sample) {
		d := s.Force(c.d, c.v.Time)
		switch {
		case !s.Due(&d, c.v.Time):
			k.Failf("Force at %v: the record is not due, fetch time %v", c.v.Time, d.FetchTime)
		case d.Status != crawldb.Unfetched:
			k.Failf("Force: status is %v, want db_unfetched", d.Status)
		case d.Signature != nil || d.ETag != "" || d.LastModified != "" || !d.Modified.IsZero():
			k.Failf("Force: signature %x, ETag %q, Last-Modified %q, modified %v, want none of them", d.Signature, d.ETag, d.LastModified, d.Modified)
		}
	})
}

func othersStay(k *check) {
	s := k.s
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
	k.each(func(c sample) {
		check := func(name string, got crawldb.Datum, forced bool) {
			if d, want := foreign(got, forced), foreign(c.d, forced); !reflect.DeepEqual(d, want) {
				k.Failf("%s changed other fields: %s", name, differences(d, want))
			}
		}
		check("Init", s.Init(c.d, now), false)
		check("Force", s.Force(c.d, now), true)
		for _, o := range outcomes {
			check(o.name, o.f(s, c.d, c.v), false)
		}
	})
}

func argumentsStay(k *check) {
	s := k.s
	k.each(func(c sample) {
		signature := string(c.d.Signature)
		s.Init(c.d, now)
		s.Force(c.d, now)
		for _, o := range outcomes {
			o.f(s, c.d, c.v)
		}
		if string(c.d.Signature) != signature {
			k.Failf("the bytes of the signature became %x", c.d.Signature)
		}
		d := copyOf(c.d)
		for _, at := range []time.Time{now, c.v.Time, now.Add(-10000 * day), now.Add(10000 * day)} {
			if s.Due(&d, at); !reflect.DeepEqual(d, c.d) {
				k.Failf("Due at %v changed the record: %s", at, differences(d, c.d))
			}
		}
	})
}

func isAFunction(k *check) {
	one := k.s
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
	k.each(func(c sample) { cases, want = append(cases, c), append(want, ask(one, c)) })
	other := k.h.New()
	k.Together(4, func(w int) {
		s := one
		if w == 0 {
			s = other
		}
		for i := range cases {
			i = (i*7919 + w) % len(cases) // in another order
			if d := differ(ask(s, cases[i]), want[i]); d != "" {
				k.Failf("%s, asked again: %s", cases[i].name, d)
			}
		}
	})
}

func modifiedIsPast(k *check) {
	s := k.s
	k.each(func(c sample) {
		if c.v.PrevModified.After(c.v.Time) {
			return // a clock went back, and the earlier time is wrong
		}
		if d := s.Fetched(c.d, c.v); d.Modified.After(c.v.Time) {
			k.Failf("Fetched at %v: modified %v", c.v.Time, d.Modified)
		}
	})
}

func dueByHorizon(k *check) {
	s := k.s
	ahead := k.horizon()
	k.each(func(c sample) {
		times := []time.Time{now, c.v.Time, c.d.FetchTime, c.d.FetchTime.Add(-time.Millisecond)}
		if ahead > 0 {
			times = append(times, c.d.FetchTime.Add(-ahead), c.d.FetchTime.Add(-ahead-time.Millisecond))
		}
		for _, at := range times {
			want := !c.d.FetchTime.After(at) || ahead > 0 && c.d.FetchTime.Sub(at) > ahead
			if got := s.Due(&c.d, at); got != want {
				k.Failf("Due at %v is %v, want %v with a horizon of %v", at, got, want, ahead)
			}
		}
	})
}

func nextWithinHorizon(k *check) {
	s := k.s
	ahead := k.horizon()
	if ahead <= 0 {
		return
	}
	k.each(func(c sample) {
		for _, o := range outcomes {
			if d := o.f(s, c.d, c.v); d.FetchTime.Sub(c.v.Time) > ahead {
				k.Failf("%s: the next fetch is %v ahead, beyond the horizon of %v", o.name, d.FetchTime.Sub(c.v.Time), ahead)
			}
		}
	})
}

func withinBounds(k *check) {
	s := k.s
	k.each(func(c sample) {
		least, most := k.bounds(c.d.URL)
		d := s.Fetched(c.d, c.v)
		gap := d.FetchTime.Sub(c.v.Time)
		if d.Interval < least || d.Interval > most || gap < least || gap > d.Interval {
			k.Failf("interval %v, next fetch after %v, bounds %v and %v", d.Interval, gap, least, most)
		}
	})
}

// inside reports whether the interval of a sample is one the schedule could have
// set.
func (k *check) inside(c sample) bool {
	least, most := k.bounds(c.d.URL)
	return least <= c.d.Interval && c.d.Interval <= most && c.d.Interval%time.Second == 0
}

func unchangedNotSooner(k *check) {
	s := k.s
	k.each(func(c sample) {
		c.v.Change = schedule.Unchanged
		if d := s.Fetched(c.d, c.v); k.inside(c) && (d.Interval < c.d.Interval || d.FetchTime.Sub(c.v.Time) < c.d.Interval) {
			k.Failf("interval %v, next fetch after %v", d.Interval, d.FetchTime.Sub(c.v.Time))
		}
	})
}

func changedNotLater(k *check) {
	s := k.s
	k.each(func(c sample) {
		c.v.Change = schedule.Changed
		if d := s.Fetched(c.d, c.v); k.inside(c) && (d.Interval > c.d.Interval || d.FetchTime.Sub(c.v.Time) > c.d.Interval) {
			k.Failf("interval %v, next fetch after %v", d.Interval, d.FetchTime.Sub(c.v.Time))
		}
	})
}

func ageIsNotInterval(k *check) {
	k.Need(k.h.Bounds != nil, "Harness.Bounds is nil")
	s := k.s
	k.each(func(c sample) {
		want := s.Fetched(c.d, c.v).Interval
		for _, age := range ages {
			v := c.v
			v.PrevModified, v.Modified = c.v.Time.Add(-age), time.Time{}
			if got := s.Fetched(c.d, v).Interval; got != want {
				k.Failf("the interval is %v, but %v for a page that is %v old", want, got, age)
			}
		}
	})
}

func adapts(k *check) {
	s := k.s
	d := record(0)
	least, most := k.bounds(d.URL)
	if most-least < 10*time.Second {
		return
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
			k.Failf("the interval is %v after ten visits that found the page %v; it was %v", d.Interval, c, start)
		}
	}
}

func noHotLoop(k *check) {
	s := k.s
	d := record(0)
	d.Interval, _ = k.bounds(d.URL)
	at, gap := now, time.Duration(0)
	for i := range 1000 {
		d = s.Fetched(d, schedule.Visit{Time: at, Change: schedule.Unchanged, PrevFetch: at.Add(-d.Interval), PrevModified: now.Add(-day)})
		next := d.FetchTime.Sub(at)
		if next < gap {
			k.Failf("visit %d is %v after the one before, which was %v after its own", i+2, next, gap)
		}
		gap, at = next, d.FetchTime
	}
}

func planReplacesPlan(k *check) {
	s := k.planner(k.s)
	was := s.CurrentPlan()
	plan := s.NewSample(now).Plan(schedule.PlanOptions{})
	next, err := schedule.ReplacePlan(s, plan)
	k.Must(err, "ReplacePlan")
	switch {
	case next.CurrentPlan() != plan:
		k.Failf("CurrentPlan does not return what WithPlan was given")
	case s.CurrentPlan() != was:
		k.Failf("WithPlan changed its receiver")
	case next.VisitsPerDay() != s.VisitsPerDay():
		k.Failf("VisitsPerDay returns %v, and %v after WithPlan", s.VisitsPerDay(), next.VisitsPerDay())
	}
	back, err := schedule.ReplacePlan(next, was)
	k.Must(err, "ReplacePlan")
	k.each(func(c sample) {
		for _, o := range outcomes {
			if got, want := o.f(back, c.d, c.v), o.f(s, c.d, c.v); !reflect.DeepEqual(got, want) {
				k.Failf("%s, with the former plan again: %s, not %s", o.name, fields(got), fields(want))
			}
		}
	})
}

func planOfRecords(k *check) {
	k.planner(k.s)
	var records []crawldb.Datum
	k.each(func(c sample) {
		c.d.URL = fmt.Sprintf("http://host%d.example/%d", len(records)%5, len(records))
		c.d.LeasedUntil, c.d.LeasedBy = time.Time{}, ""
		records = append(records, c.d)
	})
	reversed := slices.Clone(records)
	slices.Reverse(reversed)
	var plans [2]string
	for i, records := range [][]crawldb.Datum{records, reversed} {
		s := k.planner(k.h.New())
		x := s.NewSample(now)
		for _, record := range records {
			d := record
			x.Add(&d)
			if !reflect.DeepEqual(d, record) {
				k.Failf("Add changed the record: %s, not %s", fields(d), fields(record))
			}
		}
		p := x.Plan(schedule.PlanOptions{Visits: 7})
		if !p.Made.Equal(now) || p.Visits != 7 || !p.For(s.VisitsPerDay()) {
			k.Failf("a plan of %v with 7 visits says Made %v, Visits %d, For its own budget %v", now, p.Made, p.Visits, p.For(s.VisitsPerDay()))
		}
		text, err := p.Encode()
		k.Must(err, "Encode")
		_, err = schedule.DecodePlan(text)
		k.Must(err, "DecodePlan")
		plans[i] = text
	}
	if plans[0] != plans[1] {
		k.Failf("the plan is %s, and of the same records in reverse order %s", plans[0], plans[1])
	}
}
