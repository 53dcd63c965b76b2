// Package parsetest tests implementations of [parse.Parser] against the rules of
// its contract. Call [Run] from a test of the parser:
//
//	func TestParser(t *testing.T) {
//		parsetest.Run(t, parsetest.Harness{
//			New:       func() parse.Parser { return &htmlparse.Parser{} },
//			Documents: []page.Content{{URL: "http://h/", Type: "text/html", Body: body}},
//		})
//	}
//
// The parser gets the documents of the harness and, with the media type of the
// first, those of [Hostile]. What it should find in a document is for its own
// tests to say.
package parsetest

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
)

// Harness makes the parsers to test. New and Documents are required. If another
// field is nil, the rules that need it are skipped.
type Harness struct {
	// New returns a parser that is ready to use.
	New func() parse.Parser

	// Documents are contents that the parser reads without error, at least one.
	// They should have text, and links if the format has them. The URL of the
	// first is also used for hostile content.
	Documents []page.Content

	// Limited returns a parser that keeps at most that many links of a page.
	// The rule needs a document with at least two links.
	Limited func(outlinks int) parse.Parser

	// Size is the length of each hostile document in bytes; zero means 64 KiB.
	Size int

	// Patience is how long one call may take; zero means 30 seconds. A call
	// that exceeds it is abandoned.
	Patience time.Duration
}

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns nil, or an error for each broken rule, joined:
// rule "its name" is broken, and how. Rules that the harness cannot test are skipped.
func Check(ctx context.Context, h Harness) error { return h.kit().Check(ctx) }

func (h Harness) kit() kit.Kit[*check] {
	if h.Size <= 0 {
		h.Size = 64 << 10
	}
	return kit.Kit[*check]{Rules: rules(), Start: func(c *kit.Check) *check {
		if h.New == nil || len(h.Documents) == 0 {
			c.Failf("Harness.New and Harness.Documents are required")
		}
		c.Patience = h.Patience
		return &check{c, h}
	}}
}

func rules() []kit.Rule[*check] {
	return []kit.Rule[*check]{
		{Name: "it reads its documents", Check: readsDocuments},
		{Name: "it neither panics nor hangs", Check: ends},
		{Name: "links are absolute", Check: absolute},
		{Name: "links are distinct", Check: distinct},
		{Name: "strings are UTF-8", Check: isUTF8},
		{Name: "what it returns is bounded", Check: bounded},
		{Name: "the limit on links holds", Check: limitHolds},
		{Name: "the content is not changed", Check: notChanged},
		{Name: "the body is not kept", Check: notKept},
		{Name: "same content, same result", Check: deterministic},
		{Name: "an error fails that page only", Check: independent},
		{Name: "it can be used concurrently", Check: concurrent},
		{Name: "a done context is noticed", Check: noticesDone},
		{Name: "a context that ends meanwhile is noticed", Check: noticesEnd},
	}
}

// check is the run of one rule.
type check struct {
	*kit.Check
	h Harness
}

// read calls the parser on a copy of the content.
func (k *check) read(ctx context.Context, p parse.Parser, c page.Content) (page.Parsed, error) {
	c.Body = append([]byte(nil), c.Body...)
	return k.readInPlace(ctx, p, &c)
}

// readInPlace calls the parser. A call that panics or does not end breaks the rule.
func (k *check) readInPlace(ctx context.Context, p parse.Parser, c *page.Content) (parsed page.Parsed, err error) {
	k.Within("Parse", func() { parsed, err = p.Parse(ctx, c) })
	return parsed, err
}

// each calls f with every document that a parser accepts, and what it made of it.
func (k *check) each(f func(c page.Content, got page.Parsed)) {
	p := k.h.New()
	for _, c := range k.all() {
		if got, err := k.read(k.Ctx, p, c); err == nil {
			f(c, got)
		}
	}
}

// all yields the documents of the harness and the hostile ones, whose names begin the
// messages about them.
func (k *check) all() iter.Seq2[string, page.Content] {
	return func(yield func(string, page.Content) bool) {
		for i, c := range k.h.Documents {
			name := fmt.Sprintf("document %d", i)
			if k.Prefix = name + ": "; !yield(name, c) {
				return
			}
		}
		for name, body := range Hostile(k.h.Size) {
			if k.Prefix = name + ": "; !yield(name, k.hostile(body)) {
				return
			}
		}
		k.Prefix = ""
	}
}

func (k *check) hostile(body []byte) page.Content {
	return page.Content{URL: k.h.Documents[0].URL, Type: k.h.Documents[0].Type, Body: body}
}
