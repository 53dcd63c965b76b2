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
	"errors"
	"fmt"
	"testing"
	"time"

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

// Error says which rule a schedule broke, and how.
type Error struct {
	Rule string
	Err  error
}

// Error begins with the rule.
func (e *Error) Error() string { return fmt.Sprintf("rule %q is broken: %v", e.Rule, e.Err) }

// Unwrap returns how it was broken.
func (e *Error) Unwrap() error { return e.Err }

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if why := r.skip(h); why != "" {
				t.Skip(why)
			}
			if err := r.check(h); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check is [Run] without a test: it returns an [*Error] for each broken rule, joined,
// or nil. Rules that the harness cannot test are skipped.
func Check(h Harness) error {
	var errs []error
	for _, r := range rules {
		if r.skip(h) == "" {
			if err := r.check(h); err != nil {
				errs = append(errs, &Error{r.name, err})
			}
		}
	}
	return errors.Join(errs...)
}

type rule struct {
	name  string
	needs func(h Harness) string // returns why it cannot be checked; nil if it always can
	check func(h Harness) error
}

func (r rule) skip(h Harness) string {
	if r.needs == nil {
		return ""
	}
	return r.needs(h)
}

func needsBounds(h Harness) string {
	if h.Bounds == nil {
		return "Harness.Bounds is nil"
	}
	return ""
}

func needsHorizon(h Harness) string {
	if _, ok := schedule.Horizon(h.New()); !ok {
		return "the schedule has no method Horizon"
	}
	return ""
}

func needsPlanner(h Harness) string {
	if _, ok := h.New().(schedule.Planner); !ok {
		return "the schedule is no schedule.Planner"
	}
	return ""
}
