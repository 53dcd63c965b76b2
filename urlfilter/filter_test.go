package urlfilter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Nutch's stock rules and the lists of its tests.
func TestRegexNutch(t *testing.T) {
	whole := must[Filter](t)(ParseRegex(strings.NewReader(`# skip file: ftp: and mailto: urls
-^(?:file|ftp|mailto):

-(?i)\.(?:gif|jpg|png|ico|css|sit|eps|wmf|zip|ppt|mpg|xls|gz|rpm|tgz|mov|exe|jpeg|bmp|js)$
-[?*!@=]
-.*(/[^/]+)/[^/]+\1/[^/]+\1/
 # a comment too
+.
`), Options{}))
	sections := must[Filter](t)(NewRegex("> www.example.org", "-skip", "<", "> example.com", "+skip", "<", "-."))
	intranet := must[Filter](t)(NewRegex(`+^https?://(?:[a-z0-9]*\.)*MY.DOMAIN.NAME/`, "-."))
	for _, c := range []struct {
		f    Filter
		url  string
		want bool
	}{
		{whole, "file://home/jc/nutch/index.html", false},
		{whole, "ftp://ftp.apache.org/nutch.html", false},
		{whole, "mailto:jerome.charron@gmail.com", false},
		{whole, "news://any.news.server/comp.lang.java", true},
		{whole, "whois:/nutch.org", true},
		{whole, "http://www.nutch.org/", true},
		{whole, "http://www.nutch.org/nutch.gif", false},
		{whole, "http://www.nutch.org/nutch.EPS", false},
		{whole, "http://www.nutch.org/nutch?q=nutch", false},
		{whole, "http://www.nutch.org/abcd/foo/bar/foo/bar/foo/", false},
		{whole, "http://www.nutch.org/abcd/foo/bar/xyz/foo/bar/foo/", true}, // rejected by an older form of the rule
		{whole, "", false},
		{intranet, "http://MY.DOMAIN.NAME/nutch", true},
		{intranet, "http://www.MY.DOMAIN.NAME/", true},
		{intranet, "news://any.news.server/comp.lang.java", false},
		{sections, "http://www.example.org/skip-me-now", false},
		{sections, "http://www.example.com/noone-can-skip-me", true},
		{sections, "http://example.com:8080/noone-can-skip-me", true},
		{sections, "http://notexample.com/noone-can-skip-me", false},
		{sections, "http://www.example.nl/i-am-filtered", false},
		{must[Filter](t)(NewRegex()), "http://example.com/", false},
	} {
		if got := c.f.Accept(c.url); got != c.want {
			t.Errorf("%v: %q: %v, want %v", c.f, c.url, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"+.\n\tx":        "urlfilter: line 2: a rule begins with + or -, not with \"\\t\"",
		"+(":             "urlfilter: line 1: pattern `(`: missing )",
		"\n-(/a)\\1":     "urlfilter: line 2: pattern `(/a)\\1`: the back-reference \"\\1\" is not supported",
		"-(?=x)y":        "urlfilter: line 1: pattern `(?=x)y`: look-ahead (?= is not supported",
		"-a*+b":          "urlfilter: line 1: pattern `a*+b`: possessive repetition is not supported",
		">  ":            "urlfilter: line 1: no host or domain after >",
		"> a b\n-x":      "urlfilter: line 1: \"a b\" after > is not a host or domain",
		"+.\n" + longest: "urlfilter: line 2: a line of more than 1048576 bytes",
	} {
		if _, err := ParseRegex(strings.NewReader(text), Options{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"\xff\xfeh\x00t\x00t\x00p\x00\n\x00", "http://\n\x00h\x00"} {
		if _, err := ParsePrefix(strings.NewReader(text), Options{}); err == nil || !strings.Contains(err.Error(), "a zero byte; rules are text in UTF-8") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ParseDomain(strings.NewReader("example.org\n#\nnot a host\n"), Options{}); fmt.Sprint(err) != `urlfilter: line 3: "not a host" is not a host, domain or suffix` {
		t.Error(err)
	}
	if _, err := ParseDomain(strings.NewReader("a b"), Options{}); fmt.Sprint(err) != `urlfilter: line 1: "a b" is not a host, domain or suffix` {
		t.Error(err)
	}
	if _, err := Within("a..b"); fmt.Sprint(err) != `urlfilter: "a..b" is not a host` {
		t.Error(err)
	}
	broken := errors.New("broken")
	for name, parse := range map[string]func() error{
		"regex":  func() error { _, err := ParseRegex(failing{broken}, Options{}); return err },
		"prefix": func() error { _, err := ParsePrefix(failing{broken}, Options{}); return err },
		"suffix": func() error { _, err := ParseSuffix(failing{broken}, Options{}); return err },
		"domain": func() error { _, err := ParseDomainDeny(failing{broken}, Options{}); return err },
	} {
		if err := parse(); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var longest = "+" + strings.Repeat("x", maxLine+1)

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestPrefix(t *testing.T) {
	f := must[Filter](t)(ParsePrefix(strings.NewReader("# comment\n http://skipped/\n\nhttp://\nhttps://a/b\nhttps://a/\nftp://x\n"), Options{}))
	for url, want := range map[string]bool{
		"http://www.example.com/": true, "https://a/": true, "https://a/bc": true, "https://b/": false, "ftp://x": true, "ftp://wx": false,
		"abcd://www.example.com/": false, "www.example.com/": false, "": false, "zzz": false, "HTTP://x/": false,
	} {
		if got := f.Accept(url); got != want {
			t.Errorf("%q: %v", url, got)
		}
	}
	if !NewPrefix("a", "").Accept("b") || NewPrefix().Accept("") {
		t.Error("the empty prefix is not a prefix of all, or no prefix is one")
	}
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, r.IntN(5))
		for i := range b {
			b[i] = "abc"[r.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		var all []string
		for range r.IntN(6) {
			all = append(all, word())
		}
		s := word()
		want := slices.ContainsFunc(all, func(p string) bool { return strings.HasPrefix(s, p) })
		if got := NewPrefix(all...).Accept(s); got != want {
			t.Fatalf("%q in %q: %v", s, all, got)
		}
		want = slices.ContainsFunc(all, func(p string) bool { return strings.HasSuffix(s, p) })
		if got := NewSuffix(SuffixOptions{}, all...).Accept(s); got != want {
			t.Fatalf("suffix: %q in %q: %v", s, all, got)
		}
	}
}

// The table of Nutch's TestSuffixURLFilter.
func TestSuffix(t *testing.T) {
	urls := []string{
		"http://www.example.com/test.gif", "http://www.example.com/TEST.GIF", "http://www.example.com/test.jpg", "http://www.example.com/test.JPG",
		"http://www.example.com/test.html", "http://www.example.com/test.HTML", "http://www.example.com/test.html?q=abc.js",
		"http://www.example.com/test.js?foo=bar&baz=bar#12333",
	}
	for _, c := range []struct {
		file string
		pass []int
	}{
		{"+\n.gif\n.jpg\n.js\n", []int{2, 4, 5, 6, 8}},
		{"-\n.gif\n.jpg\n.js\n", []int{1, 3, 7}},
		{".gif\n.jpg\n.js\n", []int{1, 3, 7}},
		{"+I\n.gif\n.jpg\n.js\n", []int{5, 6, 8}},
		{"-I\n.gif\n.JPG\n.js\n", []int{1, 2, 3, 4, 7}},
		{"+P\n # comment\n.gif\n\n.jpg \n.js\n", []int{2, 4, 5, 6, 7}},
		{"-P\n+I\n.gif\n.jpg\n.js\n", []int{5, 6, 7}},
		{"+\n", []int{1, 2, 3, 4, 5, 6, 7, 8}},
		{"", nil},
	} {
		f := must[Filter](t)(ParseSuffix(strings.NewReader(c.file), Options{}))
		var pass []int
		for i, u := range urls {
			if f.Accept(u) {
				pass = append(pass, i+1)
			}
		}
		if !slices.Equal(pass, c.pass) {
			t.Errorf("%q: passes %v, want %v", c.file, pass, c.pass)
		}
	}
	f := NewSuffix(SuffixOptions{Path: true}, "/", "x")
	for url, want := range map[string]bool{"http://h/?x": true, "http://x": false, "http://h/a": false, "no URL x": true, "mailto:x": true} {
		if got := f.Accept(url); got != want {
			t.Errorf("by path: %q: %v", url, got)
		}
	}
	// Of a protocol that Java does not know, all of the URL counts in Nutch.
	for _, compat := range []bool{false, true} {
		f := must[Filter](t)(ParseSuffix(strings.NewReader("-P\n.txt"), Options{compat}))
		if got := f.Accept("wiki://h/a.txt?b"); got == compat {
			t.Errorf("NutchCompat %v: %v", compat, got)
		}
		if !f.Accept("http://h/a.txt?b") {
			t.Errorf("NutchCompat %v: http", compat)
		}
		// Java drops the blank.
		if got := f.Accept("http://h/a.txt "); got != compat {
			t.Errorf("NutchCompat %v: a blank: %v", compat, got)
		}
	}
}

// The list of Nutch's TestDomainURLFilter, and hosts close to it.
func TestDomain(t *testing.T) {
	const file = "# comment\nnet\n Apache.org \n\nbe\nwww.yahoo.com\nco.uk\nlucene.example.org\n192.0.2.7\nbücher.de\n"
	allow, deny := must[Filter](t)(ParseDomain(strings.NewReader(file), Options{})), must[Filter](t)(ParseDomainDeny(strings.NewReader(file), Options{}))
	for url, want := range map[string]bool{
		"http://lucene.apache.org/": true, "http://apache.org/": true, "https://a.b.apache.org:8080/x": true, "http://www.foobar.net/": true,
		"http://www.yahoo.com/": true, "http://www.foobar.be/": true, "http://www.google.com/": false, "http://mail.yahoo.com/": false,
		"http://www.adobe.com/": false, "http://notapache.org/": false, "http://apache.org.evil.com/": false, "http://shop.co.uk/": true,
		"http://lucene.example.org/": true, "http://x.lucene.example.org/": false, "http://192.0.2.7/": true, "http://192.0.2.8/": false,
		"http://x.xn--bcher-kva.de/": true, "http://[::1]/": false, "http://WWW.Apache.ORG./": true, "http://evil.com/http://apache.org/": false,
		"http://evil.com?apache.org": false, "http://apache.org@evil.com/": false,
	} {
		if got := allow.Accept(url); got != want {
			t.Errorf("%v: %q: %v", allow, url, got)
		}
		if got := deny.Accept(url); got == want {
			t.Errorf("%v: %q: %v", deny, url, got)
		}
	}
	for _, f := range []Filter{allow, deny} {
		if f.Accept("mailto:x") || f.Accept("") || f.Accept("mailto:x?://apache.org/") {
			t.Errorf("%v accepts what has no host", f)
		}
	}
	empty, _ := ParseDomain(strings.NewReader("# nothing\n"), Options{})
	if empty.Accept("http://example.com/") {
		t.Error("an empty list accepts something")
	}
	empty, _ = ParseDomain(strings.NewReader("# nothing\n"), Options{NutchCompat: true})
	if !empty.Accept("http://example.com/") {
		t.Error("Nutch's empty list does not accept everything")
	}
	within := must[Filter](t)(Within("lucene.example.org", "127.0.0.1"))
	for url, want := range map[string]bool{
		"http://lucene.example.org/": true, "http://x.lucene.example.org/": true, "http://example.org/": false, "http://127.0.0.1:81/": true, "http://1.127.0.0.1/": false,
	} {
		if got := within.Accept(url); got != want {
			t.Errorf("within: %q: %v", url, got)
		}
	}
	if nothing := must[Filter](t)(Within()); nothing.Accept("http://example.com/") {
		t.Error("within nothing lies something")
	}
}

func TestRules(t *testing.T) {
	r := Default()
	for in, want := range map[string]string{
		"HTTP://Example.com/a/../b?x=1#top": "http://example.com/b?x=1",
		"http://example.com/a.php?f=x.gif":  "http://example.com/a.php?f=x.gif",
	} {
		if got, err := r.Apply(Outlink, in); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]error{
		"ftp://example.com/":                   ErrInvalid,
		"mailto:a@example.com":                 ErrInvalid,
		"http://example.com/A.GIF?x":           ErrRejected,
		"http://example.com/a/b/a/c/a/d":       ErrRejected,
		strings.Repeat("x", 4097):              ErrInvalid,
		"http://h/" + strings.Repeat("é", 700): ErrInvalid, // by its normal form
	} {
		got, err := r.Apply(Outlink, in)
		if !errors.Is(err, want) || got != "" {
			t.Errorf("%.40q: %q, %v, want %v", in, got, err, want)
		}
	}
	_, err := r.Apply(Outlink, "http://example.com/a.gif")
	if want := "urlfilter: rejected by suffix filter of 20 entries"; fmt.Sprint(err) != want {
		t.Errorf("got %q, want %q", err, want)
	}
	// What one caller adds, another does not see.
	r.Filters = append(r.Filters, FilterFunc(func(string) bool { return false }))
	DefaultSuffixes()[0] = ""
	if _, err := Default().Apply(Outlink, "http://example.com/"); err != nil {
		t.Error(err)
	}
	_, err = r.Apply(Outlink, "http://example.com/")
	if want := "urlfilter: rejected by filter 3 (urlfilter.FilterFunc)"; fmt.Sprint(err) != want {
		t.Errorf("got %q, want %q", err, want)
	}
	var none Rules
	if got, err := none.Apply(Inject, "any thing"); got != "any thing" || err != nil {
		t.Errorf("zero Rules: %q, %v", got, err)
	}
	if _, err := (&Rules{MaxLength: 3}).Apply(Inject, "abcd"); !errors.Is(err, ErrInvalid) {
		t.Errorf("too long: %v", err)
	}
	if _, err := (&Rules{MaxLength: -1}).Apply(Inject, strings.Repeat("x", 1<<16)); err != nil {
		t.Errorf("no bound: %v", err)
	}
}

func FuzzParseRegex(f *testing.F) {
	f.Add("+^http://\n-\\.gif$\n> example.com\n-x\n<\n+.", "http://example.com/x.gif")
	f.Add("-.*(/[^/]+)/[^/]+\\1/[^/]+\\1/\n+.", "http://h/a/b/a/c/a/")
	f.Fuzz(func(t *testing.T, text, url string) {
		r, err := ParseRegex(strings.NewReader(text), Options{})
		if (r == nil) != (err != nil) {
			t.Fatal(r, err)
		}
		if r == nil {
			return
		}
		if first := r.Accept(url); r.Accept(url) != first {
			t.Fatal("two answers")
		}
	})
}

func FuzzParsePrefixSuffix(f *testing.F) {
	f.Add("# x\nhttp://\n +I\n.gif\n-P\n", "http://example.com/x.gif")
	f.Fuzz(func(t *testing.T, text, url string) {
		if f, err := ParsePrefix(strings.NewReader(text), Options{}); err == nil {
			if p := f.(*prefixFilter); p.Accept(url) && !strings.HasPrefix(url, p.sorted[0].key) && len(p.sorted) == 1 {
				t.Fatalf("%v accepts %q", p.sorted, url)
			}
		}
		f, err := ParseSuffix(strings.NewReader(text), Options{})
		if err != nil {
			return
		}
		s := f.(*suffixFilter)
		o := s.o
		o.Reject = !o.Reject
		if s.Accept(url) == (&suffixFilter{o: o, affixes: s.affixes}).Accept(url) {
			t.Fatalf("%+v answers like its opposite to %q", s, url)
		}
	})
}

func FuzzParseDomain(f *testing.F) {
	f.Add("net\nexample.org\n# x\nwww.example.com", "http://www.example.org/")
	f.Add("co.uk\nck\n*.x\nwww.ck", "http://a.www.ck/")
	f.Fuzz(func(t *testing.T, text, url string) {
		f, err := ParseDomain(strings.NewReader(text), Options{})
		if err != nil {
			return
		}
		a := f.(*domainFilter)
		d, err := ParseDomainDeny(strings.NewReader(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if hostOf(url) != "" && len(a.entries) > 0 && a.Accept(url) == d.Accept(url) {
			t.Fatalf("%q: both say %v to %q", text, a.Accept(url), url)
		}
		// The quick way under NutchCompat finds what the plain one does.
		if host := javaHost(url); host != "" {
			quick := a.entryNutch(host) != ""
			if a.plain = false; quick != (a.entryNutch(host) != "") {
				t.Fatalf("%q: %q is listed: %v the quick way, %v the plain one", text, host, quick, !quick)
			}
		}
	})
}

// A list of suffixes says what strings.HasSuffix says of each.
func TestSuffixesAsHasSuffix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	parts := []string{"a", "b", "ab", "1", "/", ".", "?", "#", ":", "@", "A", "é", "É", "a/b/", ".gz", ".JPG"}
	suffixes := []string{".gz", ".jpg", "É", "b"}
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(14) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		url := "http://" + b.String()
		for _, ignore := range []bool{false, true} {
			want := false
			for _, s := range suffixes {
				text := url
				if ignore {
					text, s = strings.ToLower(text), strings.ToLower(s)
				}
				want = want || strings.HasSuffix(text, s)
			}
			if NewSuffix(SuffixOptions{IgnoreCase: ignore}, suffixes...).Accept(url) != want {
				t.Fatalf("%q: accepted %v, want %v", url, !want, want)
			}
		}
	}
}

func TestAllowSchemes(t *testing.T) {
	for _, c := range []struct {
		rules     *Rules
		url, want string
	}{
		{Default(), "ftp://h/", ""},
		{Default().AllowSchemes("FTP", "http"), "ftp://h/", "ftp://h/"},
		{Default().AllowSchemes("FTP", "http"), "HTTPS://h", "https://h/"},
		{Default().AllowSchemes("ftp").AllowSchemes("gemini"), "ftp://h/", "ftp://h/"},
		{Default().AllowSchemes("ftp").AllowSchemes("gemini"), "gemini://h", "gemini://h/"},
		{(&Rules{Normalizers: []Normalizer{Basic{NutchCompat: true}}}).AllowSchemes("gemini"), "mailto:a@b", "mailto:a@b"},
		{(&Rules{}).AllowSchemes("ftp"), "x:y", "x:y"},
	} {
		if got, err := c.rules.Apply(Inject, c.url); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v, want %q", c.url, got, err, c.want)
		}
	}
	// The slice that others may share is not changed.
	shared := []Normalizer{Basic{}}
	(&Rules{Normalizers: shared}).AllowSchemes("ftp")
	if shared[0].(Basic).Schemes != nil {
		t.Error("the normalizers of other rules changed")
	}
}

func BenchmarkDefault(b *testing.B) {
	r := Default()
	b.ReportAllocs()
	for b.Loop() {
		r.Apply(Outlink, "https://www.example.com/guide/chapter-3/section-14.html?lang=en&page=2")
	}
}

// After a line that Nutch cannot read as a host, rules belong neither to the host before it
// nor to all hosts.
func TestFastSkipsABadGroup(t *testing.T) {
	const rules = "Host a.example\nDenyPath ^/x\nHost\nDenyPath ^/y\nDomain b.example\nDenyPath ^/z\nNonsense ^/\nDenyPath ^/w\n"
	if _, err := ParseFast(strings.NewReader(rules), FastOptions{}); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("%v", err)
	}
	f, err := ParseFast(strings.NewReader(rules), FastOptions{NutchCompat: true})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{
		"http://a.example/x": false, "http://a.example/y": true, "http://c.example/y": true, "http://a.example/z": true,
		"http://b.example/z": false, "http://www.b.example/w": false, "http://b.example/y": true,
	} {
		if f.Accept(url) != want {
			t.Errorf("%s: %v", url, !want)
		}
	}
}

// The path of a file of rules may be a URL of this machine, and of no other.
func TestFastFileURL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fast rules.txt")
	if err := os.WriteFile(path, []byte("Host a.example\nDenyPath ^/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	escaped := strings.ReplaceAll(filepath.ToSlash(path), " ", "%20")
	for _, p := range []string{path, "file:" + escaped, "file://" + escaped, "file://localhost" + escaped} {
		f, err := openFast(p)
		if err != nil {
			t.Errorf("%s: %v", p, err)
		} else if f.Accept("http://a.example/x") || !f.Accept("http://a.example/y") {
			t.Errorf("%s: other rules", p)
		}
	}
	for _, p := range []string{"file://a.example" + escaped, "file:", "file://", "file:%zz"} {
		if _, err := openFast(p); err == nil || !strings.Contains(err.Error(), "file:") {
			t.Errorf("%s: %v", p, err)
		}
	}
}
