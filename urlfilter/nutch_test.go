package urlfilter

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The lists that Nutch's own tests have for its filters.

type verdicts map[string]bool

func (v verdicts) check(t *testing.T, f Filter) {
	t.Helper()
	for u, want := range v {
		if got := f.Accept(u); got != want {
			t.Errorf("%v: %q: %v, want %v", f, u, got, want)
		}
	}
}

func (v verdicts) but(o verdicts) verdicts {
	out := verdicts{}
	for _, m := range []verdicts{v, o} {
		for u, want := range m {
			out[u] = want
		}
	}
	return out
}

// wholeWeb is what both TestRegexURLFilter and TestAutomatonURLFilter expect of the rules for
// the whole web, except for loops.
var wholeWeb = verdicts{
	"file://home/jc/nutch/index.html":       false,
	"ftp://ftp.apache.org/nutch.html":       false,
	"mailto:jerome.charron@gmail.com":       false,
	"http://www.nutch.org/nutch.gif":        false,
	"http://www.nutch.org/nutch.eps":        false,
	"http://www.nutch.org/nutch?q=nutch":    false,
	"news://any.news.server/comp.lang.java": true,
	"whois:/nutch.org":                      true,
	"http://www.nutch.org/":                 true,
}

const (
	loop        = "http://www.nutch.org/abcd/foo/bar/foo/bar/foo/"
	loopBetween = "http://www.nutch.org/abcd/foo/bar/xyz/foo/bar/foo/"
)

var intranet = verdicts{
	"file://home/jc/nutch/index.html":       false,
	"ftp://ftp.apache.org/nutch.html":       false,
	"mailto:jerome.charron@gmail.com":       false,
	"news://any.news.server/comp.lang.java": false,
	"whois:/nutch.org":                      false,
	"http://MY.DOMAIN.NAME/":                true,
	"http://MY.DOMAIN.NAME/nutch":           true,
	"http://www.MY.DOMAIN.NAME/":            true,
}

const (
	oldSuffixes = `-\.(gif|GIF|jpg|JPG|png|PNG|ico|ICO|css|CSS|sit|SIT|eps|EPS|wmf|WMF|zip|ZIP|ppt|PPT|mpg|MPG|xls|XLS|gz|GZ|rpm|RPM|tgz|TGZ|mov|MOV|exe|EXE|jpeg|JPEG|bmp|BMP|js|JS)$`
	newSuffixes = `-(?i)\.(?:gif|jpg|png|ico|css|sit|eps|wmf|zip|ppt|mpg|xls|gz|rpm|tgz|mov|exe|jpeg|bmp|js)$`
)

func TestNutchRegex(t *testing.T) {
	for name, c := range map[string]struct {
		rules    []string
		verdicts verdicts
	}{
		"whole web":          {[]string{`-^(?:file|ftp|mailto):`, newSuffixes, `-[?*!@=]`, `-.*(/.+?)/.*?\1/.*?\1/`, `+.`}, wholeWeb.but(verdicts{loop: false, loopBetween: false})},
		"whole web, old":     {[]string{`-^(file|ftp|mailto):`, oldSuffixes, `-[?*!@=]`, `-.*(/.+?)/.*?\1/.*?\1/`, `+.`}, wholeWeb.but(verdicts{loop: false, loopBetween: false})},
		"whole web, segment": {[]string{`-^(file|ftp|mailto):`, oldSuffixes, `-[?*!@=]`, `-.*(/[^/]+)/[^/]+\1/[^/]+\1/`, `+.`}, wholeWeb.but(verdicts{loop: false, loopBetween: true})},
		"intranet":           {[]string{`-^(?:file|ftp|mailto):`, newSuffixes, `-[?*!@=]`, `-.*(/.+?)/.*?\1/.*?\1/`, `+^https?://(?:[a-z0-9]*\.)*MY.DOMAIN.NAME/`, `-.`}, intranet},
		"sections": {[]string{"> www.example.org", "-skip", "<", "> www.example.com", "+skip", "<", "-."}, verdicts{
			"http://www.example.org/skip-me-now": false, "http://www.example.com/noone-can-skip-me": true, "http://www.example.nl/i-am-filtered": false,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.verdicts.check(t, must[Filter](t)(NewRegex(c.rules...)))
		})
	}
}

