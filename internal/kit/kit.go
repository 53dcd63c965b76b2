// Package kit is the frame of the conformance kits: it runs the rules of a contract, each
// on its own, and reports which of them an implementation breaks. It knows no contract;
// the rules and the harness that makes implementations are the kit's own. Start with
// [Kit]; [Stores] adds what kits of stores share, [Catch] tests a kit itself.
package kit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
)

// Kit is a contract, and a way to begin the runs of its rules. C is what a rule works
// with; it usually embeds [*Check] or [*Stores].
type Kit[C any] struct {
	Rules []Rule[C]
	// Start returns what a rule works with, for one run of it.
	Start func(*Check) C
}

// A Rule is one sentence of a contract.
type Rule[C any] struct {
	Name  string
	Check func(C)
}

// Error says which rule an implementation broke, and how.
type Error struct {
	Rule string
	Err  error
}

// Error begins with the rule.
func (e *Error) Error() string { return fmt.Sprintf("rule %q is broken: %v", e.Rule, e.Err) }

// Unwrap returns how it was broken.
func (e *Error) Unwrap() error { return e.Err }

// Run checks each rule in a subtest of its name.
func (k Kit[C]) Run(t *testing.T) {
	for _, r := range k.Rules {
		t.Run(r.Name, func(t *testing.T) {
			err := k.run(t.Context(), r)
			if s := (skipped{}); errors.As(err, &s) {
				t.Skip(s.why)
			}
			if err != nil {
				t.Error(shortenWords(err.Error()))
			}
		})
	}
}

// Check returns an [*Error] for each broken rule, joined, or nil. Rules that cannot be
// checked are left out.
func (k Kit[C]) Check(ctx context.Context) error {
	var errs []error
	for _, r := range k.Rules {
		if err := k.run(ctx, r); err != nil && !errors.As(err, &skipped{}) {
			errs = append(errs, &Error{r.Name, err})
		}
	}
	return errors.Join(errs...)
}

func (k Kit[C]) run(ctx context.Context, r Rule[C]) (err error) {
	c := &Check{Ctx: ctx}
	defer func() {
		for i := len(c.cleanups) - 1; i >= 0 && !c.abandoned.Load(); i-- {
			if e := c.cleanups[i](); e != nil && err == nil {
				err = e
			}
		}
	}()
	defer c.Recover(&err)
	r.Check(k.Start(c))
	return nil
}

// shortenWords shortens very long words: a rule may be broken by a URL of 60 kB, and a
// message may have it several times.
func shortenWords(s string) string {
	const most, head, tail = 1000, 200, 100
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(s, unicode.IsSpace) {
		i := strings.Index(s, word) // keep the white space before it
		b.WriteString(s[:i])
		s = s[i+len(word):]
		if n := len(word); n > most {
			word = strings.ToValidUTF8(fmt.Sprintf("%s…(%d bytes)…%s", word[:head], n-head-tail, word[n-tail:]), "")
		}
		b.WriteString(word)
	}
	b.WriteString(s)
	return b.String()
}

// Check is one run of a rule. Its methods end a rule that is broken with a panic, which
// the kit recovers, so that rules need no code for errors.
type Check struct {
	Ctx      context.Context
	Prefix   string        // of failure messages
	Suffix   func() string // of failure messages, if not nil
	Patience time.Duration // of Within; zero means 30 seconds

	cleanups  []func() error
	abandoned atomic.Bool // cleanups might wait for ever
}

// ended is the panic that ends a rule.
type ended struct{ err error }

// skipped is the error of a rule that cannot be checked.
type skipped struct{ why string }

func (s skipped) Error() string { return "skipped: " + s.why }

// Recover must be deferred. It turns the end of a rule into an error. A panic of the
// implementation breaks the rule, too, and its cleanups are omitted: they might wait for
// a lock that it holds.
func (c *Check) Recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case ended:
		*err = p.err
	default:
		c.abandoned.Store(true)
		*err = fmt.Errorf("%spanic: %v%s\n%s", c.Prefix, p, c.suffix(), debug.Stack())
	}
}

// Failf ends the rule as broken.
func (c *Check) Failf(format string, args ...any) {
	panic(ended{fmt.Errorf("%s%w%s", c.Prefix, fmt.Errorf(format, args...), c.suffix())})
}

func (c *Check) suffix() string {
	if c.Suffix == nil {
		return ""
	}
	return c.Suffix()
}

// Need ends the rule as one that cannot be checked, unless there is what it needs.
func (c *Check) Need(ok bool, otherwise string) {
	if !ok {
		panic(ended{skipped{otherwise}})
	}
}

// Must demands that there is no error.
func (c *Check) Must(err error, format string, args ...any) {
	if err != nil {
		c.Failf("%s: %w", fmt.Sprintf(format, args...), err)
	}
}

// Is demands that err is the target.
func (c *Check) Is(err, target error, format string, args ...any) {
	if !errors.Is(err, target) {
		c.Failf("%s: error is %v, want one that is %q", fmt.Sprintf(format, args...), quoted(err), target)
	}
}

func quoted(err error) string {
	if err == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", err)
}

// Cleanup has f called at the end of the rule, last first. An error of f breaks a rule
// that is not broken otherwise.
func (c *Check) Cleanup(f func() error) { c.cleanups = append(c.cleanups, f) }

// Together runs f in n goroutines at once, which are numbered from 0. If the rule fails in
// one of them, it is broken once all have ended.
func (c *Check) Together(n int, f func(worker int)) {
	errs := make([]error, n)
	var group sync.WaitGroup
	for w := range n {
		group.Go(func() {
			defer c.Recover(&errs[w])
			f(w)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			panic(ended{err})
		}
	}
}

// Within fails the rule if f does not return in time.
func (c *Check) Within(what string, f func()) {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer c.Recover(&err)
		f()
	}()
	patience := c.Patience
	if patience <= 0 {
		patience = 30 * time.Second
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			panic(ended{err})
		}
	case <-timer.C:
		c.abandoned.Store(true)
		c.Failf("%s did not return within %v", what, patience)
	}
}
