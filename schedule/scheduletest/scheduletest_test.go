package scheduletest_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/scheduletest"
)

const day = 24 * time.Hour

func bounds(string) (least, most time.Duration) { return time.Minute, 90 * day }

func TestStock(t *testing.T) {
	for name, h := range map[string]scheduletest.Harness{
		"Default":      {New: func() schedule.FetchSchedule { return schedule.Default{} }},
		"DefaultShort": {New: func() schedule.FetchSchedule { return schedule.Default{MaxInterval: 10 * day, RetryDelay: 1000 * day} }},
		"Adaptive":     {New: func() schedule.FetchSchedule { return schedule.Adaptive{} }, Bounds: bounds},
		"AdaptiveWild": {New: func() schedule.FetchSchedule {
			return schedule.Adaptive{IncRate: 1e300, DecRate: 1e300, SyncRate: 1e300, MinInterval: 1500 * time.Millisecond}
		}, Bounds: func(string) (least, most time.Duration) { return 2 * time.Second, 90 * day }},
		"AdaptiveHosts": {New: func() schedule.FetchSchedule {
			return schedule.Adaptive{HostIntervals: map[string]schedule.Bounds{"www.example.com": {Min: time.Hour, Max: 10 * day}, "host1.example": {Max: 1000 * day}}}
		}, Bounds: func(url string) (least, most time.Duration) {
			if crawldb.Host(url) == "www.example.com" {
				return time.Hour, 10 * day
			}
			return time.Minute, 90 * day
		}},
		"MimeAdaptive": {New: func() schedule.FetchSchedule {
			return schedule.MimeAdaptive{Types: map[string]schedule.AdaptiveRates{"text/html": {Inc: 2, Dec: 0.9}, "application/pdf": {}}}
		}, Bounds: bounds},
		"Learned":         {New: func() schedule.FetchSchedule { return schedule.Learned{Budget: 100} }},
		"LearnedEmbedded": {New: func() schedule.FetchSchedule { return planner{schedule.Learned{}, nil, nil} }},
	} {
		t.Run(name, func(t *testing.T) { scheduletest.Run(t, h) })
	}
}

// mutant is Adaptive with one fault.
type mutant struct {
	schedule.Adaptive
	init, force func(d, old crawldb.Datum, now time.Time) crawldb.Datum
	fetched     func(d, old crawldb.Datum, v schedule.Visit) crawldb.Datum
	retry, gone func(d, old crawldb.Datum, v schedule.Visit) crawldb.Datum
	due         func(d *crawldb.Datum, now time.Time, due bool) bool
}

func (m mutant) Init(d crawldb.Datum, now time.Time) crawldb.Datum {
	if got := m.Adaptive.Init(d, now); m.init == nil {
		return got
	} else {
		return m.init(got, d, now)
	}
}

func (m mutant) Force(d crawldb.Datum, now time.Time) crawldb.Datum {
	if got := m.Adaptive.Force(d, now); m.force == nil {
		return got
	} else {
		return m.force(got, d, now)
	}
}

func (m mutant) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	if got := m.Adaptive.Fetched(d, v); m.fetched == nil {
		return got
	} else {
		return m.fetched(got, d, v)
	}
}

func (m mutant) Retry(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	if got := m.Adaptive.Retry(d, v); m.retry == nil {
		return got
	} else {
		return m.retry(got, d, v)
	}
}

func (m mutant) Gone(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	if got := m.Adaptive.Gone(d, v); m.gone == nil {
		return got
	} else {
		return m.gone(got, d, v)
	}
}

func (m mutant) Due(d *crawldb.Datum, now time.Time) bool {
	due := m.Adaptive.Due(d, now)
	if m.due == nil {
		return due
	}
	return m.due(d, now, due)
}

