// Package crawldbtest tests implementations of [crawldb.Store] against the
// rules of its contract. Call [Run] from a test of the engine:
//
//	func TestCrawl(t *testing.T) {
//		crawldbtest.Run(t, crawldbtest.Harness{
//			Open: func() (crawldb.Store, error) { return mystore.Open(t.TempDir()) },
//		})
//	}
//
// The rules about [crawldb.DueStore] and [crawldb.BulkStore] are run through
// [crawldb.Due] and [crawldb.UpdateAll], once on the store as it is and once on a
// plain Store around it, which is scanned, and updated batch by batch.
//
// No kit proves durability: Harness.Crash shows only that nothing waits for
// Close. That a Sync reaches the disk is for the engine to test below itself.
package crawldbtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/kit"
)

// Harness makes the stores to test. Open is required. If another field is nil, the
// rules that need it are skipped.
type Harness struct {
	// Open returns a new, empty store, another one on each call. The kit closes it.
	Open func() (crawldb.Store, error)

	// Reopen opens s again, which the kit has closed, and returns it.
	Reopen func(s crawldb.Store) (crawldb.Store, error)

	// Crash ends the use of s without closing it, as if the process had been
	// killed, and returns a store with what is left.
	Crash func(s crawldb.Store) (crawldb.Store, error)

	// Patience is the time limit of calls that must not wait for the caller; zero
	// means 30 seconds. A store that exceeds it is abandoned, and not closed.
	Patience time.Duration

	// Sequences is the number of sequences of random steps that are compared with a
	// map; zero means 4. After changes to an engine, run 10,000. A sequence that
	// fails is shortened and printed.
	Sequences int

	// Seed is the seed of the random checks; zero is a seed like any other. Messages
	// name the seed and the step.
	Seed uint64
}

// Error says which rule a store broke, and how.
type Error struct {
	Rule string
	Err  error
}

// Error begins with the rule.
func (e *Error) Error() string { return fmt.Sprintf("rule %q is broken: %v", e.Rule, e.Err) }

// Unwrap returns how it was broken.
func (e *Error) Unwrap() error { return e.Err }

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns an [*Error] for each broken rule, joined,
// or nil. Rules that the harness cannot test are skipped.
func Check(ctx context.Context, h Harness) error {
	return h.kit().Check(ctx, func(rule string, err error) error { return &Error{Rule: rule, Err: err} })
}

func (h Harness) kit() kit.Kit[crawldb.Store, *check] {
	return kit.Kit[crawldb.Store, *check]{
		Harness: kit.Harness[crawldb.Store]{
			Open: h.Open, Close: crawldb.Store.Close, Reopen: h.Reopen, Crash: h.Crash, Patience: h.Patience,
		},
		Rules: rules(),
		With:  func(c *kit.Check[crawldb.Store]) *check { return &check{c, h} },
	}
}

type rule = kit.Rule[*check]

const (
	needsReopen = kit.NeedsReopen
	needsCrash  = kit.NeedsCrash
)

func rules() []rule {
	return slices.Concat(recordRules(), scanRules(), updateRules(), markRules(), lifeRules(),
		concurrencyRules(), crashRules(), modelRules(), sequenceRules(), dueRules(), bulkRules())
}

// check is the run of one rule.
type check struct {
	*kit.Check[crawldb.Store]
	h Harness
}
