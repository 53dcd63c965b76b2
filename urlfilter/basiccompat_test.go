package urlfilter

import (
	"strings"
	"testing"
)

func TestBasicNutchCompat(t *testing.T) {
	for _, file := range []string{"nutch-basic-normalizer.jsonl", "nutch-basic-java.jsonl"} {
		each(t, file, func(c struct {
			In  string
			Out *string
		}) {
			want := "refused"
			if c.Out != nil {
				want = *c.Out
			}
			got, err := Basic{NutchCompat: true}.Normalize(AnyScope, c.In)
			if err != nil {
				got = "refused"
			}
			if got != want {
				t.Errorf("%s: %q: got %q (%v), want %q", file, c.In, got, err, want)
			}
		})
	}
}

// What Nutch's test of its basic normalizer expects of each option.
func TestBasicNutchCompatHosts(t *testing.T) {
	ascii := Basic{NutchCompat: true, HostIDN: ToASCII}
	unicode := Basic{NutchCompat: true, HostIDN: ToUnicode}
	ascii2008, unicode2008, dot := ascii, unicode, unicode
	ascii2008.IDNA2008, unicode2008.IDNA2008, dot.TrimTrailingDot = true, true, true
	for _, c := range []struct {
		b       Basic
		in, out string
	}{
		{Basic{NutchCompat: true}, "https://www.example.org/", "https://www.example.org/"},
		{Basic{NutchCompat: true}, "https://example%2Xcom/", ""},
		{Basic{NutchCompat: true}, "https://www.example.org./", "https://www.example.org./"},
		{Basic{NutchCompat: true, TrimTrailingDot: true}, "https://www.example.org.:81", "https://www.example.org:81/"},
		{ascii, "https://нэб.рф/", "https://xn--90ax2c.xn--p1ai/"},
		{ascii, "https://www.0251-sachverst%c3%a4ndiger.de/", "https://www.xn--0251-sachverstndiger-ozb.de/"},
		{ascii, "https://нЭб.РФ/", "https://xn--90ax2c.xn--p1ai/"},
		{ascii, "https://abc%FEdef.org/", ""},
		{ascii, "https://ÖBB.at/", "https://xn--bb-eka.at/"},
		{ascii, "https://faß.de/", "https://fass.de/"},
		{ascii, "https://βόλος.com/", "https://xn--nxasmq6b.com/"},
		{ascii, "https://ශ්\u200dරී.com/", "https://xn--10cl1a0b.com/"},
		{ascii, "https://نامه\u200cای.com/", "https://xn--mgba3gch31f.com/"},
		{ascii, "https://рф.xn--p1ai/", "https://xn--p1ai.xn--p1ai/"},
		{ascii, "https://straße.de/", "https://strasse.de/"},
		{ascii, "https://example.ᬩᬮᬶ.id/", "https://example.xn--9tfky.id/"},
		{ascii, "https://ä..de/", ""},
		{ascii, "https://" + strings.Repeat("ä", 64) + ".de/", ""},
		{ascii2008, "https://straße.de/", "https://xn--strae-oqa.de/"},
		{ascii2008, "https://example.ᬩᬮᬶ.id/", "https://example.xn--9tfky.id/"},
		{ascii2008, "https://xn--p1ai.%D1%80%D1%84/", "https://xn--p1ai.xn--p1ai/"},
		{ascii2008, "https://xn--p1ai.рф/", "https://xn--p1ai.xn--p1ai/"},
		{ascii2008, "https://☕.example/", "https://xn--53h.example/"},
		{ascii2008, "https://à.א̈/", "https://xn--0ca.xn--ssa73l/"},
		{ascii2008, "https://نامه\u200cای.com/", "https://xn--mgba3gch31f060k.com/"},
		{ascii2008, "https://faß.de/", "https://xn--fa-hia.de/"},
		{ascii2008, "https://βόλος.com/", "https://xn--nxasmm1c.com/"},
		{ascii2008, "https://ශ්\u200dරී.com/", "https://xn--10cl1a0b660p.com/"},
		{ascii2008, "https://⒈com/", ""},
		{ascii2008, "https://xn--a-ä.pt/", ""},
		{ascii2008, "https://" + strings.Repeat("ก", 1000) + "/", ""},
		{ascii2008, "https://" + strings.Repeat("😀", 501) + "/", ""},
		{unicode, "https://xn--90ax2c.xn--p1ai/", "https://нэб.рф/"},
		{unicode, "https://Xn--90Ax2c.xN--P1ai/", "https://нэб.рф/"},
		{unicode, "https://xn--strae-oqa.de/", "https://xn--strae-oqa.de/"},
		{unicode, "https://example.xn--9tfky.id/", "https://example.ᬩᬮᬶ.id/"},
		{unicode, "https://xN--p1aI.Xn--P1ai/", "https://рф.рф/"},
		{unicode, "https://xN--p1Ai.%D1%80%d1%84/", "https://рф.рф/"},
		{unicode, "https://булГаков.xN--p1Ai.%D1%80%d1%84/", "https://булгаков.рф.рф/"},
		{unicode, "https://гоГоль.%d1%80%D1%84.Рф/", "https://гоголь.рф.рф/"},
		{unicode, "https://xn--xn--bss-7z6ccid.com/", "https://xn--xn--bss-7z6ccid.com/"},
		{dot, "https://www.example.org./", "https://www.example.org/"},
		{unicode2008, "https://xn--strae-oqa.de/", "https://straße.de/"},
		{unicode2008, "https://example.xn--9tfky.id/", "https://example.ᬩᬮᬶ.id/"},
		{unicode2008, "https://xN--p1aI.Xn--P1ai/", "https://рф.рф/"},
		{unicode2008, "https://xN--p1Ai.%D1%80%d1%84/", "https://рф.рф/"},
		{unicode2008, "https://булГаков.xN--p1Ai.%D1%80%d1%84/", "https://булгаков.рф.рф/"},
		{unicode2008, "https://гоГоль.%d1%80%D1%84.Рф/", "https://гоголь.рф.рф/"},
		{unicode2008, "https://xn--0.pt/", ""},
		{unicode2008, "https://xn--xn--a--gua.pt/", ""},
		{unicode2008, "https://xn--acom-0w1b/", ""},
		{unicode2008, "https://xn--a-ä.pt/", ""},
		{unicode2008, "https://xn--53h.example/", "https://☕.example/"},
	} {
		got, err := c.b.Normalize(AnyScope, c.in)
		if got != c.out || (err != nil) != (c.out == "") {
			t.Errorf("%q: got %q, %v, want %q (%+v)", c.in, got, err, c.out, c.b)
		}
	}
}

