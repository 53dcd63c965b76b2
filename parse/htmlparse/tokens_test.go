package htmlparse

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/recrawl/recrawl/parse/parsetest"
)

// ours and theirs write down the tokens of a page, one a line: with line ends alike,
// since those make no difference here, and with the first of each attribute. markup
// says that raw text is read as markup, cdata that there are CDATA sections.

func ours(body []byte, markup, cdata bool) (lines []string) {
	z := tokens{page: body, cdata: cdata}
	for {
		switch t := z.next(); t {
		case pageEnd:
			return lines
		case textToken:
			lines = append(lines, lineEnds("text ", z.readText()))
		case startTag, closedTag:
			attrs := map[string]bool{}
			line := fmt.Sprintf("start %v", t == closedTag)
			for _, a := range z.attr {
				name := string(bytes.ReplaceAll(asciiLower(a.name), []byte{0}, []byte(replacement)))
				if !attrs[name] {
					line += lineEnds(fmt.Sprintf(" %q=", name), z.value(a.value))
				}
				attrs[name] = true
			}
			if len(attrs) < len(z.attr) { // of two with one name they look at the first
				line = strings.Replace(line, "true", "false", 1)
			}
			if lines = append(lines, line); markup {
				z.raw = nil
			}
		case endTag:
			lines = append(lines, "end")
		case otherToken:
			lines = append(lines, "other")
		}
	}
}

func theirs(body []byte, markup, cdata bool) (lines []string) {
	z := html.NewTokenizer(bytes.NewReader(body))
	z.AllowCDATA(cdata)
	for {
		switch t := z.Next(); t {
		case html.ErrorToken:
			return lines
		case html.TextToken:
			lines = append(lines, lineEnds("text ", z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			raw := string(z.Raw())
			line := fmt.Sprintf("start %v", t == html.SelfClosingTagToken)
			_, more := z.TagName()
			for more {
				var key, val []byte
				key, val, more = z.TagAttr()
				line += lineEnds(fmt.Sprintf(" %q=", key), val)
			}
			if twice(raw) {
				line = strings.Replace(line, "true", "false", 1)
			}
			if lines = append(lines, line); markup {
				z.NextIsNotRawText()
			}
		case html.EndTagToken:
			lines = append(lines, "end")
		default:
			lines = append(lines, "other")
		}
	}
}

// twice says whether a tag has an attribute twice.
func twice(raw string) bool {
	z := tokens{page: []byte(raw)}
	z.next()
	names := map[string]bool{}
	for _, a := range z.attr {
		names[string(asciiLower(a.name))] = true
	}
	return len(names) < len(z.attr)
}

func asciiLower(b []byte) []byte {
	b = bytes.Clone(b)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}

func lineEnds(what string, b []byte) string {
	lines := strings.FieldsFunc(string(b), func(r rune) bool { return r == '\r' || r == '\n' })
	return fmt.Sprintf("%s%q", what, strings.Join(lines, "\n"))
}

func compareTokens(t *testing.T, body []byte, markup, cdata bool) {
	t.Helper()
	before := bytes.Clone(body)
	got, want := ours(body, markup, cdata), theirs(bytes.Clone(body), markup, cdata)
	if !slices.Equal(got, want) {
		t.Errorf("%.300q, markup %v, cdata %v:\n got %.300q\nwant %.300q", body, markup, cdata, got, want)
	}
	if !bytes.Equal(body, before) {
		t.Errorf("%.300q became %.300q", before, body)
	}
}

var tokenSeeds = []string{
	"a<b>c</b>d", "<p class=a id='b' x=\"c>d\" y>z</p>", "<br/><br /><a b=c/><a b/><a b=/><a b='c'/>", "< a <1 <", "</", "</>", "</ x>y", "</a b='>'>c",
	"<a", "<a b", "<a b=", "<a b='", "<a b=c", "<a =b=c d== e>", "<a b = c d= 'e' f =g/h i / j>", "<A HREF=x hReF=y Href>", "<a a=1 a=x/>",
	"<!-->a<!--->b<!---->c<!-- d -->e<!-- f --!>g<!-- h --- >i--><!--!>j--!>-->k", "<!---", "<!--x--", "<!--x--!", "<!--x--!-->y<!--x--!!>y-->z",
	"<!", "<!>", "<!x", "<!d", "<!doctype html>a<!DOCTYP>b<!DOCTYPE", "<?xml a='>'?>", "<![CDATA[a<b>&amp;]]>c<![CDATA[]]]><![CDATA[", "<![CDAT>x<![CD",
	"<title>a<b>&amp;\x00</titl></title >c", "<TITLE>x</tItLe/y>", "<textarea>&lt;</textarea", "<style>a&amp;</style><xmp><p></xmp>", "<plaintext>a</plaintext>",
	"<script>a</script>b", "<script><!-- a </script>b", "<script><!-- <script> </script> --></script>c", "<script><!--<script></script ></script>d",
	"<script><!-- <scriptx </script>", "<script><!-- <script/ <b </scrip </script> - -- --> </script>e", "<script><!-- < </script>", "<script><!", "<script><!-- <", "<script><!-- </",
	"<script><!-- </scr</script>", "<script><!-- <scr<script </script></script>f", "<script><!-- <script --></script>g", "<script><!---></script><script><!-- <</script>x",
	"&amp;&lt&gtx&copy;&copyx&notit;&not;&semi;&semi&fjlig;&nbsp;&#65;&#x41&#0;&#x80;&#xD800;&#x110000;&;&#;&#x;&&amp&#39;&#34;&#160;&unknown;&amp",
	"<a b='&amp;&lt&gtx&copy;&copy=&copyx&notit;&not;&semi;&semi&fjlig;&nbsp;&#65;&#x41&#0=&#x80;&;&#;&&amp&amp=&#39;' c=&amp d=&copy>",
	"a\r\nb\rc\x00<a b='a\r\nb\rc\x00' \x00=1>", "<svg/><math><mi/></math>", "\x00<\x00a>", "<a\x00b c\x00d='\x00'>", "<a b=\"&quot;\" b='2'>&apos;&#x27;&hellip;",
	"<script></script><title></title><style></style>x", "<noscript><a href=x></noscript><iframe src=y></iframe><noembed>z", "<scrſpt>a</script>", "<a b=c>d</a\n>e</b/>f",
}

func TestTokensAsTheTokenizerOfNet(t *testing.T) {
	for _, s := range tokenSeeds {
		for end := range len(s) + 1 {
			compareTokens(t, []byte(s[:end]), false, false)
		}
		compareTokens(t, []byte(s), true, false)
		compareTokens(t, []byte(s), false, true)
		compareTokens(t, []byte(s+" <p>"+s), true, true)
	}
	for _, body := range parsetest.Hostile(2000) {
		compareTokens(t, body, false, false)
		compareTokens(t, body, true, true)
	}
	compareTokens(t, docPage().Body, false, false)
}

func FuzzTokens(f *testing.F) {
	for _, s := range tokenSeeds {
		f.Add([]byte(s), false, true)
	}
	f.Fuzz(func(t *testing.T, body []byte, markup, cdata bool) { compareTokens(t, body, markup, cdata) })
}
