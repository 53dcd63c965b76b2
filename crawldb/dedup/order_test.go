package dedup

import (
	"math"
	"testing"
)

// preferred is positive if a is to be the original in Nutch's order of comparison.
func preferred(t *testing.T, order string, a, b string) int {
	t.Helper()
	o, err := ParseOrder(order)
	if err != nil {
		t.Fatal(err)
	}
	return nutch(o, &page{url: a, length: -1}, &page{url: b, length: -1})
}

// TestCompareURLs has the pairs of Nutch's TestCrawlDbDeduplication.
func TestCompareURLs(t *testing.T) {
	for _, c := range []struct {
		order, keep, duplicate string
	}{
		{"httpsOverHttp", "https://nutch.apache.org/", "http://nutch.apache.org/"},
		{"urlLength", "http://nutch.apache.org/", "https://nutch.apache.org/"},
		{"httpsOverHttp,urlLength", "https://nutch.apache.org/", "http://nutch.apache.org/"},
		{"urlLength", "https://example.com/b%C3%BCcher", "https://example.com/buecher"},
		{"urlLength", "https://example.com/%YR", "https://example.com/%YR%YR"},
	} {
		if got := preferred(t, c.order, c.keep, c.duplicate); got <= 0 {
			t.Errorf("%s: %s does not stay before %s", c.order, c.keep, c.duplicate)
		}
		if got := preferred(t, c.order, c.duplicate, c.keep); got >= 0 {
			t.Errorf("%s: %s stays before %s", c.order, c.duplicate, c.keep)
		}
	}
	for _, c := range [][3]string{
		{"httpsOverHttp,urlLength", "https://example.com/", "https://example.com/"},
		{"httpsOverHttp", "https://example.com/a", "http://example.com/b"},
		{"httpsOverHttp", "https://example.com/", "http://www.example.com/"},
	} {
		if got := preferred(t, c[0], c[1], c[2]); got != 0 {
			t.Errorf("%s tells %s from %s", c[0], c[1], c[2])
		}
	}
}

func TestDecodedLength(t *testing.T) {
	for url, want := range map[string]int{
		"":             0,
		"abc":          3,
		"a+b":          3,
		"b%C3%BCcher":  6,
		"%41%42":       2,
		"%F0%9D%92%B3": 2, // beyond the basic plane: two units
		"𝒳":            2,
		"é":            1,
		"%":            1,
		"%4":           2,
		"%4g%41":       6, // one bad sequence, and all stand as they are
		"%E2%82":       1, // the beginning of a character
		"%E2%82x":      2,
		"%E2%82%AC":    1,
		"%C3%28":       2,
		"%F0%90%28":    2,
		"%FF%FE":       2,
		"%ED%A0%80":    1, // half of a pair, as Java has it: one error, whole or not
		"%ED%A0":       1,
		"%ED%A0%FF":    2,
		"%ED%A0%C3%BC": 2,
		"%E0%80%80":    3,
		"%F4%90%80%80": 4,
		"%F0%80%80":    3,
		"%F8%80":       2,
		"%F0%9F%98%ED": 2,
		"%+e":          1, // a sign is a digit for Java
		"%-0":          1,
		"%-1":          3,
		"%1+":          3,
		"%+":           2,
		"%+g":          3,
		"%C3\xbc":      2, // decoded apart from what is no sequence
	} {
		if got := decodedLength(url); got != want {
			t.Errorf("%q has %d units, want %d", url, got, want)
		}
	}
}

func TestParseOrder(t *testing.T) {
	for _, s := range []string{"", "score,", "score,time", "Score", "score,score", "score;fetchTime"} {
		if o, err := ParseOrder(s); err == nil {
			t.Errorf("%q is %v", s, o)
		}
	}
	o, err := ParseOrder("httpsOverHttp, urlLength,fetchTime,score")
	if err != nil || len(o) != 4 || o[0] != HTTPSOverHTTP || o[3] != Score {
		t.Errorf("%v, %v", o, err)
	}
	for _, g := range []Group{ByNone, ByHost, ByDomain} {
		if got, err := ParseGroup(g.String()); err != nil || got != g {
			t.Errorf("%v: %v, %v", g, got, err)
		}
	}
	if _, err := ParseGroup("byHost"); err == nil {
		t.Error("byHost is a group")
	}
}

func TestOrderWithoutNumber(t *testing.T) {
	nan, one := &page{url: "http://b/", key: "b", score: float32(math.NaN())}, &page{url: "http://a/", key: "a", score: 1}
	if nutch([]Criterion{Score}, nan, one) != 0 || nutch([]Criterion{Score}, one, nan) != 0 {
		t.Error("Nutch tells a score that is no number from one")
	}
	if better([]Criterion{Score}, nan, one) || !better([]Criterion{Score}, one, nan) {
		t.Error("a score that is no number is not the lowest")
	}
}

func FuzzDecodedLength(f *testing.F) {
	f.Add("http://example.com/b%C3%BCcher?q=a+b%")
	f.Add("\xe2\x82%E2%82%AC%ED%A0")
	f.Fuzz(func(t *testing.T, url string) {
		if n := decodedLength(url); n < 0 || n > len(url) || (n == 0) != (url == "") {
			t.Errorf("%q has %d units", url, n)
		}
	})
}