// Each difference between Basic and Nutch's normalizer. Empty means refused.
func TestBasicDifferences(t *testing.T) {
	for _, c := range []struct{ name, in, ours, nutch string }{
		{"host-less URLs are refused", "http:", "", "http:/"},
		{"more than two dots do not eat the path", "http://h/../..foo", "http://h/..foo", "http://hfoo"},
		{"slashes after the scheme are made two", "http:/h/x", "http://h/x", "http:/h/x"},
		{"a file URL has an authority", "file:/a//b", "file:///a//b", "file:/a/b"},
		{"empty segments stay", "http://h/a//b", "http://h/a//b", "http://h/a/b"},
		{"a host is ASCII", "http://ü.de/", "http://xn--tda.de/", "http://ü.de/"},
		{"a host has no dot at the end", "http://h./", "http://h/", "http://h./"},
		{"a host is a name or an address", "http://a%20b/", "", "http://a b/"},
		{"an IPv4 address has one spelling", "http://127.1/", "http://127.0.0.1/", "http://127.1/"},
		{"an IPv6 address has one spelling", "http://[0:0:0:0:0:0:0:1]/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/"},
		{"user information is refused", "http://u:p@h/", "", "http://h/"},
		{"ports end at 65535", "http://h:65536/", "", "http://h:65536/"},
		{"ports have no sign", "http://h:-1/", "", "http://h/"},
		{"backslashes are slashes", `http://h/a\..\b`, "http://h/b", `http://h/a\..\b`},
		{"a quotation mark in a query is escaped", "http://h/?'", "http://h/?%27", "http://h/?'"},
		{"decoding is not done twice", "http://h/%%34%31", "http://h/%2541", "http://h/%41"},
		{"line ends are dropped", "http://h/a\nb", "http://h/ab", "http://h/a%0Ab"},
		{"an empty string is no URL", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours, err := Basic{Schemes: allSchemes}.Normalize(AnyScope, c.in)
			if ours != c.ours || (err != nil) != (c.ours == "") {
				t.Errorf("%q: got %q, %v, want %q", c.in, ours, err, c.ours)
			}
			nutch, err := Basic{NutchCompat: true}.Normalize(AnyScope, c.in)
			if nutch != c.nutch || err != nil {
				t.Errorf("%q under NutchCompat: got %q, %v, want %q", c.in, nutch, err, c.nutch)
			}
		})
	}
}

func FuzzBasicNutchCompat(f *testing.F) {
	for _, file := range []string{"nutch-basic-normalizer.jsonl", "nutch-basic-java.jsonl"} {
		each(f, file, func(c struct{ In string }) { f.Add(c.In) })
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, b := range []Basic{
			{}, {HostIDN: ToASCII}, {HostIDN: ToUnicode, TrimTrailingDot: true}, {HostIDN: ToASCII, IDNA2008: true}, {HostIDN: ToUnicode, IDNA2008: true},
		} {
			b.NutchCompat = true
			u, err := b.Normalize(AnyScope, in)
			if err != nil && u != "" {
				t.Fatalf("%q: %q beside the error %v", in, u, err)
			}
			if slow, slowErr := b.normalizeNutch(in); slow != u || (slowErr == nil) != (err == nil) {
				t.Fatalf("%q: %q, %v, the long way %q, %v", in, u, err, slow, slowErr)
			}
		}
	})
}
