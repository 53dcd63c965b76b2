// Package kit is the frame of the conformance kits of stores: it runs the rules of a
// contract, each on stores of its own, and reports which are broken.
package kit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// Harness opens, closes, reopens and crashes stores. Open is required. Without Close
// there is nothing to do at the end of a store; rules that need another nil field are
// skipped.
type Harness[S any] struct {
	Open          func() (S, error)
	Close         func(S) error
	Reopen, Crash func(S) (S, error)
	Patience      time.Duration // zero means 30 seconds
}

// A Rule is one sentence of a contract. Check is passed the result of
// [Kit.With].
type Rule[C any] struct {
	Name  string
	Needs Needs
	Check func(C)
}

// Needs are the fields of a harness without which a rule is skipped.
type Needs int

const (
	NeedsReopen Needs = 1 << iota
	NeedsCrash
	NeedsOwn // the first of those that a kit defines itself
)

// Kit is a contract, and the harness that makes the stores it is checked on.
type Kit[S, C any] struct {
	Harness Harness[S]
	Rules   []Rule[C]
	// With returns what a rule works with, for one run of it.
	With func(*Check[S]) C
	// Lacks names the fields of the kit's own harness that a rule needs and that are nil.
	// Lacks is nil if the kit has no such fields.
	Lacks func(Needs) string
}

// Run checks each rule in a subtest of its name.
func (k Kit[S, C]) Run(t *testing.T) {
	for _, r := range k.Rules {
		t.Run(r.Name, func(t *testing.T) {
			if why := k.skip(r); why != "" {
				t.Skip(why)
			}
			if err := k.run(t.Context(), r); err != nil {
				t.Error(brief(err.Error()))
			}
		})
	}
}

// brief shortens very long words: a rule may be broken by a URL of 60 kB, and a message
// may have it several times.
func brief(s string) string {
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

// Check returns the results of told, which is called for each broken rule, joined. Rules
// that the harness cannot test are skipped.
func (k Kit[S, C]) Check(ctx context.Context, told func(rule string, err error) error) error {
	var errs []error
	for _, r := range k.Rules {
		if k.skip(r) != "" {
			continue
		}
		if err := k.run(ctx, r); err != nil {
			errs = append(errs, told(r.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Only checks the named rule.
func (k Kit[S, C]) Only(ctx context.Context, name string) error {
	for _, r := range k.Rules {
		if r.Name == name {
			return k.run(ctx, r)
		}
	}
	return fmt.Errorf("no rule %q", name)
}

// Names returns the names of all rules.
func (k Kit[S, C]) Names() []string {
	var names []string
	for _, r := range k.Rules {
		names = append(names, r.Name)
	}
	return names
}

func (k Kit[S, C]) skip(r Rule[C]) string {
	switch {
	case r.Needs&NeedsReopen != 0 && k.Harness.Reopen == nil:
		return "Harness.Reopen is nil"
	case r.Needs&NeedsCrash != 0 && k.Harness.Crash == nil:
		return "Harness.Crash is nil"
	case k.Lacks != nil:
		return k.Lacks(r.Needs)
	}
	return ""
}

func (k Kit[S, C]) run(ctx context.Context, r Rule[C]) (err error) {
	if k.Harness.Open == nil {
		return errors.New("Harness.Open is nil")
	}
	c := &Check[S]{Ctx: ctx, Harness: k.Harness}
	if c.Harness.Patience <= 0 {
		c.Harness.Patience = 30 * time.Second
	}
	defer func() {
		if c.stuck {
			return // Close might wait for the hanging call
		}
		for _, s := range c.open {
			if e := c.end(s); e != nil && err == nil {
				err = fmt.Errorf("Close: %w", e)
			}
		}
	}()
	defer Recovered(&err)
	r.Check(k.With(c))
	return nil
}

// Check is one run of a rule. Its methods end a failed rule with a panic, which the kit
// recovers, so that rules need no code for errors.
type Check[S any] struct {
	Ctx     context.Context
	Harness Harness[S] // of this run alone
	Prefix  string     // of failure messages

	open  []S
	stuck bool
}

type broken struct{ err error }

// Recovered must be deferred. It turns the panic of a failed rule into an error.
func Recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case broken:
		*err = p.err
	default:
		panic(p)
	}
}

// Failf ends the rule as broken.
func (c *Check[S]) Failf(format string, args ...any) {
	panic(broken{fmt.Errorf(c.Prefix+format, args...)})
}

// Must demands that there is no error.
func (c *Check[S]) Must(err error, format string, args ...any) {
	if err != nil {
		c.Failf("%s: %w", fmt.Sprintf(format, args...), err)
	}
}

// Is demands that err is the target.
func (c *Check[S]) Is(err, target error, format string, args ...any) {
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

// Store returns a new store.
func (c *Check[S]) Store() S {
	s, err := c.Harness.Open()
	c.Must(err, "Open")
	if any(s) == nil {
		c.Failf("Open returned nil")
	}
	c.open = append(c.open, s)
	return s
}

// Forget removes the store from those that the kit closes.
func (c *Check[S]) Forget(s S) {
	c.open = slices.DeleteFunc(c.open, func(o S) bool {
		return reflect.ValueOf(o).Comparable() && reflect.ValueOf(s).Comparable() && any(o) == any(s)
	})
}

func (c *Check[S]) end(s S) error {
	if c.Harness.Close == nil {
		return nil
	}
	return c.Harness.Close(s)
}

// Close closes a store.
func (c *Check[S]) Close(s S) {
	c.Forget(s)
	c.Must(c.end(s), "Close")
}

// Reopen returns a store with the contents of s.
func (c *Check[S]) Reopen(s S) S {
	c.Close(s)
	s, err := c.Harness.Reopen(s)
	c.Must(err, "Reopen")
	c.open = append(c.open, s)
	return s
}

// Crash returns a store with what is left of s without a Close.
func (c *Check[S]) Crash(s S) S {
	c.Forget(s)
	s, err := c.Harness.Crash(s)
	c.Must(err, "Crash")
	c.open = append(c.open, s)
	return s
}

// Twice runs f on the store and, if the harness can reopen it, once more after that: bad
// writes often show only when they are read back. It returns the open store.
func (c *Check[S]) Twice(s S, f func(S)) S {
	f(s)
	if c.Harness.Reopen == nil {
		return s
	}
	s = c.Reopen(s)
	c.Prefix = "after Reopen: "
	f(s)
	c.Prefix = ""
	return s
}

// Within fails the rule if f does not return in time.
func (c *Check[S]) Within(what string, f func()) {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer Recovered(&err)
		f()
	}()
	timer := time.NewTimer(c.Harness.Patience)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			panic(broken{err})
		}
	case <-timer.C:
		c.stuck = true
		c.Failf("%s did not return within %v; is a lock held while the caller runs?", what, c.Harness.Patience)
	}
}
