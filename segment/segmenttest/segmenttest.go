// Package segmenttest tests implementations of [segment.Store] against the
// rules of its contract and of that of [segment.BlockWriter]. Call [Run] from a
// test of the engine:
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
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recrawl/recrawl/segment"
)

// Harness makes the stores to test. Open is required; another field that is nil
// says that the store cannot do it, and the rules that need it are skipped by
// name.
type Harness struct {
	// Open returns a new and empty store. Every call returns another one.
	Open func() (segment.Store, error)

	// Close ends the use of a store. It is called once for each store that was
	// not given to Crash; nil if there is nothing to do.
	Close func(s segment.Store) error

	// Reopen returns a store of what s held, which was closed.
	Reopen func(s segment.Store) (segment.Store, error)

	// Crash ends the use of s without closing it or its writers, as if the
	// process had been killed, and returns a store of what is left.
	Crash func(s segment.Store) (segment.Store, error)

	// Tear cuts the last n bytes off what s keeps of a part that was not
	// committed and has no writer, as a machine that failed while it wrote might.
	// It cuts all there is if there are fewer.
	Tear func(s segment.Store, segment, part string, n int) error

	// Damage changes one byte of what s keeps of a committed part; at says which,
	// modulo how many there are.
	Damage func(s segment.Store, segment, part string, at int) error

	// Patience is how long a call may take that must not wait for the caller;
	// zero means 30 seconds. A store that exceeds it is left behind as it is.
	Patience time.Duration

	// Seed begins the random checks; zero is a seed like any other. Messages
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

// Run checks each rule in a subtest that bears its name.
func Run(t *testing.T, h Harness) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			if why := r.skip(h); why != "" {
				t.Skip(why)
			}
			if err := r.run(t.Context(), h); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check is [Run] for programs: it returns an [*Error] for each rule broken,
// joined, or nil. Rules that the harness cannot test are passed over.
func Check(ctx context.Context, h Harness) error {
	var errs []error
	for _, r := range rules() {
		if r.skip(h) != "" {
			continue
		}
		if err := r.run(ctx, h); err != nil {
			errs = append(errs, &Error{Rule: r.name, Err: err})
		}
	}
	return errors.Join(errs...)
}

// A rule is one sentence of the contract.
type rule struct {
	name  string
	needs int
	check func(*check)
}

const (
	needsReopen = 1 << iota
	needsCrash
	needsTear
	needsDamage
)

func rules() []rule {
	var all []rule
	all = append(all, readRules()...)
	all = append(all, nameRules()...)
	all = append(all, writeRules()...)
	all = append(all, removeRules()...)
	all = append(all, contextRules()...)
	all = append(all, concurrencyRules()...)
	all = append(all, crashRules()...)
	return append(all, modelRules()...)
}

func (r rule) skip(h Harness) string {
	switch {
	case r.needs&needsReopen != 0 && h.Reopen == nil:
		return "Harness.Reopen is nil"
	case r.needs&needsCrash != 0 && h.Crash == nil:
		return "Harness.Crash is nil"
	case r.needs&needsTear != 0 && h.Tear == nil:
		return "Harness.Tear is nil"
	case r.needs&needsDamage != 0 && h.Damage == nil:
		return "Harness.Damage is nil"
	}
	return ""
}

func (r rule) run(ctx context.Context, h Harness) (err error) {
	if h.Open == nil {
		return errors.New("Harness.Open is nil")
	}
	if h.Patience <= 0 {
		h.Patience = 30 * time.Second
	}
	c := &check{ctx: ctx, h: h}
	defer func() {
		if c.stuck {
			return // ending anything might wait for the call that hangs
		}
		for _, w := range c.writers {
			if e := w.Close(); e != nil && err == nil {
				err = fmt.Errorf("Close of a writer: %w", e)
			}
		}
		for _, s := range c.stores {
			if h.Close == nil {
				break
			}
			if e := h.Close(s); e != nil && err == nil {
				err = fmt.Errorf("Close: %w", e)
			}
		}
	}()
	defer recovered(&err)
	r.check(c)
	return nil
}

// check is the run of one rule. Its methods end the rule with a panic that run
// recovers, so that a rule reads as what it demands.
type check struct {
	ctx     context.Context
	h       Harness
	stores  []segment.Store
	writers []segment.BlockWriter
	prefix  string
	stuck   bool
}

type broken struct{ err error }

func recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case broken:
		*err = p.err
	default:
		panic(p)
	}
}

func (c *check) failf(format string, args ...any) {
	panic(broken{fmt.Errorf(c.prefix+format, args...)})
}

func (c *check) must(err error, format string, args ...any) {
	if err != nil {
		c.failf("%s: %w", fmt.Sprintf(format, args...), err)
	}
}

// is demands that err is the target.
func (c *check) is(err, target error, format string, args ...any) {
	if !errors.Is(err, target) {
		what := "nil"
		if err != nil {
			what = fmt.Sprintf("%q", err)
		}
		c.failf("%s: error is %s, want one that is %q", fmt.Sprintf(format, args...), what, target)
	}
}

// within ends the rule if f does not return in time.
func (c *check) within(what string, f func()) {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer recovered(&err)
		f()
	}()
	timer := time.NewTimer(c.h.Patience)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			panic(broken{err})
		}
	case <-timer.C:
		c.stuck = true
		c.failf("%s did not return within %v; is a lock held while the caller runs?", what, c.h.Patience)
	}
}