// Names of sections, ours and Nutch's.
func TestNutchSections(t *testing.T) {
	const rules = "> Www.Example.ORG \n-.\n<\n> example.com\n-.\n> co.uk\n-.\n<\n> com\n-.\n<\n> wiki.example\n-.\n<\n+."
	for _, compat := range []bool{false, true} {
		regex := must[Filter](t)(ParseRegex(strings.NewReader(rules), Options{compat}))
		automaton := must[Filter](t)(ParseAutomaton(strings.NewReader(strings.ReplaceAll(rules, ".\n", ".*\n")+"*"), Options{compat}))
		for _, f := range []Filter{regex, automaton} {
			verdicts{
				"http://www.example.org/": compat, "http://a.www.example.org/": true, "http://EXAMPLE.com/": false, "http://a.b.example.com:8080/": false,
				"http://notexample.com/": true, "http://example.com.evil.net/": true, "http://example.co.uk/": true, "http://co.uk/": false,
				"http://com/": false, "http://other.com/": true, "http://example.com./": false, "wiki://wiki.example/": compat, "no URL": true,
			}.check(t, f)
		}
	}
}

// The first rule that matches decides, whichever section it is in.
func TestSectionsKeepOrder(t *testing.T) {
	f := must[Filter](t)(NewRegex("-1", "> example.com", "+1", "-2", "<", "+2", "> www.example.com", "-3", "<", "> example.com", "+3", "-4", "<", "+4"))
	verdicts{
		"http://www.example.com/1": false, "http://www.example.com/2": false, "http://www.example.com/3": false, "http://www.example.com/4": false,
		"http://example.com/1": false, "http://example.com/2": false, "http://example.com/3": true, "http://example.com/4": false,
		"http://example.net/1": false, "http://example.net/2": true, "http://example.net/3": false, "http://example.net/4": true,
	}.check(t, f)
	if got := explain(f, "http://www.example.com/4"); got != "line 12: -4 (within example.com)" {
		t.Error(got)
	}
}

func TestNutchAutomaton(t *testing.T) {
	const suffixes = `-.*\.(gif|GIF|jpg|JPG|png|PNG|ico|ICO|css|CSS|sit|SIT|eps|EPS|wmf|WMF|zip|ZIP|ppt|PPT|mpg|MPG|xls|XLS|gz|GZ|rpm|RPM|tgz|TGZ|mov|MOV|exe|EXE|jpeg|JPEG|bmp|BMP|js|JS)`
	f := must[Filter](t)(ParseAutomaton(strings.NewReader(strings.Join([]string{"# whole web", `-(file|ftp|mailto):.*`, suffixes, `-.*[?*!@=].*`, `+.*`}, "\n")), Options{}))
	wholeWeb.but(verdicts{loop: true, loopBetween: true}).check(t, f)
	f = must[Filter](t)(ParseAutomaton(strings.NewReader(strings.Join([]string{`-(file|ftp|mailto):.*`, suffixes, `-.*[?*!@=].*`, `+https?://([a-z0-9]*\.)*MY.DOMAIN.NAME/.*`, `-.*`}, "\n")), Options{}))
	intranet.check(t, f)
}

