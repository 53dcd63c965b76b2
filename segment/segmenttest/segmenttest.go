// Package segmenttest tests implementations of [segment.Store] against the
// rules of its contract, and of [segment.BlockWriter]. Call [Run] from a test of
// the engine:
//
//	func TestSegments(t *testing.T) {
//		segmenttest.Run(t, segmenttest.Harness{
//			Open: func() (segment.Store, error) { return mystore.Open(t.TempDir()) },
//		})
//	}
//
// No kit proves durability: Harness.Crash shows only that nothing waits for the
// end of a writer. That a Sync reaches the disk is for the engine to test below
// itself.
package segmenttest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/segment"
)

// Harness makes the stores to test. Open is required. If another field is nil, the
// rules that need it are skipped.
type Harness struct {
	// Open returns a new, empty store, another one on each call.
	Open func() (segment.Store, error)

	// Close ends the use of a store. It is called once for each store that was
	// not given to Crash; nil if there is nothing to do.
	Close func(s segment.Store) error

	// Reopen opens s again, which the kit has closed, and returns it.
	Reopen func(s segment.Store) (segment.Store, error)

	// Crash ends the use of s without closing it or its writers, as if the
	// process had been killed, and returns a store with what is left.
	Crash func(s segment.Store) (segment.Store, error)

	// Tear cuts the last n bytes, or all if there are fewer, off what s has stored
	// of a part that is not committed and has no writer, as a power failure might.
	Tear func(s segment.Store, segment, part string, n int) error

	// Damage changes one byte of what s has stored of a committed part: byte at,
	// modulo the number of bytes.
	Damage func(s segment.Store, segment, part string, at int) error

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

func (h Harness) kit() kit.Kit[segment.Store, *check] {
	return kit.Kit[segment.Store, *check]{
		Harness: kit.Harness[segment.Store]{Open: h.Open, Reopen: h.Reopen, Crash: h.Crash, Patience: h.Patience},
		Rules:   rules(),
		With:    h.check,
		Lacks: func(n kit.Needs) string {
			switch {
			case n&needsTear != 0 && h.Tear == nil:
				return "Harness.Tear is nil"
			case n&needsDamage != 0 && h.Damage == nil:
				return "Harness.Damage is nil"
			}
			return ""
		},
	}
}

type rule = kit.Rule[*check]

const (
	needsReopen = kit.NeedsReopen
	needsCrash  = kit.NeedsCrash
	needsTear   = kit.NeedsOwn
	needsDamage = kit.NeedsOwn << 1
)

func rules() []rule {
	return slices.Concat(readRules(), nameRules(), writeRules(), removeRules(), contextRules(), concurrencyRules(), crashRules(), modelRules())
}

// check is the run of one rule.
type check struct {
	*kit.Check[segment.Store]
	h       Harness
	writers []segment.BlockWriter
}

// check returns a run that closes its writers before the store, unless the store
// crashes.
func (h Harness) check(k *kit.Check[segment.Store]) *check {
	c := &check{Check: k, h: h}
	k.Harness.Close = func(s segment.Store) error {
		for _, w := range c.writers {
			if err := w.Close(); err != nil {
				return fmt.Errorf("writer: %w", err)
			}
		}
		if c.writers = nil; h.Close == nil {
			return nil
		}
		return h.Close(s)
	}
	if h.Crash != nil {
		k.Harness.Crash = func(s segment.Store) (segment.Store, error) {
			c.writers = nil
			return h.Crash(s)
		}
	}
	return c
}
