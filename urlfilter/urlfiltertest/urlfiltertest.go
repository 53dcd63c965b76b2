// Package urlfiltertest tests implementations of [urlfilter.Filter] and
// [urlfilter.Normalizer] against the laws of their contracts. Call [Run] from a
// test:
//
//	func TestFilter(t *testing.T) {
//		urlfiltertest.Run(t, urlfiltertest.Harness{
//			Filter: func() urlfilter.Filter { return myFilter{} },
//		})
//	}
package urlfiltertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/recrawl/recrawl/urlfilter"
)

// Harness makes the filters or normalizers to test. At least one field is
// required; the rules of a nil field are skipped.
type Harness struct {
	// Filter returns a filter, an equal one on each call.
	Filter func() urlfilter.Filter

	// Normalizer returns a normalizer, an equal one on each call.
	Normalizer func() urlfilter.Normalizer

	// Rewrite replaces the content that Filter and Normalizer read, if they
	// return [urlfilter.Reloader]s. The content is [First] to begin with.
	Rewrite func(c Content) error

	// URLs are tried in addition to those of the kit.
	URLs []string

	// Seed is the seed of the random checks; zero is a seed like any other. Messages
	// name the string, not the seed.
	Seed uint64
}

// Content is what a [urlfilter.Reloader] reads.
type Content int

const (
	First Content = iota // valid rules
	Other                // other rules, with different answers for some of the URLs
	Bad                  // invalid rules
)

// Error says which rule was broken, and how.
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
	if h.Filter == nil && h.Normalizer == nil {
		t.Fatal("the harness has neither a Filter nor a Normalizer")
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if why := r.skip(h); why != "" {
				t.Skip(why)
			}
			if err := r.run(h); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check is [Run] without a test: it returns an [*Error] for each broken rule, joined,
// or nil. Rules that the harness cannot test are skipped.
func Check(h Harness) error {
	var errs []error
	for _, r := range rules {
		if r.skip(h) == "" {
			if err := r.run(h); err != nil {
				errs = append(errs, &Error{r.name, err})
			}
		}
	}
	return errors.Join(errs...)
}

// rule is about a filter, about a normalizer, or about all that can be reloaded.
type rule struct {
	name       string
	filter     func(f func() urlfilter.Filter, urls []string) error
	normalizer func(n func() urlfilter.Normalizer, urls []string) error
	reloader   func(h Harness, urls []string) error
}

func (r rule) skip(h Harness) string {
	switch {
	case r.filter != nil && h.Filter == nil:
		return "Harness.Filter is nil"
	case r.normalizer != nil && h.Normalizer == nil:
		return "Harness.Normalizer is nil"
	case r.reloader != nil && h.Rewrite == nil:
		return "Harness.Rewrite is nil"
	}
	return ""
}

func (r rule) run(h Harness) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	urls := append(sample(h.Seed), h.URLs...)
	if h.Rewrite != nil {
		if err := h.Rewrite(First); err != nil {
			return err
		}
	}
	if r.reloader != nil {
		return r.reloader(h, urls)
	}
	if r.filter != nil {
		return r.filter(h.Filter, urls)
	}
	return r.normalizer(h.Normalizer, urls)
}
