package urlfiltertest_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recrawl/recrawl/internal/kit"
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
	domain, err2 := urlfilter.ParseDomain(strings.NewReader("com\nexample.org"), urlfilter.Options{})
	deny, err3 := urlfilter.ParseDomainDeny(strings.NewReader("com\nexample.org"), urlfilter.Options{})
	within, err4 := urlfilter.Within("h")
	for name, f := range map[string]urlfilter.Filter{
		"Regex":           must(regex, err),
		"Prefix":          urlfilter.NewPrefix("http://", "https://"),
		"Suffix":          urlfilter.NewSuffix(urlfilter.SuffixOptions{Reject: true, IgnoreCase: true, Path: true}, urlfilter.DefaultSuffixes()...),
		"Domain":          must(domain, err2),
		"DomainDeny":      must(deny, err3),
		"Within":          must(within, err4),
		"FilterFunc":      urlfilter.FilterFunc(func(u string) bool { return len(u) < 100 }),
		"empty Regex":     must(urlfilter.NewRegex()),
		"empty Prefix":    urlfilter.NewPrefix(),
		"empty Suffix":    urlfilter.NewSuffix(urlfilter.SuffixOptions{}),
		"empty Domain":    must(urlfilter.ParseDomain(strings.NewReader(""), urlfilter.Options{})),
		"loops":           must(urlfilter.NewRegex(`-.*(/[^/]+)/[^/]+\1/[^/]+\1/`, `-.*(/.+?)/.*?\1/.*?\1/`, "+.")),
		"Validator":       urlfilter.NewValidator(),
		"Traps":           urlfilter.Traps{},
		"strict Traps":    urlfilter.Traps{MaxDepth: 2, MaxRepeats: 1, MaxParams: 1, MaxSame: 1, MaxQuery: 20},
		"empty Automaton": must(urlfilter.ParseAutomaton(strings.NewReader(""), urlfilter.Options{})),
		"empty Fast":      must(urlfilter.ParseFast(strings.NewReader(""), urlfilter.FastOptions{})),
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

func TestStockNormalizers(t *testing.T) {
	must := func(n urlfilter.Normalizer, err error) urlfilter.Normalizer {
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var o urlfilter.Options
	regex, err := urlfilter.NewRegexNormalizer(o, urlfilter.DefaultRegexRules()...)
	host, err2 := urlfilter.ParseHostNormalizer(strings.NewReader("h example.org\nexample.com h\n*.example.org example.org\n"), o)
	protocol, err3 := urlfilter.ParseProtocolNormalizer(strings.NewReader("h https\n*.example.com http\n"), o)
	slash, err4 := urlfilter.ParseSlashNormalizer(strings.NewReader("h +\nexample.com -\n"), o)
	all := []urlfilter.Normalizer{
		urlfilter.Basic{}, must(regex, err), must(host, err2), must(protocol, err3), must(slash, err4), urlfilter.NewQueryNormalizer(urlfilter.Options{}),
	}
	for name, n := range map[string]urlfilter.Normalizer{
		"BasicAndRegex": urlfilter.NewChain(0, all[:2]...),
		"Host":          host,
		"Protocol":      protocol,
		"Slash":         slash,
		"Query":         urlfilter.NewQueryNormalizer(urlfilter.Options{}),
		"Ajax":          urlfilter.NewAjaxNormalizer(urlfilter.Options{}),
		"SessionIDs":    urlfilter.SessionIDs{},
		"BasicSessions": urlfilter.NewChain(0, urlfilter.Basic{}, urlfilter.SessionIDs{}),
		"Pass":          urlfilter.NewChain(0),
		"All":           urlfilter.NewChain(0, all...),
		"Scoped": urlfilter.NewScoped(map[urlfilter.Scope]urlfilter.Normalizer{
			urlfilter.AnyScope: urlfilter.NewChain(0, append([]urlfilter.Normalizer{urlfilter.NewAjaxNormalizer(urlfilter.Options{})}, all...)...),
			urlfilter.Indexer:  urlfilter.NewAjaxNormalizer(urlfilter.Options{}),
		}),
	} {
		t.Run(name, func(t *testing.T) {
			urlfiltertest.Run(t, urlfiltertest.Harness{Normalizer: func() urlfilter.Normalizer { return n }, Seed: 2})
		})
	}
}

// Filters of every format, from files that are rewritten.
func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.txt")
	rewrite := func(first, other, bad string) func(urlfiltertest.Content) error {
		return func(c urlfiltertest.Content) error {
			if bad == "" && c == urlfiltertest.Bad { // every text is good
				return errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o777))
			}
			return errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte([]string{first, other, bad}[c]), 0o666))
		}
	}
	for name, c := range map[string]struct {
		parse   func(io.Reader, urlfilter.Options) (urlfilter.Filter, error)
		rewrite func(urlfiltertest.Content) error
	}{
		"Regex":      {urlfilter.ParseRegex, rewrite("-\\.gif$\n> example.com\n-a\n<\n+^http", "+.", "+[")},
		"Automaton":  {urlfilter.ParseAutomaton, rewrite("-.*\\.gif\n+http.*", "+@", "+<a>")},
		"Prefix":     {urlfilter.ParsePrefix, rewrite("http://", "https://", "")},
		"Suffix":     {urlfilter.ParseSuffix, rewrite("+IP\n.gif\n.html", "-\n/", "")},
		"Domain":     {urlfilter.ParseDomain, rewrite("com\nexample.org", "h", "a b")},
		"DomainDeny": {urlfilter.ParseDomainDeny, rewrite("com\nexample.org", "h", "a b")},
		"Fast": {func(r io.Reader, _ urlfilter.Options) (urlfilter.Filter, error) {
			return urlfilter.ParseFast(r, urlfilter.FastOptions{MaxPath: 100})
		}, rewrite("Domain com\nDenyPath a", "Host h\nDenyPathQuery .*", "Deny")},
	} {
		t.Run(name, func(t *testing.T) {
			urlfiltertest.Run(t, urlfiltertest.Harness{
				Filter: func() urlfilter.Filter {
					f, err := urlfilter.OpenFilter(path, c.parse, urlfilter.Options{})
					if err != nil {
						t.Fatal(err)
					}
					return f
				},
				Rewrite: c.rewrite,
				URLs:    []string{"https://h/", "http://www.example.com/a.gif", "http://h/a?b"},
			})
		})
	}
}