// TestRulesFindFaults runs over schedules with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	var calls atomic.Int64
	type D = crawldb.Datum
	type V = schedule.Visit
	var all []kit.Mutant[scheduletest.Harness]
	for _, c := range []struct {
		name string
		rule string
		s    schedule.FetchSchedule
	}{
		{"moves the next fetch beyond the horizon of what it wraps", "a page is not due again at the visit", mondays{schedule.Adaptive{}}},
		{"Init waits an interval", "Init makes a record due", mutant{init: func(d, _ D, now time.Time) D { d.FetchTime = now.Add(d.Interval); return d }}},
		{"Init sets the default", "Init keeps an interval that was set", mutant{init: func(d, _ D, _ time.Time) D { d.Interval = 30 * day; return d }}},
		{"gone in Nutch's way", "an interval is never zero or negative", mutant{gone: func(_, d D, v V) D {
			return schedule.Default{NutchCompat: true}.Gone(d, v)
		}}},
		{"gone is due at once", "the next fetch is after the visit", mutant{gone: func(d, _ D, v V) D { d.FetchTime = v.Time; return d }}},
		{"the interval is not whole seconds", "an interval is never zero or negative", mutant{fetched: func(d, _ D, _ V) D { d.Interval += time.Millisecond; return d }}},
		{"retries are not counted", "Retry counts and Fetched ends the count", mutant{retry: func(d, old D, _ V) D { d.Retries = old.Retries; return d }}},
		{"retries are not reset", "Retry counts and Fetched ends the count", mutant{fetched: func(d, old D, _ V) D { d.Retries = old.Retries; return d }}},
		{"Force keeps the ETag", "Force makes a record due and forgets its content", mutant{force: func(d, old D, _ time.Time) D { d.ETag = old.ETag; return d }}},
		{"Force keeps the fetch time", "Force makes a record due and forgets its content", mutant{force: func(d, old D, _ time.Time) D { d.FetchTime = old.FetchTime; return d }}},
		{"Fetched ends the lease", "fields of others are not changed", mutant{fetched: func(d, _ D, _ V) D { d.LeasedUntil = time.Time{}; return d }}},
		{"Gone forgets the signature", "fields of others are not changed", mutant{gone: func(d, _ D, _ V) D { d.Signature = nil; return d }}},
		{"Retry drops Meta", "fields of others are not changed", mutant{retry: func(d, _ D, _ V) D { d.Meta = crawldb.Meta{}; return d }}},
		{"Force wipes the signature in place", "the arguments are not changed", mutant{force: func(d, old D, _ time.Time) D { clear(old.Signature); return d }}},
		{"Due corrects the record", "the arguments are not changed", mutant{due: func(d *D, now time.Time, due bool) bool {
			if d.FetchTime.Sub(now) > 90*day {
				d.FetchTime = now
			}
			return due
		}}},
		{"Fetched keeps count of calls", "the same arguments give the same result", mutant{fetched: func(d, _ D, v V) D {
			if calls.Add(1)%5 == 0 {
				d.FetchTime = d.FetchTime.Add(time.Millisecond)
			}
			return d
		}}},
		{"Modified is the next fetch", "Modified is not after the visit", mutant{fetched: func(d, _ D, v V) D { d.Modified = d.FetchTime; return d }}},
		{"Due knows no horizon", "Due depends on the fetch time and the horizon", mutant{due: func(d *D, now time.Time, _ bool) bool { return !d.FetchTime.After(now) }}},
		{"a retry may wait for years", "no next fetch is beyond the horizon", mutant{retry: func(d, _ D, v V) D { d.FetchTime = v.Time.Add(1000 * day); return d }}},
		{"no least interval", "interval and next fetch are within the bounds", mutant{fetched: func(_, d D, v V) D {
			return schedule.Adaptive{MinInterval: time.Second}.Fetched(d, v)
		}}},
		{"unchanged pages move by their age", "a visit without change never makes the next one sooner", mutant{fetched: func(d, _ D, v V) D {
			if v.Change == schedule.Unchanged && v.PrevModified.Before(v.Time) && !v.PrevModified.IsZero() {
				next := d.FetchTime.Add(-min(v.Time.Sub(v.PrevModified), d.Interval) * 3 / 10)
				if soonest := v.Time.Add(time.Minute); next.Before(soonest) {
					next = soonest
				}
				d.FetchTime = next
			}
			return d
		}}},
		{"changed pages wait longer", "a visit with a change never makes the next one later", mutant{fetched: func(d, old D, v V) D {
			if v.Change == schedule.Changed {
				v.Change = schedule.Unchanged
				return schedule.Adaptive{}.Fetched(old, v)
			}
			return d
		}}},
		{"the age is taken for the interval", "the age of a page does not replace its interval", mutant{fetched: func(d, _ D, v V) D {
			if age := v.Time.Sub(v.PrevModified).Truncate(time.Second); v.Change == schedule.Unchanged && !v.PrevModified.IsZero() && age > d.Interval {
				d.Interval = min(age, 90*day)
				d.FetchTime = v.Time.Add(d.Interval)
			}
			return d
		}}},
		{"nothing is adapted", "intervals follow the changes", mutant{Adaptive: schedule.Adaptive{IncRate: -1, DecRate: -1}}},
		{"Nutch's sync_delta", "a page that never changes is visited less and less", mutant{fetched: func(_, d D, v V) D {
			return schedule.Adaptive{Default: schedule.Default{NutchCompat: true}, AdaptiveMax: 90 * day}.Fetched(d, v)
		}}},
	} {
		h := scheduletest.Harness{New: func() schedule.FetchSchedule { return c.s }, Bounds: bounds}
		all = append(all, kit.Mutant[scheduletest.Harness]{Fault: c.name, Rule: c.rule, Harness: h})
	}
	for _, c := range faultyPlanners() {
		h := scheduletest.Harness{New: func() schedule.FetchSchedule { return c.s }}
		all = append(all, kit.Mutant[scheduletest.Harness]{Fault: c.fault, Rule: c.rule, Harness: h})
	}
	kit.Catch(t, scheduletest.Kit, all, nil)
}

