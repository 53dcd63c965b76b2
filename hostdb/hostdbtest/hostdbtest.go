// Package hostdbtest tests implementations of [hostdb.Store] against the rules
// of its contract. Call [Run] from a test of the engine:
//
//	func TestHosts(t *testing.T) {
//		hostdbtest.Run(t, hostdbtest.Harness{
//			Open: func() (hostdb.Store, error) { return mystore.Open(t.TempDir()) },
//		})
//	}
//
// No kit proves durability: Harness.Crash shows only that nothing waits for
// Close. The rules about a crash read the real clock, as the stores do.
package hostdbtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/kit"
)

// Harness makes the stores to test. Open is required. If another field is nil, the
// rules that need it are skipped.
type Harness struct {
	// Open returns a new, empty store, another one on each call. The kit closes it.
	Open func() (hostdb.Store, error)

	// Reopen opens s again, which the kit has closed, and returns it.
	Reopen func(s hostdb.Store) (hostdb.Store, error)

	// Crash ends the use of s without closing it, as if the process had been
	// killed, and returns a store with what is left.
	Crash func(s hostdb.Store) (hostdb.Store, error)

	// Patience is the time limit of calls that must not wait for the caller; zero
	// means 30 seconds. A store that exceeds it is abandoned, and not closed.
	Patience time.Duration

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

func (h Harness) kit() kit.Kit[hostdb.Store, *check] {
	return kit.Kit[hostdb.Store, *check]{
		Harness: kit.Harness[hostdb.Store]{
			Open: h.Open, Close: hostdb.Store.Close, Reopen: h.Reopen, Crash: h.Crash, Patience: h.Patience,
		},
		Rules: rules(),
		With:  func(c *kit.Check[hostdb.Store]) *check { return &check{c, h} },
	}
}

type rule = kit.Rule[*check]

const (
	needsReopen = kit.NeedsReopen
	needsCrash  = kit.NeedsCrash
)

func rules() []rule {
	return slices.Concat(recordRules(), scanRules(), updateRules(), lifeRules(), concurrencyRules(), crashRules(), modelRules())
}

// check is the run of one rule.
type check struct {
	*kit.Check[hostdb.Store]
	h Harness
}
