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
	"context"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/kit"
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

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns nil, or an error for each broken rule, joined:
// rule "its name" is broken, and how. Rules that the harness cannot test are skipped.
func Check(h Harness) error { return h.kit().Check(context.Background()) }

func (h Harness) kit() kit.Kit[*check] {
	return kit.Kit[*check]{Rules: rules(), Start: func(c *kit.Check) *check { return &check{c, h, h.New()} }}
}

// check is the run of one rule on one filter.
type check struct {
	*kit.Check
	h Harness
	f scoring.Filter
}

func rules() []kit.Rule[*check] {
	return []kit.Rule[*check]{
		{Name: "no score is NaN or infinite", Check: each(scoresAreFinite)},
		{Name: "only the score and the filter's own Meta change", Check: each(onlyTheScore)},
		{Name: "arguments that are only read are not changed", Check: each(readOnly)},
		{Name: "the same arguments give the same result", Check: isAFunction},
		{Name: "Base is neutral in a chain", Check: each(baseIsNeutral)},
		{Name: "a dropped link is left alone", Check: each(droppedIsDropped)},
		{Name: "a new record can be updated", Check: each(newRecord)},
		{Name: "a page loses what it gives and keeps what it receives", Check: each(cashIsConserved)},
		{Name: "a page gives at least what its links receive, and at most what it has", Check: each(givesWhatItHas)},
		{Name: "the order of the links to a page makes no difference", Check: each(anyOrder)},
	}
}

// each returns a rule that is checked for every sample.
func each(f func(*check, *sample)) func(*check) {
	return func(k *check) {
		for s := range k.h.samples() {
			k.Prefix = s.name + ": "
			f(k, s)
		}
	}
}
