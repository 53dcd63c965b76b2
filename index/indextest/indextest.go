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

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns nil, or an error for each broken rule, joined:
// rule "its name" is broken, and how. Rules that the harness cannot test are skipped.
func Check(ctx context.Context, h Harness) error { return h.kit().Check(ctx) }

func (h Harness) kit() kit.Kit[*check] {
	if h.Same == nil {
		h.Same = same
	}
	return kit.Kit[*check]{Rules: rules(), Start: func(c *kit.Check) *check {
		if h.Open == nil || h.Read == nil {
			c.Failf("Harness.Open and Harness.Read are required")
		}
		w, err := h.Open()
		c.Must(err, "Open")
		return &check{c, h, w}
	}}
}

type rule = kit.Rule[*check]

// check is the run of one rule on one writer.
type check struct {
	*kit.Check
	h Harness
	w index.Writer
}

func rules() []rule {
	return []rule{
		{Name: "a document is there after Commit", Check: documentIsThereAfterCommit},
		{Name: "every field is kept", Check: everyFieldIsKept},
		{Name: "text is kept unchanged", Check: textIsKeptUnchanged},
		{Name: "text that is not UTF-8 does no harm", Check: textThatIsNotUTF8DoesNoHarm},
		{Name: "the last Write of a URL wins", Check: lastWriteOfURLWins},
		{Name: "Delete removes the document", Check: deleteRemovesDocument},
		{Name: "Delete removes no other document", Check: deleteRemovesNoOtherDocument},
		{Name: "a document can come back", Check: documentCanComeBack},
		{Name: "Delete of a missing document is no error", Check: deleteOfMissingDocumentIsNoError},
		{Name: "Commit of nothing is no error", Check: commitOfNothingIsNoError},
		{Name: "the caller may change the document after Write", Check: callerMayChangeDocumentAfterWrite},
		{Name: "Write does not change the document", Check: writeDoesNotChangeDocument},
		{Name: "a done context ends every method", Check: doneContextEndsEveryMethod},
		{Name: "committed documents outlive the writer", Check: committedDocumentsOutliveWriter},
		{Name: "uncommitted changes are there whole or not at all", Check: uncommittedChangesAreThereWholeOrNotAtAll},
		{Name: "random writes and deletions agree with a map", Check: randomWritesAndDeletionsAgreeWithMap},
	}
}

func (c *check) write(d index.Document) { c.Must(c.w.Write(c.Ctx, &d), "Write %s", d.URL) }

func (c *check) delete(url string) { c.Must(c.w.Delete(c.Ctx, url), "Delete %s", url) }

func (c *check) commit() { c.Must(c.w.Commit(c.Ctx), "Commit") }

func (c *check) reopen() {
	c.Need(c.h.Reopen != nil, "Harness.Reopen is nil")
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