// planner embeds Learned as it should be embedded, but for one fault.
type planner struct {
	schedule.Learned
	withPlan func(s planner, p *schedule.Plan) schedule.Planner
	sample   func(schedule.Sample) schedule.Sample
}

func (s planner) WithPlan(p *schedule.Plan) schedule.Planner {
	if s.withPlan != nil {
		return s.withPlan(s, p)
	}
	s.Plan = p
	return s
}

func (s planner) NewSample(now time.Time) schedule.Sample {
	x := s.Learned.NewSample(now)
	if s.sample != nil {
		return s.sample(x)
	}
	return x
}

// lastWins makes a plan that depends on the last record.
type lastWins struct {
	schedule.Sample
	url string
}

func (x *lastWins) Add(d *crawldb.Datum) {
	x.url = d.URL
	x.Sample.Add(d)
}

func (x *lastWins) Plan(o schedule.PlanOptions) *schedule.Plan {
	p := x.Sample.Plan(o)
	p.Extra = []byte(strconv.Quote(x.url))
	return p
}

// timeless makes a plan that does not say when it was made.
type timeless struct{ schedule.Sample }

func (x timeless) Plan(o schedule.PlanOptions) *schedule.Plan {
	p := x.Sample.Plan(o)
	p.Made = time.Time{}
	return p
}

type faultyPlanner struct {
	fault, rule string
	s           schedule.FetchSchedule
}

func faultyPlanners() []faultyPlanner {
	const replaces, ofRecords = "a plan replaces the plan and nothing else", "a plan depends on the records and not on their order"
	return []faultyPlanner{
		{"the WithPlan of Learned is inherited", replaces, struct{ schedule.Learned }{}},
		{"WithPlan does nothing", replaces, planner{withPlan: func(s planner, _ *schedule.Plan) schedule.Planner { return s }}},
		{"WithPlan forgets the budget", replaces, planner{Learned: schedule.Learned{Budget: 7}, withPlan: func(s planner, p *schedule.Plan) schedule.Planner {
			s.Learned = schedule.Learned{Plan: p}
			return s
		}}},
		{"WithPlan forgets a bound", replaces, planner{Learned: schedule.Learned{MinInterval: 2 * day}, withPlan: func(s planner, p *schedule.Plan) schedule.Planner {
			s.Learned = schedule.Learned{Plan: p}
			return s
		}}},
		{"the last record counts for all", ofRecords, planner{sample: func(x schedule.Sample) schedule.Sample { return &lastWins{Sample: x} }}},
		{"a plan has no time", ofRecords, planner{sample: func(x schedule.Sample) schedule.Sample { return timeless{x} }}},
	}
}