func TestNutchFast(t *testing.T) {
	const rules = `
Host www.example.org  # a comment
  DenyPath ^/path/to/be/excluded
  DenyPath ^/some/other/path/excluded
Domain example.com
  DenyPath .*
Domain example.org
  DenyPathQuery /resource/.*?action=exclude
Host i.example.org
  DenyPath (?i)\.jpe?g$
Domain .
  DenyPath (/.+?)/.*?\1/.*?\1/
`
	list := verdicts{
		"https://www.example.org/path/to/be/excluded":           false,
		"https://www.example.org/path/to/be/excluded/continued": false,
		"https://www.example.org/some/other/path/excluded":      false,
		"https://www1.example.com/":                             false,
		"https://www2.example.com/":                             false,
		"https://www.subnet.example.com/":                       false,
		"https://www.example.org/resource/put?action=exclude":   false,
		loop:        false,
		loopBetween: false,
		"https://i.example.org/photo.JPG?width=300":                       false,
		"ftp://ftp.example.com/file1.txt":                                 false,
		"file:/abcd/foo/bar/xyz/foo/bar/foo/":                             false,
		"https://www.example.org/":                                        true,
		"https://www.example.org/%20white%20space%20in%20path%20escaped/": true,
		"https://www.examplex.com/":                                       true,
		"https://www.example.co.uk/":                                      true,
		"https://www.example.com.za/":                                     true,
		"http://www.nutch.org/abcd/foo1/bar1/zzz1/":                       true,
		"ftp://ftp.example.org/file1.txt":                                 true,
		"file:/path/file1.txt":                                            true,
		"file:///path/file1.txt":                                          true,
		"https://www.example.org/resource/put?action=include":             true,
		"https://example.org/path/to/be/excluded":                         true,
		"no URL": false,
		"":       false,
	}
	for _, compat := range []bool{false, true} {
		o := FastOptions{NutchCompat: compat}
		f := must[Filter](t)(ParseFast(strings.NewReader(rules), o))
		list.check(t, f)
		// Protocols that Java does not know.
		verdicts{"wiki://h/x": !compat, "gopher://www.example.com/": false}.check(t, f)

		f = must[Filter](t)(ParseFast(strings.NewReader(""), FastOptions{100, 50, 50, compat}))
		x := func(n int) string { return strings.Repeat("x", n) }
		verdicts{
			"http://h/" + x(49): true, "http://h/" + x(50): false,
			"http://h/?" + x(50): true, "http://h/?" + x(51): false,
			"http://h/" + x(40) + "?" + x(50): true, "http://h/" + x(41) + "?" + x(50): false,
		}.check(t, f)
	}
	f := must[Filter](t)(ParseFast(strings.NewReader("Host Example.ORG\nDenyPath .?\n"), FastOptions{}))
	verdicts{"http://example.org/": false, "http://Example.org/": false, "http://www.example.org/": true}.check(t, f)

	for text, c := range map[string]struct {
		err     string
		skipped int  // by Nutch
		accept  bool // http://a/x, by Nutch
	}{
		"Host a b\nDenyPath .*":         {"line 1: Host takes one word, not 2", 0, false},
		"Host a\nDenyPath ^/x y":        {"line 2: DenyPath takes one word, not 2", 0, false},
		"Host\nDenyPath .*":             {"line 1: Host takes one word, not 0", 2, true},
		"DenyPath /x":                   {"line 1: a rule before any Host or Domain", 1, true},
		"Host a\n\nDenyHost x":          {"line 3: \"DenyHost\" is not one of", 1, true},
		"Host a..b\nDenyPath .*":        {"line 1: \"a..b\" is not a host", 0, true},
		"Host b\nDenyPath x\nHost\n# x": {"line 3: Host takes one word, not 0", 1, true},
	} {
		if _, err := ParseFast(strings.NewReader(text), FastOptions{}); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v", text, err)
		}
		f, err := ParseFast(strings.NewReader(text), FastOptions{NutchCompat: true})
		if err != nil || f.Accept("http://a/x") != c.accept || len(f.(*fastFilter).skipped) != c.skipped {
			t.Errorf("%q in Nutch: %v, skipped %v", text, err, f.(*fastFilter).skipped)
		}
	}
	f = must[Filter](t)(ParseFast(strings.NewReader("Hosts a\nDenyPaths x\nDomainName b\nDenyPathQuerys x\n"), FastOptions{NutchCompat: true}))
	verdicts{"http://a/x": false, "http://a/?x": true, "http://b/?x": false, "http://b/": true}.check(t, f)
	if _, err := ParseFast(strings.NewReader("Domain .\nDenyPath (?=x)"), FastOptions{NutchCompat: true}); err == nil {
		t.Error("a pattern that Nutch has and we have not is skipped")
	}
}

