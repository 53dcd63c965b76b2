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
	"context"
	"testing"

	"github.com/recrawl/recrawl/internal/kit"
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

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns nil, or an error for each broken rule, joined:
// rule "its name" is broken, and how. Rules that the harness cannot test are skipped.
func Check(h Harness) error { return h.kit().Check(context.Background()) }

func (h Harness) kit() kit.Kit[*check] {
	return kit.Kit[*check]{Rules: rules(), Start: func(c *kit.Check) *check {
		k := &check{c, h, append(sample(h.Seed), h.URLs...)}
		if h.Filter == nil && h.Normalizer == nil {
			k.Failf("the harness has neither a Filter nor a Normalizer")
		}
		if h.Rewrite != nil {
			k.rewrite(First)
		}
		return k
	}}
}

// check is the run of one rule.
type check struct {
	*kit.Check
	h    Harness
	urls []string
}

// filter returns a filter for a rule about filters.
func (k *check) filter() urlfilter.Filter {
	k.Need(k.h.Filter != nil, "Harness.Filter is nil")
	return k.h.Filter()
}

// normalizer returns a normalizer for a rule about normalizers.
func (k *check) normalizer() urlfilter.Normalizer {
	k.Need(k.h.Normalizer != nil, "Harness.Normalizer is nil")
	return k.h.Normalizer()
}

func rules() []kit.Rule[*check] {
	return []kit.Rule[*check]{
		{Name: "a filter answers for any string", Check: filterIsTotal},
		{Name: "a filter gives one answer for one URL", Check: filterIsAFunction},
		{Name: "equal filters give equal answers", Check: filtersAgree},
		{Name: "a filter can be used concurrently", Check: filterIsConcurrent},
		{Name: "a filter explains any string", Check: filterExplains},
		{Name: "one rule gives one answer", Check: explanationsAgree},
		{Name: "a normalizer answers for any string", Check: normalizerIsTotal},
		{Name: "a normalizer gives one answer for one URL", Check: normalizerIsAFunction},
		{Name: "a normalizer can be used concurrently", Check: normalizerIsConcurrent},
		{Name: "a normal form is its own normal form", Check: isIdempotent},
		{Name: "a normal form is an absolute URL", Check: isAbsolute},
		{Name: "a refusal comes with an empty string", Check: refusalIsEmpty},
		{Name: "a normalizer explains any string", Check: normalizerExplains},
		{Name: "KeepsHost is right", Check: hostIsKept},
		{Name: "unchanged content is not reloaded", Check: sameIsNoChange},
		{Name: "a failed reload changes nothing", Check: badIsNoChange},
		{Name: "after a reload the answers are those of a new one", Check: reloadedIsNew},
	}
}
