// Package scoringtest tests implementations of [scoring.Filter] against the
// laws of its contract. Call [Run] from a test of the filter:
//
//	func TestFilter(t *testing.T) {
//		scoringtest.Run(t, scoringtest.Harness{
//			New: func() scoring.Filter { return myFilter{} },
//		})
//	}
package scoringtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

// Harness makes the filters to test. New is required. If another field is nil,
// the filter does not promise what it is for, and the rules that need it are
// skipped.
type Harness struct {
	// New returns a filter, an equal one on each call.
	New func() scoring.Filter

	// Cash returns the cash that a record holds, if the filter takes from a page
	// what it gives to others.
	Cash func(d *crawldb.Datum) float64

	// Same reports whether two records are equal up to rounding, if the order of
	// the links to a page makes no difference to the filter.
	Same func(a, b *crawldb.Datum) bool

	// Marks are the statuses that the filter may set; none if nil.
	Marks []crawldb.Status

	// Seed is the seed of the random checks; zero is a seed like any other. Messages
	// name the seed and the step.
	Seed uint64
}

// Error says which rule a filter broke, and how.
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
			if err := r.run(h); err != nil {
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
			if err := r.run(h); err != nil {
				errs = append(errs, &Error{r.name, err})
			}
		}
	}
	return errors.Join(errs...)
}

// rule is checked once, or for every sample.
type rule struct {
	name  string
	needs func(h Harness) string // returns why it cannot be checked; nil if it always can
	once  func(h Harness) error
	each  func(h Harness, f scoring.Filter, c *sample) error
}

func (r rule) skip(h Harness) string {
	if r.needs == nil {
		return ""
	}
	return r.needs(h)
}

func (r rule) run(h Harness) (err error) {
	at := "the harness"
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: panic: %v", at, p)
		}
	}()
	if r.once != nil {
		return r.once(h)
	}
	f := h.New()
	for c := range h.samples() {
		at = c.name
		if err := r.each(h, f, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func needsCash(h Harness) string {
	if h.Cash == nil {
		return "Harness.Cash is nil"
	}
	return ""
}

func needsSame(h Harness) string {
	if h.Same == nil {
		return "Harness.Same is nil"
	}
	return ""
}
