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
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Harness makes the stores to test. Open is required; another field that is nil
// says that the store cannot do it, and the rules that need it are skipped by
// name.
type Harness struct {
	// Open returns a new and empty store. Every call returns another one. The
	// kit closes it.
	Open func() (crawldb.Store, error)

	// Reopen returns a store of what s held, which was closed.
	Reopen func(s crawldb.Store) (crawldb.Store, error)

	// Crash ends the use of s without closing it, as if the process had been
	// killed, and returns a store of what is left.
	Crash func(s crawldb.Store) (crawldb.Store, error)

	// Patience is how long a call may take that must not wait for the caller;
	// zero means 30 seconds. A store that exceeds it is left behind as it is.
	Patience time.Duration

	// Sequences is how many sequences of random steps are compared with a map; zero
	// means a few. An engine under work deserves 10,000, of which one that fails is
	// made short and printed.
	Sequences int

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
)

func rules() []rule {
	return slices.Concat(recordRules(), scanRules(), updateRules(), markRules(), lifeRules(),
		concurrencyRules(), crashRules(), modelRules(), sequenceRules(), dueRules(), bulkRules())
}

func (r rule) skip(h Harness) string {
	switch {
	case r.needs&needsReopen != 0 && h.Reopen == nil:
		return "Harness.Reopen is nil"
	case r.needs&needsCrash != 0 && h.Crash == nil:
		return "Harness.Crash is nil"
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
			return // Close might wait for the call that hangs
		}
		for _, s := range c.open {
			if e := s.Close(); e != nil && err == nil {
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
	ctx    context.Context
	h      Harness
	open   []crawldb.Store
	prefix string
	stuck  bool
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

// is demands that err is the target and that nothing came with it.
func (c *check) is(err, target error, format string, args ...any) {
	if !errors.Is(err, target) {
		c.failf("%s: error is %v, want one that is %q", fmt.Sprintf(format, args...), quoted(err), target)
	}
}

func quoted(err error) string {
	if err == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", err)
}

func (c *check) store() crawldb.Store {
	s, err := c.h.Open()
	c.must(err, "Open")
	if s == nil {
		c.failf("Open returned nil")
	}
	c.open = append(c.open, s)
	return s
}

// forget leaves it to others to close the store.
func (c *check) forget(s crawldb.Store) {
	c.open = slices.DeleteFunc(c.open, func(o crawldb.Store) bool {
		return reflect.ValueOf(o).Comparable() && reflect.ValueOf(s).Comparable() && o == s
	})
}

func (c *check) close(s crawldb.Store) {
	c.forget(s)
	c.must(s.Close(), "Close")
}

func (c *check) reopen(s crawldb.Store) crawldb.Store {
	c.close(s)
	s, err := c.h.Reopen(s)
	c.must(err, "Reopen")
	c.open = append(c.open, s)
	return s
}

func (c *check) crash(s crawldb.Store) crawldb.Store {
	c.forget(s)
	s, err := c.h.Crash(s)
	c.must(err, "Crash")
	c.open = append(c.open, s)
	return s
}

// twice runs f on the store and, if it can be reopened, once more after that:
// what is written badly often shows only when it is read back. It returns the
// store that is open.
func (c *check) twice(s crawldb.Store, f func(crawldb.Store)) crawldb.Store {
	f(s)
	if c.h.Reopen == nil {
		return s
	}
	s = c.reopen(s)
	c.prefix = "after Reopen: "
	f(s)
	c.prefix = ""
	return s
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
