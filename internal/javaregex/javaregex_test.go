package javaregex

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/testlevel"
)

const (
	loop        = "http://www.nutch.org/abcd/foo/bar/foo/bar/foo/"
	loopBetween = "http://www.nutch.org/abcd/foo/bar/xyz/foo/bar/foo/"
)

// shipped are patterns of Nutch's regex-urlfilter.txt, now and formerly.
var shipped = []string{
	`^(?:file|ftp|mailto):`,
	`(?i)\.(?:gif|jpg|png|ico|css|sit|eps|wmf|zip|ppt|mpg|xls|gz|rpm|tgz|mov|exe|jpeg|bmp|js)$`,
	`\.(gif|GIF|jpg|JPG|png|PNG|ico|ICO|css|CSS|sit|SIT|eps|EPS|wmf|WMF|zip|ZIP|ppt|PPT|mpg|MPG|xls|XLS|gz|GZ|rpm|RPM|tgz|TGZ|mov|MOV|exe|EXE|jpeg|JPEG|bmp|BMP|js|JS)$`,
	`[?*!@=]`,
	`.`,
}

// What Java's own classes said of each pattern and text: see testdata/README.md.
func TestPatternsAsInJava(t *testing.T) {
	for file, compile := range map[string]func(string) (func(string) bool, error){
		"testdata/java-patterns.jsonl": Compile, "testdata/automaton-patterns.jsonl": CompileAutomaton,
	} {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var texts []string
		for s := bufio.NewScanner(f); s.Scan(); {
			var c struct {
				Texts   []string
				Pattern string
				Java    *bool
				Refused bool
				Matches []string
			}
			if err := json.Unmarshal(s.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			if c.Texts != nil {
				texts = c.Texts
				continue
			}
			match, err := compile(c.Pattern)
			if refused := c.Refused || c.Java != nil; (err != nil) != refused {
				t.Errorf("%q: %v, refused %v", c.Pattern, err, refused)
			}
			if err != nil {
				continue
			}
			for _, text := range texts {
				if got, want := match(text), slices.Contains(c.Matches, text); got != want {
					t.Errorf("%s: %q on %q: %v", file, c.Pattern, text, got)
				}
			}
		}
		if texts == nil {
			t.Errorf("%s is empty", file)
		}
	}
}

func TestRepetitionsBeyondThoseOfRegexp(t *testing.T) {
	for pattern, c := range map[string]struct{ least, most int }{
		`^.{2049,}`: {2049, 1 << 20}, `^.{2048,}$`: {2048, 1 << 20}, `.{2048,}`: {2048, 1 << 20}, `^x{1500}$`: {1500, 1500}, `^x{1200,2300}$`: {1200, 2300},
		`^x{0,1001}$`: {0, 1001}, `^x{3000,3000}$`: {3000, 3000}, `^[^/]{1000,2000}$`: {1000, 2000}, `x{1001,}$`: {1001, 1 << 20},
	} {
		match, err := Compile(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		for _, n := range []int{0, c.least - 1, c.least, c.most, c.most + 1} {
			if n < 0 || n > 10_000 {
				continue
			}
			if got, want := match(strings.Repeat("x", n)), c.least <= n && n <= c.most; got != want {
				t.Errorf("%s on %d x: %v", pattern, n, got)
			}
		}
	}
	for _, pattern := range []string{`x{100000}`, `(x){2000}`, `(?:x{100}){200}`, strings.Repeat("(", 300) + strings.Repeat(")", 300)} {
		if _, err := Compile(pattern); err == nil {
			t.Errorf("%s: no error", pattern)
		}
	}
}

// A short pattern does not become a long one before it is refused.
func TestNestedRepetitionsAreRefusedEarly(t *testing.T) {
	pattern := "x"
	for range 7 {
		pattern = "(?:" + pattern + "){9999}"
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Compile(pattern); err == nil {
		t.Error("no error")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
		t.Errorf("it took %d bytes", took)
	}
}

// plainly matches with package regexp alone.
func plainly(p *pattern) (func(string) bool, error) {
	source, err := p.re2()
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	return func(url string) bool {
		return re.MatchString(url) || p.uses(opEnd) && re.MatchString(trimLineEnd(url))
	}, nil
}

// What is matched by hand is what package regexp matches.
func TestMatchersByHand(t *testing.T) {
	testlevel.SkipInRace(t)
	pieces := []string{"a", "b", "A", ".", `\.`, "/", "[ab]", "[^a]", "[?*!@=]", "(?i)", "(?:", "(", ")", ")", "|", "*", "+", "?", "{2}", "{1,3}", "^", "$", "é", `\z`, `\b`, "gif", "http", ".*", ".+", "[a-z]+", "(?s)", "\ufffd"}
	words := []string{"a", "b", "A", "c", ".", "/", "?", "é", "\xff", "\n", "\r\n", "gif", "GIF", "http", "\ufffd", "\u2028"}
	r := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 20_000 {
		text := ""
		for range 1 + r.IntN(7) {
			text += pieces[r.IntN(len(pieces))]
		}
		p, err := parse(text)
		if err != nil {
			continue
		}
		match, err := compile(p)
		want, err2 := plainly(p)
		if err != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", text, err, err2)
		}
		compared++
		for range 8 {
			url := ""
			for range r.IntN(6) {
				url += words[r.IntN(len(words))]
			}
			if match(url) != want(url) {
				t.Fatalf("%q on %q: %v by hand, %v by regexp", text, url, match(url), want(url))
			}
		}
	}
	if compared < 2000 {
		t.Errorf("only %d patterns were any good", compared)
	}
	for _, rule := range shipped {
		p, err := parse(rule)
		if err != nil {
			t.Fatal(err)
		}
		if byHand(p.trim()) == nil {
			t.Errorf("%s is not matched by hand", rule)
		}
	}
}

// A string that is looked for does not grow with the pattern, nor does the time to find it
// with the cube of that.
func TestLongPatternsNeedShortStrings(t *testing.T) {
	p, err := parse(strings.Repeat("abcdefgh", 200) + `[xy]*z\d+`)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range required(p) {
		if len(s) != enoughRequired {
			t.Errorf("%d bytes are looked for", len(s))
		}
	}
	match, err := Compile(strings.Repeat("abcdefgh", 200) + `[xy]*z\d+`)
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{strings.Repeat("abcdefgh", 200) + "xz1": true, strings.Repeat("abcdefgh", 199) + "xz1": false} {
		if match(url) != want {
			t.Errorf("%d bytes: matched %v", len(url), !want)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, p := range shipped {
		f.Add(p, "http://example.com/a.GIF?b=c\n")
	}
	f.Add(`(?i)[^\w&&[a-c]]{2,3}?x|\Q.\E$`, "é.\r\n")
	f.Fuzz(func(t *testing.T, text, url string) {
		p, err := parse(text)
		if err != nil {
			return
		}
		match, err := compile(p)
		want, err2 := plainly(p)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %v, %v", text, err, err2)
		}
		if err == nil && match(url) != want(url) {
			t.Fatalf("%q on %q: %v by hand, %v by regexp", text, url, match(url), want(url))
		}
	})
}

// loops is what the two patterns against loops mean, by trying everything: the
// first group, and for each what may be between.
func loops(url string, parts bool) bool {
	r := []rune(url)
	is := func(i int, part []rune) bool { return i+len(part) <= len(r) && slices.Equal(r[i:i+len(part)], part) }
	// after returns all places after the text between two groups.
	after := func(i int) (ends []int) {
		if parts { // .*?
			ends = append(ends, i)
			for ; i < len(r) && !strings.ContainsRune(lineEnds, r[i]); i++ {
				ends = append(ends, i+1)
			}
			return ends
		}
		for ; i < len(r) && r[i] != '/'; i++ { // [^/]+
			ends = append(ends, i+1)
		}
		return ends
	}
	for start := range r {
		if r[start] != '/' {
			continue
		}
		for end := start + 2; end <= len(r); end++ {
			if c := r[end-1]; parts && strings.ContainsRune(lineEnds, c) || !parts && c == '/' {
				break
			}
			group := r[start:end]
			closed := append(slices.Clone(group), '/')
			if !is(start, closed) {
				continue
			}
			for _, i := range after(end + 1) {
				if !is(i, closed) {
					continue
				}
				for _, j := range after(i + len(closed)) {
					if is(j, closed) {
						return true
					}
				}
			}
		}
	}
	return false
}

func checkLoops(t *testing.T, url string) {
	t.Helper()
	if got, want := RepeatsSegment(url), loops(url, false); got != want {
		t.Fatalf("segments: %q: %v", url, got)
	}
	if got, want := RepeatsPart(url), loops(url, true); got != want {
		t.Fatalf("parts: %q: %v", url, got)
	}
}

func TestLoopsAsByExhaustiveSearch(t *testing.T) {
	for _, u := range []string{loop, loopBetween, "//a//a//a/", "///////", "//////", "/a/a/a/a/", "/a/\n/a//a/", "/ab/a/ab/b/ab/", "/a/b/a/b/a/b/a/b", ""} {
		checkLoops(t, u)
	}
	pieces := []string{"/", "/", "a", "b", "/a/", "/b/", "//", "\n", "é", "\u2028", "/a/b"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		url := ""
		n := 6 + r.IntN(6)
		for range r.IntN(24) {
			url += pieces[r.IntN(min(n, len(pieces)))]
		}
		checkLoops(t, url)
	}
	// Many parts.
	many := ""
	for i := range 100 {
		many += fmt.Sprintf("/p%d/", i)
	}
	if RepeatsPart(many+many) || !RepeatsPart(many+many+many) || !RepeatsPart(many+"/x/"+many+"/x/y/x/") {
		t.Error("among many parts the one that is repeated is lost")
	}
}

func FuzzLoops(f *testing.F) {
	f.Add(loop)
	f.Add("//a//a\u2028//a///")
	f.Fuzz(func(t *testing.T, url string) {
		if len(url) < 100 && utf8.ValidString(url) {
			checkLoops(t, url)
		}
		RepeatsSegment(url)
		RepeatsPart(url)
	})
}

func TestRepeatsSegment(t *testing.T) {
	// What the back-references mean, spelled out.
	naive := func(url string) bool {
		segs := strings.Split(url, "/")
		for i := 1; i+5 < len(segs); i++ {
			s := segs[i : i+5]
			if s[0] != "" && s[1] != "" && s[3] != "" && s[0] == s[2] && s[2] == s[4] {
				return true
			}
		}
		return false
	}
	for url, want := range map[string]bool{
		"http://h/a/b/a/c/a/":  true,
		"http://h/a/b/a/c/a":   false,
		"http://h/a/b/a/c/ab/": false,
		"http://h/a/a/a/":      false,
		"http://h/a/a/a/a/a/":  true,
		"http://a/b/a/c/a/":    true,
		"http://h/a//a//a/":    false,
		"a/b/a/b/a/":           false,
		"/a/b/a/b/a/":          true,
		"":                     false,
	} {
		if got := RepeatsSegment(url); got != want || naive(url) != want {
			t.Errorf("%q: %v, naively %v, want %v", url, got, naive(url), want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		b := make([]byte, r.IntN(24))
		for i := range b {
			b[i] = "//ab"[r.IntN(4)]
		}
		if got := RepeatsSegment(string(b)); got != naive(string(b)) {
			t.Fatalf("%q: %v, naively %v", b, got, naive(string(b)))
		}
	}
}
