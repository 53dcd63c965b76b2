package urlfiltertest_test

import (
	"errors"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recrawl/recrawl/urlfilter"
	"github.com/recrawl/recrawl/urlfilter/urlfiltertest"
)

func TestStock(t *testing.T) {
	must := func(f urlfilter.Filter, err error) urlfilter.Filter {
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	regex, err := urlfilter.NewRegex(`-^(?:file|ftp|mailto):`, `-.*(/[^/]+)/[^/]+\1/[^/]+\1/`, "> example.com", "-a", "<", "+.")
	domain, err2 := urlfilter.NewDomain("com", "example.org")
	deny, err3 := urlfilter.NewDomainDeny("com", "example.org")
	within, err4 := urlfilter.Within("h")
	for name, f := range map[string]urlfilter.Filter{
		"Regex":            must(regex, err),
		"Prefix":           urlfilter.NewPrefix("http://", "https://"),
		"Suffix":           urlfilter.NewSuffix(urlfilter.SuffixOptions{Reject: true, IgnoreCase: true, Path: true}, urlfilter.DefaultSuffixes()...),
		"Domain":           must(domain, err2),
		"DomainDeny":       must(deny, err3),
		"Within":           must(within, err4),
		"RepeatedSegments": urlfilter.RepeatedSegments{},
		"FilterFunc":       urlfilter.FilterFunc(func(u string) bool { return len(u) < 100 }),
		"zero Regex":       new(urlfilter.Regex),
		"zero Prefix":      new(urlfilter.Prefix),
		"zero Suffix":      new(urlfilter.Suffix),
		"zero Domain":      new(urlfilter.Domain),
	} {
		t.Run(name, func(t *testing.T) {
			urlfiltertest.Run(t, urlfiltertest.Harness{Filter: func() urlfilter.Filter { return f }})
		})
	}
	for name, b := range map[string]urlfilter.Basic{
		"Basic":       {},
		"BasicAll":    {Schemes: []string{"http", "https", "ftp", "file", "x"}},
		"BasicSlash":  {MergeSlashes: true},
		"BasicNoHTTP": {Schemes: []string{"ftp"}},
	} {
		t.Run(name, func(t *testing.T) {
			urlfiltertest.Run(t, urlfiltertest.Harness{Normalizer: func() urlfilter.Normalizer { return b }, URLs: []string{"ftp://h/%41"}, Seed: 1})
		})
	}
}

type normalizerFunc func(scope urlfilter.Scope, u string) (string, error)

func (f normalizerFunc) Normalize(scope urlfilter.Scope, u string) (string, error) {
	return f(scope, u)
}

func TestMutants(t *testing.T) {
	var calls, made atomic.Int64
	filter := func(f urlfilter.FilterFunc) urlfiltertest.Harness {
		return urlfiltertest.Harness{Filter: func() urlfilter.Filter { return f }}
	}
	basic := func(f func(b urlfilter.Basic, u string) (string, error)) urlfiltertest.Harness {
		b := urlfilter.Basic{}
		return urlfiltertest.Harness{Normalizer: func() urlfilter.Normalizer {
			return normalizerFunc(func(_ urlfilter.Scope, u string) (string, error) { return f(b, u) })
		}}
	}
	var buffer atomic.Pointer[string]
	for _, c := range []struct {
		name, rule string
		h          urlfiltertest.Harness
	}{
		{"filter slices blindly", "a filter answers for any string", filter(func(u string) bool { return u[:4] == "http" })},
		{"filter trusts url.Parse", "a filter answers for any string", filter(func(u string) bool {
			p, _ := url.Parse(u)
			return p.Host != ""
		})},
		{"filter has moods", "a filter gives one answer for one URL", filter(func(u string) bool { return calls.Add(1)%3 > 0 })},
		{"filter has a quota", "a filter gives one answer for one URL", urlfiltertest.Harness{Filter: func() urlfilter.Filter {
			var calls atomic.Int64
			return urlfilter.FilterFunc(func(string) bool { return calls.Add(1) < 1000 })
		}}},
		{"filters differ", "equal filters give equal answers", urlfiltertest.Harness{Filter: func() urlfilter.Filter {
			n := made.Add(1)
			return urlfilter.FilterFunc(func(u string) bool { return n%2 == 0 })
		}}},
		{"filter answers for its neighbour", "a filter may be asked from many goroutines", urlfiltertest.Harness{Filter: newNeighbour}},
		{"normalizer slices blindly", "a normalizer answers for any string", basic(func(b urlfilter.Basic, u string) (string, error) { return b.Normalize("", u[1:]) })},
		{"normalizer panics in one scope", "a normalizer answers for any string", urlfiltertest.Harness{Normalizer: func() urlfilter.Normalizer {
			return normalizerFunc(func(scope urlfilter.Scope, u string) (string, error) {
				if scope == urlfilter.LinkDB {
					panic("unknown scope")
				}
				return urlfilter.Basic{}.Normalize(scope, u)
			})
		}}},
		{"normalizer counts", "a normalizer gives one answer for one URL", basic(func(b urlfilter.Basic, u string) (string, error) {
			if calls.Add(1)%2 == 0 {
				return b.Normalize("", u)
			}
			return u, nil
		})},
		{"normalizer has one buffer", "a normalizer may be asked from many goroutines", basic(func(b urlfilter.Basic, u string) (string, error) {
			buffer.Store(&u)
			runtime.Gosched() // to meet another
			return b.Normalize("", *buffer.Load())
		})},
		{"normalizer decodes once too often", "a normal form is its own normal form", basic(func(b urlfilter.Basic, u string) (string, error) {
			form, err := b.Normalize("", u)
			return strings.Replace(form, "%25", "%", 1), err
		})},
		{"normalizer cuts one slash", "a normal form is its own normal form", basic(func(_ urlfilter.Basic, u string) (string, error) {
			return strings.TrimSuffix(u, "/"), nil
		})},
		{"normalizer appends", "a normal form is its own normal form", basic(func(b urlfilter.Basic, u string) (string, error) {
			form, err := b.Normalize("", u)
			if err == nil {
				form += "?"
			}
			return form, err
		})},
		{"normalizer drops the scheme", "a normal form is an absolute URL", basic(func(b urlfilter.Basic, u string) (string, error) {
			form, err := b.Normalize("", u)
			return strings.TrimPrefix(form, "http:"), err
		})},
		{"normalizer decodes everything", "a normal form is an absolute URL", basic(func(b urlfilter.Basic, u string) (string, error) {
			form, err := b.Normalize("", u)
			return strings.ReplaceAll(form, "%25", "%"), err
		})},
		{"refusal repeats the URL", "a refusal comes with an empty string", basic(func(b urlfilter.Basic, u string) (string, error) {
			if form, err := b.Normalize("", u); err == nil {
				return form, nil
			}
			return u, errors.New("refused")
		})},
		{"refusal without an error", "a refusal comes with an empty string", basic(func(b urlfilter.Basic, u string) (string, error) {
			form, _ := b.Normalize("", u)
			return form, nil
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := urlfiltertest.Check(c.h)
			if !slices.Contains(broken(err), c.rule) {
				t.Errorf("broken are %q, want %q among them", broken(err), c.rule)
			}
		})
	}
}

// neighbour hands its answer through a field, as a filter with a buffer of its
// own does.
type neighbour struct{ n atomic.Int64 }

func newNeighbour() urlfilter.Filter { return new(neighbour) }

func (f *neighbour) Accept(u string) bool {
	busy := f.n.Add(1) > 1
	ok := strings.HasPrefix(u, "http")
	runtime.Gosched() // to meet another
	f.n.Add(-1)
	return ok != busy
}

// broken returns the names of the rules that err says were broken.
func broken(err error) (names []string) {
	if err == nil {
		return nil
	}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var r *urlfiltertest.Error
		if errors.As(e, &r) {
			names = append(names, r.Rule)
		}
	}
	return names
}
