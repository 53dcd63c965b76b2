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

// Harness makes the schedules to test. New is required; another field that is
// nil says that the schedule does not promise it, and the rules that need it are
// skipped by name.
type Harness struct {
	// New returns a schedule. Every call returns an equal one.
	New func() schedule.FetchSchedule

	// Bounds returns the least and the greatest interval of a URL, for a
	// schedule that adapts the interval of a page to its changes.
	Bounds func(url string) (least, most time.Duration)

	// Seed begins the random checks; zero is a seed like any other. Messages
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

// Run checks each rule in a subtest that bears its name.
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

// Check is [Run] for programs: it returns an [*Error] for each rule broken,
// joined, or nil. Rules that the harness cannot test are passed over.
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
	needs func(h Harness) string // why it cannot be checked; nil if it always can
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
