package javaregex

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestReplacer(t *testing.T) {
	for _, c := range []struct{ pattern, substitution, in, out string }{
		{`(a)(b)?`, "[$1$2]", "ab a", "[ab] [a]"},
		{`(a)`, "$10", "a", "a0"}, // there is no group 10
		{`(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)`, "$10$1", "abcdefghij", "ja"},
		{`a`, `\$1\\\n`, "a", `$1\n`},
		{`(?<x>a)b`, "${x}", "ab", "a"},
		{`a`, "$0$0", "a", "aa"},
		{`a|(b)`, "<$1>", "ab", "<><b>"},
		{`\x61`, "b", "a", "b"},
		{`x*$`, "", "axx", "a"},
		{`x*`, "-", "axxb", "-a--b-"}, // empty right behind "xx"
		{`(?:)`, "-", "aä", "-a-ä-"},
		{`x*$`, "-", "axx", "a--"},
	} {
		r, err := NewReplacer(c.pattern, c.substitution)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if got := r.Replace(c.in); got != c.out {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	for _, r := range [][2]string{
		{"(", ""}, {"a", "$"}, {"a", "$x"}, {"a", "$1"}, {"a", `\`}, {"a", "${x}"}, {"a", "${"}, {"a", "${}"},
		{`(a)\1`, ""}, {"a(?!b)", ""}, {"(?<=a)b", ""}, {"a++", ""}, {"(?>a)", ""}, {"(?<!:)/{3,}", ""},
	} {
		if _, err := NewReplacer(r[0], r[1]); err == nil {
			t.Errorf("%q: no error", r)
		}
	}
}

// A rule with its prefilter does the same as without, and the rule matched by hand does what
// its look-behind says.
func TestPrefiltersAreExact(t *testing.T) {
	rules := []string{
		`(?i)(;?\b_?(l|j|bv_)?(sid|phpsessid|sessionid)=.*?)(\?|&|#|$)`, `#.*?(\?|&|$)`, `\?&`, `&{2,}`, `[\?&\.]$`, `^file://+`,
		`(?i)/(?:index|default)\.(?:jsp[xaf]?|[as]hx?)([?&#]|$)`,
		`(a|bb)+c`, `a{2,3}b?c`, `x?y?z?`, `(?i)[ks]id`, `(ab|abc|b)d`, `[ab][cd][^e]f`, `ä+b`, `\bsid\b`, `^a|b$`, `(a?b?){2}c`, `a(b|c)*d`, `.*a.`, `[^a]b`, `(?i)ä=`, `(a|b|)=`,
	}
	pieces := strings.Split("a b c d e f x y z S k K ſ s i id sid SID jsessionid= PHPSESSID= = ? & && # / // : . file:// http:// index.html default.php ä Ä aa bb ; _ l bv_ \n \xff", " ")
	r := rand.New(rand.NewPCG(1, 2))
	filters := 0
	for _, pattern := range rules {
		c, err := NewReplacer(pattern, "<$0>")
		if err != nil {
			t.Fatal(err)
		}
		if c.mayMatch == nil {
			continue
		}
		filters++
		passed := 0
		for range 3000 {
			url := ""
			for range r.IntN(12) {
				url += pieces[r.IntN(len(pieces))]
			}
			if c.mayMatch(url) {
				passed++
			} else if c.matches(url) != nil {
				t.Fatalf("%s: the prefilter says no to %q", pattern, url)
			}
		}
		if passed == 3000 {
			t.Errorf("%s: the prefilter is of no use", pattern)
		}
	}
	if filters < len(rules)-2 {
		t.Errorf("only %d of %d rules have a prefilter", filters, len(rules))
	}

	// The look-behind as a group that the substitution puts back.
	plain := regexp.MustCompile(`(^|[^:/]|:/)/{2,}`)
	slashes, err := NewReplacer(slashPattern, "/")
	if err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		url := ""
		for range r.IntN(10) {
			url += []string{"/", "//", ":", "a"}[r.IntN(4)]
		}
		want := plain.ReplaceAllString(url, "$1/")
		if got := slashes.Replace(url); got != want {
			t.Fatalf("%q: got %q, want %q", url, got, want)
		}
	}
}

// A foreign pattern is refused or takes a bounded time, and what is decided without package regexp
// is what package regexp says.
func FuzzReplacer(f *testing.F) {
	f.Add("http://foo.com/foo.php?f=2&PHPSESSID=1&q=3", `(a|b)=.*?(&|$)`, "$2")
	f.Add("file:///a//b?&&x#y", slashPattern, "/")
	f.Add("http://h/index.html", `(?i)/index\.html?$`, "/")
	f.Fuzz(func(t *testing.T, text, pattern, substitution string) {
		r, err := NewReplacer(pattern, substitution)
		if err != nil {
			return
		}
		if r.mayMatch != nil && !r.mayMatch(text) && r.matches(text) != nil {
			t.Fatalf("%q: the prefilter says no to %q", pattern, text)
		}
		if len(text) < 1000 && len(substitution) < 100 {
			r.Replace(text)
		}
	})
}
