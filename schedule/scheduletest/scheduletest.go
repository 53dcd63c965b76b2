// Package scheduletest tests implementations of [schedule.FetchSchedule]
// against the laws of its contract. Call [Run] from a test of the schedule:
//
//	func TestSchedule(t *testing.T) {
//		scheduletest.Run(t, scheduletest.Harness{
//			New: func() schedule.FetchSchedule { return mySchedule{} },
//		})
//	}
package scheduletest

import (
	"context"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/schedule"
)

// Harness makes the schedules to test. New is required. If another field is nil,
// the schedule does not promise what it is for, and the rules that need it are
// skipped.
type Harness struct {
	// New returns a schedule, an equal one on each call.
	New func() schedule.FetchSchedule

	// Bounds returns the least and the greatest interval of a URL, if the
	// schedule adapts the interval of a page to its changes.
	Bounds func(url string) (least, most time.Duration)

	// Seed is the seed of the random checks; zero is a seed like any other. Messages
	// name the seed and the step.
	Seed uint64
}

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns nil, or an error for each broken rule, joined:
// rule "its name" is broken, and how. Rules that the harness cannot test are skipped.
func Check(h Harness) error { return h.kit().Check(context.Background()) }

func (h Harness) kit() kit.Kit[*check] {
	return kit.Kit[*check]{Rules: rules(), Start: func(c *kit.Check) *check { return &check{c, h, h.New()} }}
}

// check is the run of one rule on one schedule.
type check struct {
	*kit.Check
	h Harness
	s schedule.FetchSchedule
}

// bounds returns the bounds of a URL that rules about bounds need.
func (k *check) bounds(url string) (least, most time.Duration) {
	k.Need(k.h.Bounds != nil, "Harness.Bounds is nil")
	return k.h.Bounds(url)
}

// horizon returns the horizon that rules about it need.
func (k *check) horizon() time.Duration {
	ahead, ok := schedule.Horizon(k.s)
	k.Need(ok, "the schedule has no method Horizon")
	return ahead
}

// planner returns a schedule as the Planner that rules about plans need.
func (k *check) planner(s schedule.FetchSchedule) schedule.Planner {
	p, ok := s.(schedule.Planner)
	k.Need(ok, "the schedule is no schedule.Planner")
	return p
}

func rules() []kit.Rule[*check] {
	return []kit.Rule[*check]{
		{Name: "Init makes a record due", Check: initIsDue},
		{Name: "Init keeps an interval that was set", Check: initKeepsInterval},
		{Name: "the next fetch is after the visit", Check: nextIsAfterVisit},
		{Name: "a page is not due again at the visit", Check: notDueAtVisit},
		{Name: "an interval is never zero or negative", Check: intervalIsPositive},
		{Name: "Retry counts and Fetched ends the count", Check: retriesCount},
		{Name: "Force makes a record due and forgets its content", Check: forceForgets},
		{Name: "fields of others are not changed", Check: othersStay},
		{Name: "the arguments are not changed", Check: argumentsStay},
		{Name: "the same arguments give the same result", Check: isAFunction},
		{Name: "Modified is not after the visit", Check: modifiedIsPast},
		{Name: "Due depends on the fetch time and the horizon", Check: dueByHorizon},
		{Name: "no next fetch is beyond the horizon", Check: nextWithinHorizon},
		{Name: "interval and next fetch are within the bounds", Check: withinBounds},
		{Name: "a visit without change never makes the next one sooner", Check: unchangedNotSooner},
		{Name: "a visit with a change never makes the next one later", Check: changedNotLater},
		{Name: "the age of a page does not replace its interval", Check: ageIsNotInterval},
		{Name: "intervals follow the changes", Check: adapts},
		{Name: "a page that never changes is visited less and less", Check: noHotLoop},
		{Name: "a plan replaces the plan and nothing else", Check: planReplacesPlan},
		{Name: "a plan depends on the records and not on their order", Check: planOfRecords},
	}
}
