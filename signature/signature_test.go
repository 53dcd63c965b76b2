package signature_test

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/signature"
)

const url = "http://example.com/"

func sum(s signature.Signature, body, text string) string {
	return hex.EncodeToString(s.Sum(&page.Content{URL: url, Body: []byte(body)}, &page.Parsed{Text: text}))
}

// TestNutch compares with digests that Nutch computed.
func TestNutch(t *testing.T) {
	f, err := os.Open("testdata/nutch.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct {
			Text, Body, MD5, TextMD5, TextProfile string
			Repeat                                []struct {
				Text  string
				Times int
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Repeat {
			c.Text += strings.Repeat(r.Text, r.Times)
		}
		for _, g := range []struct {
			s    signature.Signature
			want string
		}{
			{signature.MD5{}, c.MD5},
			{signature.TextMD5{NutchCompat: true}, c.TextMD5},
			{signature.TextProfile{NutchCompat: true}, c.TextProfile},
		} {
			if got := sum(g.s, c.Body, c.Text); g.want != "" && got != g.want {
				t.Errorf("%s of %.60q is %s, want %s", g.s.Name(), c.Text+c.Body, got, g.want)
			}
		}
		// Without NutchCompat only a text without words is another one.
		got, want := sum(signature.TextProfile{}, c.Body, c.Text), c.TextProfile
		if want == hex.EncodeToString(md5.New().Sum(nil)) {
			want = c.TextMD5
		}
		if want != "" && got != want {
			t.Errorf("TextProfile of %.60q is %s, want %s", c.Text, got, want)
		}
		// Without it a text of the basic plane is as in Nutch, and any other in
		// UTF-8.
		got, want = sum(signature.TextMD5{}, c.Body, c.Text), c.TextMD5
		if strings.ContainsFunc(c.Text, func(r rune) bool { return r > 0xffff }) {
			d := md5.Sum([]byte(c.Text))
			want = hex.EncodeToString(d[:])
		}
		if want != "" && got != want {
			t.Errorf("TextMD5 of %.60q is %s, want %s", c.Text, got, want)
		}
	}
}

// TestRandomTexts compares with another implementation, in Java.
func TestRandomTexts(t *testing.T) {
	f, err := os.Open("testdata/random.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var c struct {
			MinTokenLen                int
			QuantRate                  float32
			Unsorted                   bool
			Text, TextMD5, TextProfile string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		s := signature.TextProfile{MinTokenLen: c.MinTokenLen, QuantRate: c.QuantRate, Unsorted: c.Unsorted, NutchCompat: true}
		if got := sum(s, "", c.Text); got != c.TextProfile {
			t.Errorf("%s of %q is %s, want %s", s.Name(), c.Text, got, c.TextProfile)
		}
		if got := sum(signature.TextMD5{NutchCompat: true}, "", c.Text); got != c.TextMD5 {
			t.Errorf("TextMD5 of %q is %s, want %s", c.Text, got, c.TextMD5)
		}
	}
	if n != 150 {
		t.Errorf("%d texts", n)
	}
}

func TestTextProfileIgnoresOrderAndRareWords(t *testing.T) {
	words := strings.Fields("Hello World The Quick Brown Fox Jumped Over the Lazy Fox")
	want := sum(signature.TextProfile{}, "", strings.Join(words, " "))
	for range 20 {
		rand.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		if got := sum(signature.TextProfile{}, "", strings.Join(words, "\n-- ")); got != want {
			t.Errorf("%q is another page", words)
		}
	}

	long := strings.Repeat("some words of a page that is read ", 200)
	for name, c := range map[string]struct {
		text string
		same bool
	}{
		"a date":           {long + " on 2024-02-29", true},
		"letter case":      {strings.ToUpper(long), true},
		"a word dropped":   {strings.Replace(long, "words", "", 1), false}, // 199 is rounded to 198
		"half of it again": {long + long[:len(long)/2], false},
		"a new word":       {strings.ReplaceAll(long, "read", "written"), false},
	} {
		if same := sum(signature.TextProfile{}, "", c.text) == sum(signature.TextProfile{}, "", long); same != c.same {
			t.Errorf("%s: same page %v", name, same)
		}
	}
}

func TestTextProfileParameters(t *testing.T) {
	digest := func(profile string) string {
		d := md5.Sum([]byte(profile))
		return hex.EncodeToString(d[:])
	}
	const text = "a a a a bb bb bb ccc ccc dddd"
	for _, c := range []struct {
		s       signature.TextProfile
		name    string
		profile string
	}{
		{signature.TextProfile{}, "TextProfile(2,0.01)", "ccc 2"},
		{signature.TextProfile{NutchCompat: true}, "TextProfile(2,0.01,nutch)", "ccc 2"},
		{signature.TextProfile{MinTokenLen: 1}, "TextProfile(1,0.01)", "bb 2\nccc 2"},
		{signature.TextProfile{MinTokenLen: 3}, "TextProfile(3,0.01)", "dddd 1"},
		{signature.TextProfile{MinTokenLen: -1}, "TextProfile(0,0.01)", "a 4\nbb 2\nccc 2"},
		{signature.TextProfile{MinTokenLen: -1, QuantRate: 0.625}, "TextProfile(0,0.625)", "a 3\nbb 3"}, // 2.5 is rounded up
		{signature.TextProfile{QuantRate: -1}, "TextProfile(2,0)", "ccc 2"},
		{signature.TextProfile{QuantRate: float32(math.NaN())}, "TextProfile(2,0)", "ccc 2"},
		{signature.TextProfile{Unsorted: true}, "TextProfile(2,0.01,unsorted)", "ccc 2"},
		{signature.TextProfile{QuantRate: 1e30, NutchCompat: true}, "TextProfile(2,2.1474836e+09,nutch)", ""},
	} {
		if got := sum(c.s, "", text); got != digest(c.profile) || c.s.Name() != c.name {
			t.Errorf("%s of %q is not that of %q, want name %s", c.s.Name(), text, c.profile, c.name)
		}
	}
}

// TestUnsorted compares with the order in which a HashMap of Java has the words,
// worked out by hand: String.hashCode of "aaa" is 96321, which spread is 96320 and
// lies in bucket 0 of 16, and so on.
func TestTextProfileInHashMapOrder(t *testing.T) {
	digest := func(profile string) string {
		d := md5.Sum([]byte(profile))
		return hex.EncodeToString(d[:])
	}
	s := signature.TextProfile{Unsorted: true}
	for text, profile := range map[string]string{
		"aab aaa":            "aaa 1\naab 1",
		"teheran siblings":   "siblings 1\nteheran 1",     // buckets 2 and 4
		"bbaaa aaaaa bbbbb":  "bbbbb 1\nbbaaa 1\naaaaa 1", // 1, 2 and 5
		"aaaabb aaaabb bcc":  "aaaabb 2",                  // a count of 1 is below the quantum
		"ddd aabb dccc aaBB": "aabb 2",
		"AaAa BBBB AaBB zz1": "zz1 1\naaaa 1\naabb 1\nbbbb 1", // 0, 13 twice as they came, 14
	} {
		if got := sum(s, "", text); got != digest(profile) {
			t.Errorf("%q is not %q", text, profile)
		}
	}
}

func TestSignaturesWithoutText(t *testing.T) {
	c := &page.Content{URL: url, Body: []byte("bytes")}
	want := signature.MD5{}.Sum(c, nil)
	for _, s := range []signature.Signature{signature.MD5{}, signature.TextMD5{}, signature.TextMD5{NutchCompat: true}, signature.TextProfile{}, signature.TextProfile{NutchCompat: true}} {
		if got := s.Sum(c, nil); !bytes.Equal(got, want) {
			t.Errorf("%s of content that was not parsed: %x", s.Name(), got)
		}
		if got := s.Sum(c, &page.Parsed{Title: "t"}); !bytes.Equal(got, want) {
			t.Errorf("%s of content without text: %x", s.Name(), got)
		}
	}
	one, two := sum(signature.TextProfile{}, "", "1 2"), sum(signature.TextProfile{}, "", "3 4")
	if one == two {
		t.Error("two texts without words are one page")
	}
}

// FuzzTextProfile shows that any text and any parameters have a digest, the same
// each time, and that white space at the end is no part of it.
func FuzzTextProfile(f *testing.F) {
	f.Add("Hello World The Quick Brown Fox Jumped Over the Lazy Fox", 2, float32(0.01))
	f.Add("İ ΣΑΣ x𝒳y \xff\x00", 0, float32(-1))
	f.Add("aa bb aa", 1, float32(1e38))
	f.Fuzz(func(t *testing.T, text string, minLen int, rate float32) {
		s := signature.TextProfile{MinTokenLen: minLen, QuantRate: rate}
		a, b := sum(s, "x", text), sum(s, "x", text)
		if a != b || len(a) != 32 {
			t.Fatalf("%s of %q: %s and %s", s.Name(), text, a, b)
		}
		if words := strings.Fields(text); len(words) > 0 && strings.ToValidUTF8(text, "") == text {
			s.NutchCompat = true
			text = strings.Join(words, " ")
			if sum(s, "x", text) != sum(s, "x", text+" ") {
				t.Fatalf("%s of %q: space at the end counts", s.Name(), text)
			}
		}
	})
}

func BenchmarkTextProfile(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumped over the lazy dog; naïve café no. 4711. ", 150)
	c, p := &page.Content{URL: url}, &page.Parsed{Text: text}
	for _, s := range []signature.Signature{signature.TextMD5{}, signature.TextProfile{}} {
		b.Run(s.Name(), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				s.Sum(c, p)
			}
		})
	}
}
