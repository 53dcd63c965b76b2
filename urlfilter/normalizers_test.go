package urlfilter

import (
	"errors"
	neturl "net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	sampleHosts = `# comment
*.example.com example.com
www.example.net example.net
example.org www.example.org
`
	sampleProtocols = `# comment
example.org	http
example.net http
example.io	https
example.nl https
*.example.com https
`
	badProtocols  = "invalid-rule1.example.top\n\thttp\ninvalid-rule2.example.top https http\ninvalid-rule3.example.top @mail\n"
	sampleSlashes = "# comment\nwww.example.org +\nwww.example.net -\n"
)

func parseWith[N Normalizer](tb testing.TB, parse func(r *strings.Reader) (N, error), text string) N {
	tb.Helper()
	n, err := parse(strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func hosts(tb testing.TB, text string, o Options) Normalizer {
	return parseWith(tb, func(r *strings.Reader) (Normalizer, error) { return ParseHostNormalizer(r, o) }, text)
}

func protocols(tb testing.TB, text string, o Options) Normalizer {
	return parseWith(tb, func(r *strings.Reader) (Normalizer, error) { return ParseProtocolNormalizer(r, o) }, text)
}

func slashes(tb testing.TB, text string, o Options) Normalizer {
	return parseWith(tb, func(r *strings.Reader) (Normalizer, error) { return ParseSlashNormalizer(r, o) }, text)
}

func allNormalizers(tb testing.TB, o Options) []Normalizer {
	return []Normalizer{
		ajaxNormalizer(o), Basic{NutchCompat: o.NutchCompat}, queryNormalizer(o), chain{},
		hosts(tb, sampleHosts, o), protocols(tb, sampleProtocols, o), slashes(tb, sampleSlashes, o),
	}
}

type normalizerPair struct{ in, out string } // out is empty if unchanged

func checkPairs(t *testing.T, n Normalizer, scope Scope, pairs []normalizerPair) {
	t.Helper()
	for _, p := range pairs {
		want := p.out
		if want == "" {
			want = p.in
		}
		if got, err := n.Normalize(scope, p.in); got != want || err != nil {
			t.Errorf("%v: %q: got %q, %v, want %q", n, p.in, got, err, want)
		}
		if e, ok := n.(Explainer); ok && scope != Indexer {
			if rule := e.Explain(p.in); (rule == "") != (want == p.in) {
				t.Errorf("%v: %q: the rule is %q", n, p.in, rule)
			}
		}
	}
}

// What Nutch's tests of its normalizers expect, which holds by default too.
func TestNormalizersNutch(t *testing.T) {
	for _, o := range []Options{{}, {NutchCompat: true}} {
		checkPairs(t, chain{}, AnyScope, []normalizerPair{{"http://www.example.com/test/..//", ""}})
		ajax := ajaxNormalizer(o)
		checkPairs(t, ajax, AnyScope, []normalizerPair{
			{"http://example.org/#!k=v", "http://example.org/?_escaped_fragment_=k=v"},
			{"http://example.org/#!k=v&something=is wrong", "http://example.org/?_escaped_fragment_=k=v%26something=is%20wrong"},
			{"http://example.org/path.html?queryparam=queryvalue#!key1=value1&key2=value2",
				"http://example.org/path.html?queryparam=queryvalue&_escaped_fragment_=key1=value1%26key2=value2"},
			{"http://example.org/#k", ""},
			{"http://example.org/?_escaped_fragment_=k", ""},
		})
		wrong := "is%20wrong" // a URL has no blanks
		if o.NutchCompat {
			wrong = "is wrong"
		}
		checkPairs(t, ajax, Indexer, []normalizerPair{
			{"http://example.org/?_escaped_fragment_=key=value", "http://example.org/#!key=value"},
			{"http://example.org/?key=value&_escaped_fragment_=key=value", "http://example.org/?key=value#!key=value"},
			{"http://example.org/page.html?key=value&_escaped_fragment_=key=value%26something=is%20wrong",
				"http://example.org/page.html?key=value#!key=value&something=" + wrong},
			{"http://example.org/#!k=v", ""},
		})
		checkPairs(t, hosts(t, sampleHosts, o), AnyScope, []normalizerPair{
			{"http://example.org/page.html", "http://www.example.org/page.html"},
			{"http://www.example.net/path/to/something.html", "http://example.net/path/to/something.html"},
			{"http://example.com/?does=it&still=work", ""},
			{"http://http.www.example.com/buh", "http://example.com/buh"},
			{"http://whatever.example.com/blaat", "http://example.com/blaat"},
		})
		text := sampleProtocols
		if o.NutchCompat {
			text += badProtocols
		}
		checkPairs(t, protocols(t, text, o), AnyScope, []normalizerPair{
			{"https://example.org/", "http://example.org/"},
			{"https://example.net/", "http://example.net/"},
			{"https://example.io/", ""},
			{"http://example.io/", "https://example.io/"},
			{"http://example.nl/", "https://example.nl/"},
			{"http://example.io/path?q=uery", "https://example.io/path?q=uery"},
			{"http://example.io:8080/path?q=uery", ""},
			{"https://example.org:8443/path", ""},
			{"http://example.com/", "https://example.com/"},
			{"http://www.example.com/", "https://www.example.com/"},
			{"http://www.subdomain.example.com/", "https://www.subdomain.example.com/"},
			{"http://myexample.com/", ""},
			{"http://www.subdomain.example.com:8080/path?q=uery", ""},
			{"http://invalid-rule2.example.top/", ""},
			{"http://invalid-rule3.example.top/", ""},
		})
		checkPairs(t, queryNormalizer(o), AnyScope, []normalizerPair{
			{"http://example.com/?c=d&a=b", "http://example.com/?a=b&c=d"},
			{"http://example.com/a/b/c", ""},
			{"http://example.com:1234/a/b/c#ref", ""},
			{"http://example.com:1234/a/b/c?c=d&a=b#ref", "http://example.com:1234/a/b/c?a=b&c=d#ref"},
			{"http://example.com/?c=d&a=b&a=c", "http://example.com/?a=b&a=c&c=d"},
		})
		checkPairs(t, slashes(t, sampleSlashes, o), AnyScope, []normalizerPair{
			{"http://example.org", ""}, {"http://example.org/", ""}, {"http://example.net/blaat", ""}, {"http://example.nl/buh/", ""},
			{"http://www.example.org", ""}, {"http://www.example.org/", ""},
			{"http://www.example.org/page", "http://www.example.org/page/"},
			{"http://www.example.net/path/to/something/", "http://www.example.net/path/to/something"},
			{"http://www.example.org/page?a=b&c=d", "http://www.example.org/page/?a=b&c=d"},
			{"http://www.example.net/path/to/something/?a=b&c=d", "http://www.example.net/path/to/something?a=b&c=d"},
			{"http://www.example.org/noise.mp3", ""}, {"http://www.example.org/page.html", ""}, {"http://www.example.org/page.shtml", ""},
			{"http://www.example.org/this.is.not.an_extension", "http://www.example.org/this.is.not.an_extension/"},
		})
	}
}

// Each difference between a normalizer and Nutch's.
func TestNormalizerDifferences(t *testing.T) {
	const refused = "refused"
	type maker = func(o Options) Normalizer
	hostsOf := func(text string) maker { return func(o Options) Normalizer { return hosts(t, text, o) } }
	protocolsOf := func(text string) maker { return func(o Options) Normalizer { return protocols(t, text, o) } }
	slashesOf := func(text string) maker { return func(o Options) Normalizer { return slashes(t, text, o) } }
	query := func(o Options) Normalizer { return queryNormalizer(o) }
	ajax := func(o Options) Normalizer { return ajaxNormalizer(o) }
	for _, c := range []struct {
		name            string
		n               maker
		scope           Scope
		in, ours, nutch string
	}{
		{"host: the nearest domain wins", hostsOf("*.b.com x.org\n*.a.b.com y.org\n"), AnyScope, "http://c.a.b.com/", "http://y.org/", "http://x.org/"},
		{"host: a target is looked up again", hostsOf("a.com b.com\nb.com c.com\n"), AnyScope, "http://a.com/", "http://c.com/", "http://b.com/"},
		{"host: nothing but the host is replaced", hostsOf("http b.com\n"), AnyScope, "http://http/", "http://b.com/", "b.com://http/"},
		{"host: case makes no difference", hostsOf("A.com b.com\n"), AnyScope, "http://a.COM/", "http://b.com/", "http://a.COM/"},
		{"host: what is no URL of a host is left alone", hostsOf("a.com b.com\n"), AnyScope, "news:a", "news:a", refused},
		{"protocol: fragment and user stay", protocolsOf("a.com https\n"), AnyScope, "http://u@a.com/x#y", "https://u@a.com/x#y", "https://a.com/x"},
		{"protocol: case makes no difference", protocolsOf("a.com https\n"), AnyScope, "http://A.com/", "https://A.com/", "http://A.com/"},
		{"slash: the port stays", slashesOf("a.com +\n"), AnyScope, "http://a.com:81/path/x#y", "http://a.com:81/path/x/#y", "http://a.com/path/x/"},
		{"slash: a short path may have an extension", slashesOf("a.com +\n"), AnyScope, "http://a.com/a.js", "http://a.com/a.js", "http://a.com/a.js/"},
		{"slash: a dot in a directory is no extension", slashesOf("a.com +\n"), AnyScope, "http://a.com/v1.2/x", "http://a.com/v1.2/x/", "http://a.com/v1.2/x"},
		{"slash: all slashes go", slashesOf("a.com -\n"), AnyScope, "http://a.com/x//", "http://a.com/x", "http://a.com/x/"},
		{"slash: an extension has letters of ASCII", slashesOf("a.com +\n"), AnyScope, "http://a.com/x.öäüß", "http://a.com/x.öäüß/", "http://a.com/x.öäüß"},
		{"query: the user of mailto is no host", query, AnyScope, "mailto:a?c&b#d", "mailto:a?b&c#d", "mailto://a?b&c"},
		{"query: empty parameters go", query, AnyScope, "http://h/?b&&a", "http://h/?a&b", "http://h/?&a&b"},
		{"query: code units are not compared", query, AnyScope, "http://h/?\uFFFD&\U00010000", "http://h/?\uFFFD&\U00010000", "http://h/?\U00010000&\uFFFD"},
		{"query: the user stays", query, AnyScope, "http://u@h/?b&a", "http://u@h/?a&b", "http://h/?a&b"},
		{"ajax: escapes are in upper case", ajax, AnyScope, "http://h/#!ü", "http://h/?_escaped_fragment_=%C3%BC", "http://h/?_escaped_fragment_=%c3%bc"},
		{"ajax: a fragment begins at the first #", ajax, AnyScope, "http://h/#a#!b", "http://h/#a#!b", "http://h/#a?_escaped_fragment_=b"},
		{"ajax: the parameter may be the first of several", ajax, Indexer, "http://h/?_escaped_fragment_=a&b=cccccccccccccccccc", "http://h/?b=cccccccccccccccccc#!a",
			"http://h/?_escaped_fragment_=a#!c"},
		{"ajax: a % that begins no escape is one", ajax, Indexer, "http://h/?_escaped_fragment_=x%&y%4", "http://h/?y%4#!x%25", refused},
		{"ajax: a + is no blank", ajax, Indexer, "http://h/?_escaped_fragment_=a+b", "http://h/#!a+b", "http://h/#!a b"},
		{"ajax: without the parameter nothing is done", ajax, Indexer, "http://h/_escaped_fragment_=", "http://h/_escaped_fragment_=", refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, o := range []Options{{}, {NutchCompat: true}} {
				want := c.ours
				if o.NutchCompat {
					want = c.nutch
				}
				got, err := c.n(o).Normalize(c.scope, c.in)
				if err != nil {
					got = refused
				}
				if got != want {
					t.Errorf("%+v: %q: got %q, %v, want %q", o, c.in, got, err, want)
				}
			}
		})
	}
}

func TestNormalizerRulesErrors(t *testing.T) {
	host := func(text string, o Options) error {
		_, err := ParseHostNormalizer(strings.NewReader(text), o)
		return err
	}
	protocol := func(text string, o Options) error {
		_, err := ParseProtocolNormalizer(strings.NewReader(text), o)
		return err
	}
	slash := func(text string, o Options) error {
		_, err := ParseSlashNormalizer(strings.NewReader(text), o)
		return err
	}
	for _, c := range []struct {
		parse      func(string, Options) error
		text, want string
		compat     bool // an error there too
	}{
		{host, "a.com\n", "urlfilter: line 1: want a host and its target", true},
		{host, "\na.com b.com c.com\n", "urlfilter: line 2: want a host and its target", false},
		{host, "a.com b.com:80\n", `urlfilter: line 1: "b.com:80" is not a host`, false},
		{host, "a..com b.com\n", `urlfilter: line 1: "a..com" is not a host`, false},
		{host, "x.com y.com\na.com b.com\nb.com a.com\n", "urlfilter: line 2: the rules for b.com form a cycle", false},
		{host, "a.com b.com\nA.com c.com\n", "urlfilter: line 2: line 1 has a different rule for A.com", false},
		{protocol, "a.com\n", "urlfilter: line 1: want a host and a scheme", false},
		{protocol, "a.com @mail\n", `urlfilter: line 1: "@mail" is not a scheme`, false},
		{protocol, "a.com http\na.com https\n", "urlfilter: line 2: line 1 has a different rule for a.com", false},
		{slash, "a.com /\n", `urlfilter: line 1: want a host and "+" or "-"`, false},
		{slash, "*.a.com +\n", `urlfilter: line 1: "*." is not supported here`, false},
	} {
		err := c.parse(c.text, Options{})
		var s *SyntaxError
		if err == nil || err.Error() != c.want || !errors.As(err, &s) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
		if err := c.parse(c.text, Options{NutchCompat: true}); (err != nil) != c.compat {
			t.Errorf("%q under NutchCompat: %v", c.text, err)
		}
	}
}

// Only the second of these keeps its own result.
type appender string

func (a appender) Normalize(_ Scope, url string) (string, error) {
	if strings.HasSuffix(url, string(a)) {
		return url, nil
	}
	return url + string(a), nil
}

type replacer struct{ old, new string }

func (r replacer) Normalize(_ Scope, url string) (string, error) {
	return strings.ReplaceAll(url, r.old, r.new), nil
}

func TestLoops(t *testing.T) {
	chain := []Normalizer{replacer{"b", "c"}, replacer{"a", "b"}}
	for _, c := range []struct {
		name  string
		all   []Normalizer
		loops int
		out   string
	}{
		{"no normalizers", nil, 0, "a"},
		{"until nothing changes", chain, 0, "c"},
		{"Nutch's one round", chain, 1, "b"},
		{"two rounds", chain, 2, "c"},
		{"a round more than it takes", chain, 3, "c"},
		{"one undoes what another does", []Normalizer{replacer{"a", "b"}, replacer{"b", "a"}}, 0, "a"},
		{"rounds that do not settle are refused", []Normalizer{appender("x"), appender("y")}, 0, ""},
		{"or cut off at the count", []Normalizer{appender("x"), appender("y")}, 2, "axyxy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Rules{Normalizers: c.all, Loops: c.loops}
			got, err := r.Apply(Inject, "a")
			if got != c.out || (err != nil) != (c.out == "") || err != nil && !errors.Is(err, ErrInvalid) {
				t.Errorf("got %q, %v, want %q", got, err, c.out)
			}
			if u, _ := NewChain(c.loops, c.all...).Normalize(Inject, "a"); u != c.out {
				t.Errorf("as a Chain: got %q, want %q", u, c.out)
			}
			steps := r.Explain(Inject, "a")
			if len(c.all) == 0 {
				return
			}
			if last := steps[len(steps)-1]; last.Out != c.out || last.Accepted != (c.out != "") || last.Accepted == (last.Err != nil) {
				t.Errorf("the last step is %+v, want %q", last, c.out)
			}
		})
	}
}

type counted struct {
	Normalizer
	calls *int
}

func (c counted) Normalize(scope Scope, url string) (string, error) {
	*c.calls++
	return c.Normalizer.Normalize(scope, url)
}

// A normalizer is not asked about its own result.
func TestNormalizersStopWhenSettled(t *testing.T) {
	calls := 0
	r := &Rules{Normalizers: []Normalizer{counted{replacer{"a", "b"}, &calls}, counted{chain{}, &calls}, counted{chain{}, &calls}}}
	if _, err := r.Apply(Inject, "a"); err != nil || calls != 3 {
		t.Errorf("%d calls, %v, want 3", calls, err)
	}
}

// Basic and Nutch's regular expressions have different ideas of file URLs.
func TestFileURLsSettle(t *testing.T) {
	regex, err := NewRegexNormalizer(Options{}, DefaultRegexRules()...)
	if err != nil {
		t.Fatal(err)
	}
	r := &Rules{Normalizers: []Normalizer{Basic{Schemes: []string{"file"}}, regex}}
	for _, in := range []string{"file:/a//b", "file:///a/b", "file://localhost/a/b", "file:/a/b"} {
		if got, err := r.Apply(Inject, in); got != "file:/a/b" || err != nil {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}

func TestScoped(t *testing.T) {
	n := scoped{AnyScope: appender("/any"), Inject: chain{normalizers: []Normalizer{appender("/1"), chain{}}}}
	for scope, want := range map[Scope]string{Inject: "a/1", Fetcher: "a/any", "another": "a/any"} {
		if got, err := n.Normalize(scope, "a"); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", scope, got, err, want)
		}
	}
	if got, _ := (scoped{Inject: appender("x")}).Normalize(Fetcher, "a"); got != "a" {
		t.Errorf("without a normalizer for any scope: got %q", got)
	}
	if got, want := n.explainScope(Inject, "a"), "urlfilter.appender"; got != want {
		t.Errorf("Explain: got %q, want %q", got, want)
	}
	if got, want := n.String(), "by scope (default: urlfilter.appender; inject: chain of urlfilter.appender, pass normalizer)"; got != want {
		t.Errorf("String: got %q, want %q", got, want)
	}
}

func TestScopedReloads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slashes.txt")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.com +\n")
	f, err := OpenNormalizer(path, ParseSlashNormalizer, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Rules{Normalizers: []Normalizer{scoped{Inject: chain{normalizers: []Normalizer{f}}}}}
	write("# none of a.com any more\n")
	if changed, err := r.Reload(); !changed || err != nil {
		t.Errorf("got %v, %v", changed, err)
	}
	if got, _ := r.Apply(Inject, "http://a.com/x"); got != "http://a.com/x" {
		t.Errorf("got %q", got)
	}
}

func TestExplainNamesTheRule(t *testing.T) {
	r := &Rules{Loops: 1, Normalizers: []Normalizer{Basic{}, hosts(t, sampleHosts, Options{}), ajaxNormalizer{}}}
	var rules []string
	for _, s := range r.Explain(Indexer, "HTTP://example.org/?_escaped_fragment_=a") {
		rules = append(rules, s.Rule)
	}
	want := []string{"scheme", "line 4: example.org www.example.org", "_escaped_fragment_= -> #!"}
	if !slices.Equal(rules, want) {
		t.Errorf("got %q, want %q", rules, want)
	}
}

func FuzzNormalizers(f *testing.F) {
	for _, u := range realURLs {
		f.Add(u, sampleHosts)
	}
	f.Add("http://example.org:80/?b&a#!c", sampleProtocols)
	f.Add("http://u@www.example.net/a/?_escaped_fragment_=x%2541&y#z", sampleSlashes)
	f.Add("http://a/", "a b\nb c\n*.c d\n")
	f.Fuzz(func(t *testing.T, url, text string) {
		all := allNormalizers(t, Options{})
		compat := allNormalizers(t, Options{NutchCompat: true})
		for _, o := range []Options{{}, {NutchCompat: true}} {
			to := &all
			if o.NutchCompat {
				to = &compat
			}
			if n, err := ParseHostNormalizer(strings.NewReader(text), o); err == nil {
				*to = append(*to, n)
			}
			if n, err := ParseProtocolNormalizer(strings.NewReader(text), o); err == nil {
				*to = append(*to, n)
			}
			if n, err := ParseSlashNormalizer(strings.NewReader(text), o); err == nil {
				*to = append(*to, n)
			}
		}
		for _, scope := range []Scope{AnyScope, Indexer} {
			for _, n := range compat {
				if u, err := n.Normalize(scope, url); err != nil && u != "" {
					t.Fatalf("%v: %q: %q beside the error %v", n, url, u, err)
				}
			}
			for _, n := range all {
				u, err := n.Normalize(scope, url)
				if err != nil {
					continue
				}
				if again, err := n.Normalize(scope, u); again != u || err != nil {
					t.Fatalf("%v: %q is %q, and that is %q, %v", n, url, u, again, err)
				}
				if e, ok := n.(scopeExplainer); ok {
					e.explainScope(scope, url)
				} else if e, ok := n.(Explainer); ok && (e.Explain(url) == "") != (u == url) {
					t.Fatalf("%v: %q is %q by the rule %q", n, url, u, e.Explain(url))
				}
				if _, err := neturl.Parse(url); err == nil && u != url {
					if _, err := neturl.Parse(u); err != nil {
						t.Fatalf("%v: %q is %q: %v", n, url, u, err)
					}
				}
			}
		}
	})
}