func TestNutchPrefix(t *testing.T) {
	f := must[Filter](t)(ParsePrefix(strings.NewReader("# comment\nhttp://\nhttps://\nftp://\nfile://\n"), Options{}))
	verdicts{
		"http://www.example.com/": true, "https://www.example.com/": true, "ftp://www.example.com/": true, "file://www.example.com/": true,
		"file:/x": false, "abcd://www.example.com/": false, "www.example.com/": false,
	}.check(t, f)
}

// nutchDomains is the list of TestDomainURLFilter; what it accepts is what
// TestDomainDenylistURLFilter rejects.
func TestNutchDomain(t *testing.T) {
	const file = "net\napache.org\nbe\nwww.yahoo.com\n"
	list := verdicts{
		"http://lucene.apache.org/": true, "http://hadoop.apache.org/": true, "http://www.apache.org/": true, "http://www.foobar.net/": true,
		"http://www.foobas.net/": true, "http://www.yahoo.com/": true, "http://www.foobar.be/": true,
		"http://www.google.com/": false, "http://mail.yahoo.com/": false, "http://www.adobe.com/": false,
	}
	for _, compat := range []bool{false, true} {
		allow, deny := must[Filter](t)(ParseDomain(strings.NewReader(file), Options{compat})), must[Filter](t)(ParseDomainDeny(strings.NewReader(file), Options{compat}))
		list.check(t, allow)
		complement := verdicts{}
		for u, accepted := range list {
			complement[u] = !accepted
		}
		complement.check(t, deny)
		verdicts{"file:/x": false, "whois:/x": false, "wiki://apache.org/": !compat}.check(t, allow)
		verdicts{"file:/x": compat, "whois:/x": false, "wiki://example.org/": !compat}.check(t, deny)
	}
	// An entry lists itself, and the hosts whose suffix or registered domain
	// it is.
	f := must[Filter](t)(ParseDomain(strings.NewReader("uk\na.b.example.org\nblogspot.com\nx.github.io\ncom.nn"), Options{}))
	verdicts{
		"http://example.co.uk/": false, "http://parliament.uk/": true, "http://b.example.org/": false, "http://a.b.example.org/": true,
		"http://c.a.b.example.org/": false, "http://x.y.blogspot.com/": true, "http://y.x.github.io/": false, "http://x.github.io/": true,
		"http://example.com.nn/": false, "http://com.nn/": true,
	}.check(t, f)
}

