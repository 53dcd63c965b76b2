// Package indextest tests implementations of [index.Writer] against the rules of
// its contract. Call [Run] from a test of the writer:
//
//	func TestWriter(t *testing.T) {
//		indextest.Run(t, indextest.Harness{
//			Open: func() (index.Writer, error) { return mywriter.New(t.TempDir()) },
//			Read: func(w index.Writer) (map[string]index.Document, error) { return w.(*mywriter.Writer).All() },
//		})
//	}
//
// No kit proves durability: Harness.Reopen shows only that nothing waits for an
// orderly end.
package indextest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/recrawl/recrawl/index"
)

// Harness makes the writers to test and shows what they have written. Open and
// Read are required; a nil Reopen says that the writer cannot do it, and the
// rules that need it are skipped by name.
type Harness struct {
	// Open returns a writer into a new and empty index. Every call makes another
	// one. What has to be closed after the test, Open arranges for.
	Open func() (index.Writer, error)

	// Read returns the documents of the index by their URL, as someone who
	// searches would see them. It is called after Commit or Reopen only.
	Read func(w index.Writer) (map[string]index.Document, error)

	// Reopen returns a writer into the index of w, which is left as it is and not
	// used again, as if its process had been killed.
	Reopen func(w index.Writer) (index.Writer, error)

	// Same compares a document with what came back. Nil demands that all fields
	// are equal; an index that keeps some of them only compares those.
	Same func(want, got index.Document) error

	// Seed begins the random check. Messages name the seed and the step.
	Seed uint64
}

// Error says which rule a writer broke, and how.
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
			if r.reopen && h.Reopen == nil {
				t.Skip("Harness.Reopen is nil")
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
	for _, r := range rules {
		if r.reopen && h.Reopen == nil {
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
	name   string
	reopen bool // needs Harness.Reopen
	check  func(*check)
}

func (r rule) run(ctx context.Context, h Harness) (err error) {
	if h.Open == nil || h.Read == nil {
		return errors.New("Harness.Open or Harness.Read is nil")
	}
	if h.Same == nil {
		h.Same = same
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case broken:
			err = p.err
		default:
			panic(p)
		}
	}()
	c := &check{ctx: ctx, h: h}
	c.w, err = h.Open()
	if err == nil && c.w == nil {
		err = errors.New("no writer")
	}
	c.must(err, "Open")
	r.check(c)
	return nil
}

// check is the run of one rule on one writer. Its methods end the rule with a
// panic that run recovers, so that a rule reads as what it demands.
type check struct {
	ctx context.Context
	h   Harness
	w   index.Writer
}

type broken struct{ err error }

func (c *check) failf(format string, args ...any) { panic(broken{fmt.Errorf(format, args...)}) }

func (c *check) must(err error, what string) {
	if err != nil {
		c.failf("%s: %w", what, err)
	}
}

func (c *check) write(d index.Document) { c.must(c.w.Write(c.ctx, &d), "Write "+d.URL) }

func (c *check) delete(url string) { c.must(c.w.Delete(c.ctx, url), "Delete "+url) }

func (c *check) commit() { c.must(c.w.Commit(c.ctx), "Commit") }

func (c *check) reopen() {
	w, err := c.h.Reopen(c.w)
	c.must(err, "Reopen")
	c.w = w
}

func (c *check) read() map[string]index.Document {
	docs, err := c.h.Read(c.w)
	c.must(err, "Read")
	return docs
}

// holds demands that the index has exactly these documents.
func (c *check) holds(when string, want ...index.Document) {
	docs := c.read()
	for _, d := range want {
		got, ok := docs[d.URL]
		if !ok {
			c.failf("%s: no document of %s", when, d.URL)
		}
		if err := c.h.Same(d, got); err != nil {
			c.failf("%s: %s: %w", when, d.URL, err)
		}
		delete(docs, d.URL)
	}
	for url := range docs {
		c.failf("%s: there is a document of %s", when, url)
	}
}
