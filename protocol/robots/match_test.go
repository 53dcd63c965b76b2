package robots

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
)

// model is a rule as a regular expression.
func model(pattern string) *regexp.Regexp {
	pattern, anchored := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(canonicalPath(p))
	}
	expr := `\A` + strings.Join(parts, ".*")
	if anchored {
		expr += `\z`
	}
	return regexp.MustCompile(expr)
}

func TestMatchAgainstModel(t *testing.T) {
	testlevel.SkipInRace(t)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	text := func(alphabet string) string {
		var b strings.Builder
		for range rnd.IntN(9) {
			b.WriteByte(alphabet[rnd.IntN(len(alphabet))])
		}
		return b.String()
	}
	matched := 0
	const n = 20_000
	for range n {
		pattern, path := text("//aab*****$%"), "/"+text("/aaaaabb$*%")
		r := newRule(pattern, true)
		want := model(pattern).MatchString(canonicalPath(path))
		if want {
			matched++
		}
		if got := r.match(canonicalPath(path)); got != want {
			t.Fatalf("seed %d: %q matches %q: %v, want %v", seed, pattern, path, got, want)
		}
	}
	if matched < n/20 {
		t.Errorf("only %d of %d patterns matched: the test shows little", matched, n)
	}
}

// FuzzMatch: a rule and a path of any bytes, against the model.
func FuzzMatch(f *testing.F) {
	f.Add("/a*b$", "/axxb")
	f.Add("/%C3%a9**$", "/\xc3\xa9")
	f.Add("*%2a$*", "/*$")
	f.Add("/"+strings.Repeat("a*", 50)+"b", "/"+strings.Repeat("a", 100))
	f.Fuzz(func(t *testing.T, pattern, path string) {
		path = canonicalPath("/" + path)
		if len(pattern) > 500 {
			return // the model would take long
		}
		r := newRule(pattern, false)
		want := model(pattern).MatchString(path)
		if got := r.match(path); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, path, got, want)
		}
		// Among other rules it is found if it is the one that wins.
		others := []rule{newRule("/", true), newRule("/a", false), newRule("/a*", true), newRule("/*b$", false), newRule(path+"$", true), r}
		set, _ := newRuleSet(others)
		var best *rule
		for i := range others {
			if o := &others[i]; o.match(path) && (best == nil || wins(o, best) < 0) {
				best = o
			}
		}
		if got := set.find(path); *got != *best {
			t.Fatalf("%q with %q: found %+v, want %+v", path, pattern, *got, *best)
		}
	})
}

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ in, path, pattern string }{
		{"/", "/", "/"},
		{"/a?b=c&d", "/a?b=c&d", "/a?b=c&d"},
		{"/%7e%41%2d", "/~A-", "/~A-"},
		{"/%2f%3A", "/%2F%3A", "/%2F%3A"},
		{"/%c3%a9é", "/%C3%A9%C3%A9", "/%C3%A9%C3%A9"},
		{"/a*b", "/a%2Ab", "/a*b"},
		{"/a***b**", "/a%2A%2A%2Ab%2A%2A", "/a*b*"},
		{"/%2a%2A*", "/%2A%2A%2A", "/%2A%2A*"},
		{"/$%24", "/%24%24", "/%24%24"},
		{"/%", "/%", "/%"},
		{"/%4", "/%4", "/%4"},
		{"/%zz%41", "/%zzA", "/%zzA"},
		{"/%2541", "/%2541", "/%2541"}, // decoded once, not twice
		{"/ \"<>\\^`{|}\x7f\x01", "/%20%22%3C%3E%5C%5E%60%7B%7C%7D%7F%01", "/%20%22%3C%3E%5C%5E%60%7B%7C%7D%7F%01"},
	} {
		if got := canonical(tt.in, false); got != tt.path {
			t.Errorf("path %q: %q, want %q", tt.in, got, tt.path)
		}
		if got := canonical(tt.in, true); got != tt.pattern {
			t.Errorf("pattern %q: %q, want %q", tt.in, got, tt.pattern)
		}
	}
}

// fiftyStars is a rule on which backtracking matchers take forever, and a path of
// 8 KiB that almost matches.
func fiftyStars() (*Rules, string) {
	file := "User-agent: *\nDisallow: /" + strings.Repeat("a*", 50) + "b\n"
	return Parse([]byte(file), ""), "/" + strings.Repeat("a", 8<<10)
}

func TestMatchOf50StarsIsLinear(t *testing.T) {
	r, path := fiftyStars()
	best := time.Hour
	for range 10 { // the best of ten is the code, the others are the machine
		start := time.Now()
		if !r.Allowed(path) || r.Allowed(path+"b") {
			t.Fatal("wrong")
		}
		best = min(best, time.Since(start))
	}
	if best > time.Millisecond {
		t.Errorf("two matches take %v", best)
	}
}

func BenchmarkMatch50Stars(b *testing.B) {
	r, path := fiftyStars()
	for b.Loop() {
		r.Allowed(path)
	}
}

func BenchmarkParse10000Rules(b *testing.B) {
	var s strings.Builder
	s.WriteString("User-agent: *\n")
	for i := range 10_000 {
		s.WriteString("Disallow: /dir" + strings.Repeat("x", i%10) + "*/p\n")
	}
	body := []byte(s.String())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(body, "bot")
	}
}
