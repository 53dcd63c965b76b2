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
	"fmt"
	"testing"

	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/internal/kit"
)

// Harness makes the writers to test and shows what they have written. Open and
// Read are required. If Reopen is nil, the rules that need it are skipped.
type Harness struct {
	// Open returns a writer to a new, empty index, another one on each call. It
	// also arranges for closing what has to be closed after the test.
	Open func() (index.Writer, error)

	// Read returns the documents of the index by URL, as a search would find
	// them. It is called after Commit or Reopen only.
	Read func(w index.Writer) (map[string]index.Document, error)

	// Reopen returns a new writer to the index of w. It does not close w, which
	// is not used again, as if its process had been killed.
	Reopen func(w index.Writer) (index.Writer, error)

	// Same compares a document with what Read returned. If it is nil, all fields
	// must be equal; for an index that keeps only some fields, compare those.
	Same func(want, got index.Document) error

	// Seed is the seed of the random check. Messages name the seed and the step.
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

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns an [*Error] for each broken rule, joined,
// or nil. Rules that the harness cannot test are skipped.
func Check(ctx context.Context, h Harness) error {
	return h.kit().Check(ctx, func(rule string, err error) error { return &Error{Rule: rule, Err: err} })
}

func (h Harness) kit() kit.Kit[index.Writer, *check] {
	if h.Same == nil {
		h.Same = same
	}
	return kit.Kit[index.Writer, *check]{
		Harness: kit.Harness[index.Writer]{Open: h.Open, Reopen: h.Reopen},
		Rules:   rules,
		With: func(c *kit.Check[index.Writer]) *check {
			if h.Read == nil {
				c.Failf("Harness.Read is nil")
			}
			return &check{c, h, c.Store()}
		},
	}
}

type rule = kit.Rule[*check]

const needsReopen = kit.NeedsReopen

// check is the run of one rule on one writer.
type check struct {
	*kit.Check[index.Writer]
	h Harness
	w index.Writer
}

func (c *check) write(d index.Document) { c.Must(c.w.Write(c.Ctx, &d), "Write %s", d.URL) }

func (c *check) delete(url string) { c.Must(c.w.Delete(c.Ctx, url), "Delete %s", url) }

func (c *check) commit() { c.Must(c.w.Commit(c.Ctx), "Commit") }

func (c *check) reopen() {
	w, err := c.h.Reopen(c.w)
	c.Must(err, "Reopen")
	c.w = w
}

func (c *check) read() map[string]index.Document {
	docs, err := c.h.Read(c.w)
	c.Must(err, "Read")
	return docs
}

// holds demands that the index has exactly these documents.
func (c *check) holds(when string, want ...index.Document) {
	docs := c.read()
	for _, d := range want {
		got, ok := docs[d.URL]
		if !ok {
			c.Failf("%s: no document of %s", when, d.URL)
		}
		if err := c.h.Same(d, got); err != nil {
			c.Failf("%s: %s: %w", when, d.URL, err)
		}
		delete(docs, d.URL)
	}
	for url := range docs {
		c.Failf("%s: there is still a document of %s", when, url)
	}
}