// Nutch compares the host as it is spelled, its domain without a dot at the end
// and in the spelling of the host, and its suffix in ASCII.
func TestNutchDomainSpelling(t *testing.T) {
	const file = "bücher.de\nwww.example.org\nexample.net\nxn--p1ai\n栃木.jp\n"
	list := func(nutch bool) verdicts {
		return verdicts{
			"http://bücher.de/": nutch, "http://WWW.BÜCHER.de/": nutch, "http://xn--bcher-kva.de/": !nutch,
			"http://www.example.org./": !nutch, "http://www.example.org/": true, "http://www.example.net./": true, "http://www.example.net/": true,
			"http://www.нэб.рф/": nutch, "http://xn--90ax2c.xn--p1ai/": true, "http://www.栃木.jp/": false, "http://栃木.jp/": nutch,
		}
	}
	for _, compat := range []bool{false, true} {
		f := must[Filter](t)(ParseDomain(strings.NewReader(file), Options{compat}))
		list(compat).check(t, f)
	}
	f := must[Filter](t)(ParseDomain(strings.NewReader(file), Options{NutchCompat: true}))
	for url, want := range map[string]string{
		"http://www.bücher.de/": "line 1: bücher.de", "http://www.example.net./": "line 3: example.net", "http://www.нэб.рф/": "line 4: xn--p1ai",
		"http://www.example.com/": "", "wiki://example.net/": "",
	} {
		if got := explain(f, url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// Registered domains and suffixes as Nutch's TestURLUtil has them.
func TestNutchDomainOf(t *testing.T) {
	for _, c := range [][3]string{
		{"lucene.apache.org", "org", "apache.org"}, {"en.wikipedia.org", "org", "wikipedia.org"}, {"140.211.11.130", "", "140.211.11.130"},
		{"www.example.co.uk", "co.uk", "example.co.uk"}, {"com", "com", "com"}, {"www.example.co.uk.com", "com", "uk.com"},
		{"example.com.nn", "", "example.com.nn"}, {"", "", ""}, {"www.edu.tr.xyz", "xyz", "tr.xyz"}, {"www.example.c.se", "c.se", "example.c.se"},
		{"subdomain.example.edu.tr", "edu.tr", "example.edu.tr"}, {"subdomain.example.presse.fr", "fr", "presse.fr"}, {"[::1]", "", "[::1]"},
		{"www.taiuru.xn--mori-qsa.nz", "xn--mori-qsa.nz", "taiuru.xn--mori-qsa.nz"}, {"www.example.plc.co.im", "plc.co.im", "example.plc.co.im"},
		{"foo.blogspot.com", "com", "blogspot.com"}, {"localhost", "", "localhost"},
		{"lucene.apache.org.", "org", "apache.org"}, {"www.example.flå.no", "xn--fl-zia.no", "example.flå.no"},
		{"www.example.栃木.jp", "xn--4pvxs.jp", "example.栃木.jp"}, {"www.taiuru.māori.nz", "xn--mori-qsa.nz", "taiuru.māori.nz"},
	} {
		if suffix, domain := domainNutch(c[0]); suffix != c[1] || domain != c[2] {
			t.Errorf("%s: %q, %q, want %q", c[0], suffix, domain, c[1:])
		}
	}
}

func TestNutchValidator(t *testing.T) {
	verdicts{
		"":                                       false,
		"example.com/file[/].html":               false,
		"http://www.example.com/space here.html": false,
		"/main.html":                             false,
		"www.example.com/main.html":              false,
		"ftp:www.example.com/main.html":          false,
		"http://999.000.456.32/nutch/trunk/README.txt":                                                        false,
		" http://www.example.com/ma|in\\toc.html":                                                             false,
		"https://issues.apache.org/jira/NUTCH-1127":                                                           true,
		"http://domain.tld/function.cgi?url=http://fonzi.com/&amp;name=Fonzi&amp;mood=happy&amp;coat=leather": true,
		"http://validator.w3.org/feed/check.cgi?url=http%3A%2F%2Ffeeds.feedburner.com%2Fperishablepress":      true,
		"ftp://alfa.bravo.pi/mike/check/plan.pdf":                                                             true,
		// Not in the list.
		"http://192.0.2.7/": true, "http://192.0.2.256/": false, "http://192.0.2/": false, "http://localhost/": false, "http://example.c/": false,
		"http://example.1om/": false, "http://a_b.example.com/": false, "http://user@example.com/": false, "http://[::1]/": false,
		"http://example.com:80": true, "http://example.com:": false, "http://example.com:123456/": false, "http://example.com:8x/": false,
		"http://example.com?x[]": true, "http://example.com#x|": true, "http://example.com/x|": false, "h2://example.com/": false,
		"http:///x": false, "http://example.com/..": false, "http://example.com/a/b/..": true, "http://example.com/a//b/..": true, "http://example.com/a/..": false,
		"http://example.com/\u00e4": false, "http://.example.com/": false, "http://a..com/": false, "http://example.com./": false,
	}.check(t, validator{})
}

func TestExemptions(t *testing.T) {
	e := &Exemptions{must[Filter](t)(NewRegex("# images", `+(?i)\.(jpg|png|gif)$`, "-."))}
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"http://a.example/", "http://b.example/x.PNG", true}, {"http://a.example/", "http://b.example/x", false},
		{"", "http://b.example/x.png", false}, {"http://a.example/", "", false},
	} {
		if got := e.Exempt(c.from, c.to); got != c.want {
			t.Errorf("%q to %q: %v", c.from, c.to, got)
		}
	}
	if new(Exemptions).Exempt("a", "b") || e.Explain("x.png") != `line 2: +(?i)\.(jpg|png|gif)$` {
		t.Error(e.Explain("x.png"))
	}
	path := filepath.Join(t.TempDir(), "db-ignore-external-exemptions.txt")
	if _, err := OpenExemptions(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	write(t, path, "# as it is shipped\n", time.Hour)
	e = must[*Exemptions](t)(OpenExemptions(path))
	if e.Exempt("a", "b") {
		t.Error("without rules something is exempt")
	}
	write(t, path, "+b", time.Hour)
	if changed, err := e.Reload(); !changed || err != nil || !e.Exempt("a", "b") {
		t.Error(changed, err)
	}
	if changed, err := new(Exemptions).Reload(); changed || err != nil {
		t.Error(changed, err)
	}
}

// What a file that is missing or without rules means.
func TestNutchMissingFile(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.txt")
	write(t, empty, "# nothing\n", time.Hour)
	for name, c := range map[string]struct {
		parse func(io.Reader, Options) (Filter, error)
		want  bool // what Nutch's does with three seeds, as with any
		null  bool // an empty list is a list
	}{
		"regex":       {ParseRegex, false, false},
		"automaton":   {ParseAutomaton, false, false},
		"prefix":      {ParsePrefix, false, false},
		"suffix":      {ParseSuffix, false, false},
		"domain":      {ParseDomain, true, false},
		"domain deny": {ParseDomainDeny, true, true},
	} {
		for _, path := range []string{empty, filepath.Join(dir, name)} {
			_, err := OpenFilter(path, c.parse, Options{})
			missing := path != empty
			switch {
			case missing && !errors.Is(err, fs.ErrNotExist),
				!missing && !c.null && !errors.Is(err, errNoRules),
				!missing && c.null && err != nil:
				t.Errorf("%s: %s: %v", name, path, err)
			case err != nil && !strings.Contains(err.Error(), path):
				t.Errorf("%s: %v does not name the file", name, err)
			}
			f := must[Filter](t)(OpenFilter(path, c.parse, Options{NutchCompat: true}))
			for _, u := range []string{"http://a.example/", "http://b.example/", "http://c.example/"} {
				if f.Accept(u) != c.want {
					t.Errorf("%s: %s: %s: %v", name, path, u, !c.want)
				}
			}
			if changed, err := reload(f); changed || err != nil {
				t.Errorf("%s: %v, %v", name, changed, err)
			}
		}
		// A file that turns up later counts, and must not vanish again.
		path := filepath.Join(dir, "late")
		f := must[Filter](t)(OpenFilter(path, c.parse, Options{NutchCompat: true}))
		write(t, path, "+\n", time.Hour)
		if name == "automaton" || name == "regex" || name == "suffix" || name == "prefix" {
			if changed, err := reload(f); !changed || err != nil {
				t.Errorf("%s: %v, %v", name, changed, err)
			}
			os.Remove(path)
			if changed, err := reload(f); changed || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: gone: %v, %v", name, changed, err)
			}
		}
		os.Remove(path)
	}
}

func openFast(path string) (Filter, error) {
	return OpenFilter(path, func(r io.Reader, o Options) (Filter, error) {
		return ParseFast(r, FastOptions{NutchCompat: o.NutchCompat})
	}, Options{})
}

func TestFastFile(t *testing.T) {
	dir := t.TempDir()
	const rules = "Domain example.com\nDenyPath ^/x\n"
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte(rules))
	w.Close()
	plain, gz := filepath.Join(dir, "fast.txt"), filepath.Join(dir, "fast.txt.gz")
	write(t, plain, rules, time.Hour)
	write(t, gz, zipped.String(), time.Hour)
	for _, path := range []string{plain, gz, "file:" + plain, "file://" + plain, "testdata/fast-urlfilter.txt.bz2"} {
		f := must[Filter](t)(openFast(path))
		verdicts{"http://a.example.com/x": false, "http://a.example.com/y": true}.check(t, f)
		if rule := explain(f, "http://example.com/x"); !strings.HasSuffix(rule, ":2: DenyPath ^/x") {
			t.Error(rule)
		}
	}
	missing := filepath.Join(dir, "missing")
	if _, err := OpenFilter(missing, func(r io.Reader, _ Options) (Filter, error) {
		return ParseFast(r, FastOptions{NutchCompat: true})
	}, Options{NutchCompat: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file, which has no empty form: %v", err)
	}
	write(t, gz, rules, time.Hour)
	for _, path := range []string{gz, "file://elsewhere/x", "file:", "hdfs://x/y"} {
		if _, err := openFast(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
