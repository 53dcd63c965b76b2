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
	"errors"
	"fmt"
	"testing"
	"time"

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

// Error says which rule a parser broke, and how.
type Error struct {
	Rule string
	Err  error
}

// Error begins with the rule.
func (e *Error) Error() string { return fmt.Sprintf("rule %q is broken: %v", e.Rule, e.Err) }

// Unwrap returns how it was broken.
func (e *Error) Unwrap() error { return e.Err }

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) {
	for _, r := range rules {
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

// Check is [Run] without a test: it returns an [*Error] for each broken rule, joined,
// or nil. Rules that the harness cannot test are skipped.
func Check(ctx context.Context, h Harness) error {
	var errs []error
	for _, r := range rules {
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
	name    string
	limited bool
	check   func(*kit) error
}

func (r rule) skip(h Harness) string {
	if r.limited && h.Limited == nil {
		return "Harness.Limited is nil"
	}
	return ""
}

func (r rule) run(ctx context.Context, h Harness) error {
	if h.New == nil {
		return errors.New("Harness.New is nil")
	}
	if len(h.Documents) == 0 {
		return errors.New("Harness.Documents is empty")
	}
	if h.Size <= 0 {
		h.Size = 64 << 10
	}
	if h.Patience <= 0 {
		h.Patience = 30 * time.Second
	}
	return r.check(&kit{ctx: ctx, h: h})
}

// kit is what a rule works with.
type kit struct {
	ctx context.Context
	h   Harness
}

// read calls the parser on a copy of the content. If the call panics or does not
// end, the error is errBroken.
func (k *kit) read(ctx context.Context, p parse.Parser, c page.Content) (page.Parsed, error) {
	c.Body = append([]byte(nil), c.Body...)
	return k.readInPlace(ctx, p, &c)
}

// errBroken distinguishes a parser that misbehaves from one that returns an
// error.
var errBroken = errors.New("broken")

type answer struct {
	parsed page.Parsed
	err    error
}

func (k *kit) readInPlace(ctx context.Context, p parse.Parser, c *page.Content) (page.Parsed, error) {
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if r := recover(); r != nil {
				a.err = fmt.Errorf("%w: panic: %v", errBroken, r)
			}
			done <- a
		}()
		a.parsed, a.err = p.Parse(ctx, c)
	}()
	timer := time.NewTimer(k.h.Patience)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.parsed, a.err
	case <-timer.C:
		return page.Parsed{}, fmt.Errorf("%w: no result within %v", errBroken, k.h.Patience)
	}
}

// each calls f with every document and what a parser made of it.
func (k *kit) each(f func(name string, c page.Content, got page.Parsed) error) error {
	p := k.h.New()
	for name, c := range k.all() {
		got, err := k.read(k.ctx, p, c)
		if errors.Is(err, errBroken) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			continue // the parser may refuse it
		}
		if err := f(name, c, got); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// all yields the documents of the harness and the hostile ones.
func (k *kit) all() func(yield func(string, page.Content) bool) {
	return func(yield func(string, page.Content) bool) {
		for i, c := range k.h.Documents {
			if !yield(fmt.Sprintf("document %d", i), c) {
				return
			}
		}
		for name, body := range Hostile(k.h.Size) {
			if !yield(name, k.hostile(body)) {
				return
			}
		}
	}
}

func (k *kit) hostile(body []byte) page.Content {
	return page.Content{URL: k.h.Documents[0].URL, Type: k.h.Documents[0].Type, Body: body}
}