// The fault of a planner breaks no other rule.
func TestFaultOfPlannerBreaksOneRule(t *testing.T) {
	for _, c := range faultyPlanners() {
		err := scheduletest.Check(scheduletest.Harness{New: func() schedule.FetchSchedule { return c.s }})
		if got := broken(err); !slices.Equal(got, []string{c.rule}) {
			t.Errorf("%s: broken are %q, want %q", c.fault, got, c.rule)
		}
	}
}

// mondays fetches on Mondays only. It wraps a stock schedule, and moves fetch times beyond the
// horizon of that, whose Due then takes them for the mistake of a clock.
type mondays struct{ schedule.FetchSchedule }

func monday(d crawldb.Datum) crawldb.Datum {
	for d.FetchTime.Weekday() != time.Monday {
		d.FetchTime = d.FetchTime.Add(day)
	}
	return d
}

func (m mondays) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	return monday(m.FetchSchedule.Fetched(d, v))
}

func TestNextFetchBeyondHorizonOfWrappedScheduleIsFound(t *testing.T) {
	for name, s := range map[string]schedule.FetchSchedule{"Default": schedule.Default{}, "Adaptive": schedule.Adaptive{}, "Learned": schedule.Learned{}} {
		err := scheduletest.Check(scheduletest.Harness{New: func() schedule.FetchSchedule { return mondays{s} }})
		if got, want := broken(err), []string{"a page is not due again at the visit"}; !slices.Equal(got, want) {
			t.Errorf("%s: broken are %q, want %q", name, got, want)
		}
	}
}

// broken returns the names of the rules that err says were broken.
func broken(err error) (names []string) {
	if err == nil {
		return nil
	}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var r *kit.Error
		if errors.As(e, &r) {
			names = append(names, r.Rule)
		}
	}
	return names
}

func TestErrorNamesTheRule(t *testing.T) {
	err := scheduletest.Check(scheduletest.Harness{New: func() schedule.FetchSchedule { return schedule.Default{NutchCompat: true} }})
	if !strings.Contains(fmt.Sprint(err), `rule "the next fetch is after the visit" is broken: listed case 0.0.0`) {
		t.Errorf("got %v", err)
	}
}

// A message can be read: it has one record, and of what changed only the fields that did.
func TestMessagesAreShort(t *testing.T) {
	var calls atomic.Int64
	for want, m := range map[string]mutant{
		`Fetched changed other fields: ETag is "", not "\"x\""; record URL "http://www.example.com/page", Status db_fetched, `: {fetched: func(d, _ crawldb.Datum, _ schedule.Visit) crawldb.Datum {
			d.ETag = ""
			return d
		}},
		`changed the record: Meta is [a="c" opic.cash="12345678"], not [a="b" opic.cash="12345678"]; record`: {due: func(d *crawldb.Datum, _ time.Time, due bool) bool {
			d.Meta.Set("a", "c")
			return due
		}},
		`, asked again: Gone: Retries is `: {gone: func(d, _ crawldb.Datum, _ schedule.Visit) crawldb.Datum {
			d.Retries = int(calls.Add(1))
			return d
		}},
	} {
		got := fmt.Sprint(scheduletest.Check(scheduletest.Harness{New: func() schedule.FetchSchedule { return m }, Bounds: bounds}))
		if !strings.Contains(got, want) {
			t.Errorf("%s\ndoes not say %s", got, want)
		}
		for line := range strings.Lines(got) {
			if len(line) > 1000 {
				t.Errorf("a message of %d bytes: %s", len(line), line)
			}
		}
	}
}