type normalizerFunc func(scope urlfilter.Scope, u string) (string, error)

func (f normalizerFunc) Normalize(scope urlfilter.Scope, u string) (string, error) {
	return f(scope, u)
}

// TestRulesFindFaults runs over filters and normalizers with one fault each the rule that
// must find it.
func TestRulesFindFaults(t *testing.T) {
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
	var all []kit.Mutant[urlfiltertest.Harness]
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
		{"filter answers for its neighbour", "a filter can be used concurrently", urlfiltertest.Harness{Filter: newNeighbour}},
		{"filter explains blindly", "a filter explains any string", urlfiltertest.Harness{Filter: func() urlfilter.Filter {
			return explaining{func(u string) string { return u[:4] }}
		}}},
		{"filter explains in moods", "a filter explains any string", urlfiltertest.Harness{Filter: func() urlfilter.Filter {
			return explaining{func(string) string { return fmt.Sprint(calls.Add(1)) }}
		}}},
		{"filter blames one rule for all", "one rule gives one answer", urlfiltertest.Harness{Filter: func() urlfilter.Filter {
			return explaining{func(string) string { return "rule 1" }}
		}}},
		{"reload that does nothing", "after a reload the answers are those of a new one", reloading(func(r *reloadable) (bool, error) {
			return r.changed() && r.source.Load() != bad, r.err()
		})},
		{"reload that is always new", "unchanged content is not reloaded", reloading(func(r *reloadable) (bool, error) {
			return true, r.take()
		})},
		{"reload that says nothing", "after a reload the answers are those of a new one", reloading(func(r *reloadable) (bool, error) {
			return false, r.take()
		})},
		{"reload that forgets", "a failed reload changes nothing", reloading(func(r *reloadable) (bool, error) {
			changed := r.changed()
			r.rules.Store(r.source.Load())
			return changed && r.err() == nil, r.err()
		})},
		{"reload that hides an error", "a failed reload changes nothing", reloading(func(r *reloadable) (bool, error) {
			if r.err() != nil {
				return false, nil
			}
			changed := r.changed()
			return changed, r.take()
		})},
		{"no reloader", "unchanged content is not reloaded", urlfiltertest.Harness{
			Filter:  func() urlfilter.Filter { return urlfilter.NewValidator() },
			Rewrite: func(urlfiltertest.Content) error { return nil },
		}},
		{"normalizer explains blindly", "a normalizer explains any string", urlfiltertest.Harness{Normalizer: func() urlfilter.Normalizer {
			return explainingNormalizer{}
		}}},
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
		{"normalizer has one buffer", "a normalizer can be used concurrently", basic(func(b urlfilter.Basic, u string) (string, error) {
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
		{"normalizer drops a www. that it keeps", "KeepsHost is right", urlfiltertest.Harness{Normalizer: func() urlfilter.Normalizer { return liar{} }}},
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
		all = append(all, kit.Mutant[urlfiltertest.Harness]{Fault: c.name, Rule: c.rule, Harness: c.h})
	}
	kit.Catch(t, urlfiltertest.Kit, all, nil)
}

// liar says that it keeps every host.
type liar struct{ urlfilter.Basic }

func (l liar) Normalize(scope urlfilter.Scope, u string) (string, error) {
	form, err := l.Basic.Normalize(scope, u)
	return strings.Replace(form, "://www.", "://", 1), err
}

type explaining struct{ explain func(u string) string }

func (f explaining) Accept(u string) bool    { return strings.HasPrefix(u, "http") }
func (f explaining) Explain(u string) string { return f.explain(u) }

type explainingNormalizer struct{ urlfilter.Basic }

func (n explainingNormalizer) Explain(u string) string { return u[:4] }

// reloadable accepts what begins with its rules, which it takes from a source.
type reloadable struct {
	source *atomic.Value // string
	rules  atomic.Value
	reload func(*reloadable) (bool, error)
}

const bad = "\x00bad"

func (r *reloadable) Accept(u string) bool  { return strings.HasPrefix(u, r.rules.Load().(string)) }
func (r *reloadable) Reload() (bool, error) { return r.reload(r) }
func (r *reloadable) changed() bool         { return r.source.Load() != r.rules.Load() }
func (r *reloadable) err() error {
	if r.source.Load() == bad {
		return errors.New("bad")
	}
	return nil
}

func (r *reloadable) take() error {
	if err := r.err(); err != nil {
		return err
	}
	r.rules.Store(r.source.Load())
	return nil
}

func reloading(f func(*reloadable) (bool, error)) urlfiltertest.Harness {
	var source atomic.Value
	return urlfiltertest.Harness{
		Filter: func() urlfilter.Filter {
			r := &reloadable{source: &source, reload: f}
			r.rules.Store(source.Load())
			return r
		},
		Rewrite: func(c urlfiltertest.Content) error {
			source.Store([]string{"http:", "https:", bad}[c])
			return nil
		},
	}
}

// A reloader that keeps the contract breaks no rule.
func TestReloading(t *testing.T) {
	urlfiltertest.Run(t, reloading(func(r *reloadable) (bool, error) {
		changed := r.changed() && r.err() == nil
		return changed, r.take()
	}))
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
