package htmlparse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
)

const pageURL = "http://www.example.org/docs/page.html"

func read(t *testing.T, p *Parser, c *page.Content) page.Parsed {
	t.Helper()
	if c.URL == "" {
		c.URL = pageURL
	}
	got, err := p.Parse(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func readHTML(t *testing.T, body string) page.Parsed {
	t.Helper()
	return read(t, &Parser{}, &page.Content{Body: []byte(body)})
}

// links writes links as "url anchor", with a leading "!" if not to be followed.
func links(p page.Parsed) []string {
	var out []string
	for _, l := range p.Outlinks {
		s := strings.TrimSpace(l.URL + " " + l.Anchor)
		if l.NoFollow {
			s = "!" + s
		}
		out = append(out, s)
	}
	return out
}

func wantLinks(t *testing.T, got page.Parsed, want ...string) {
	t.Helper()
	if !slices.Equal(links(got), want) {
		t.Errorf("links\n got %q\nwant %q", links(got), want)
	}
}

// TestText is about what is visible and where words and lines end.
func TestText(t *testing.T) {
	for _, c := range []struct{ name, body, title, text string }{
		{"inline tags split no word", "a<b>b</b> c", "", "ab c"},
		{"blocks are lines", "<p>a<p>b<div>c</div>d", "", "a\nb\nc\nd"},
		{"br is a line end", "a<br>b<BR/>c", "", "a\nb\nc"},
		{"cells are words", "<table><tr><td>a<td>b</tr><tr><th>c</th><th>d</th></tr></table>e", "", "a b\nc d\ne"},
		{"white space folds", " \t a \r\n\n  b \u00a0\u3000 c ", "", "a b c"},
		{"space between elements", "<b>a</b> <b>b</b>", "", "a b"},
		{"entities", "&lt;p&gt; &amp;amp; &eacute; &#x41;&#66; &bogus; &nbsp;x", "", "<p> &amp; é AB &bogus; x"},
		{"controls are no text", "a\x00b\x01c\x7fd", "", "a b c d"},
		{"script and style", "a<script>if (a < b) document.write('<p>x</p>')</script>b<style>p{}</style>c", "", "abc"},
		{"script with a comment", "a<script><!-- </script> --> b", "", "a --> b"},
		{"unclosed script", "a<script>b", "", "a"},
		{"form fields", "a<textarea>x <b></textarea>b", "", "ab"},
		{"noscript", "a<noscript><p>x</p>y</noscript>b", "", "ab"},
		{"noframes, noembed and iframe", "a<noframes>x</noframes><noembed>y</noembed><iframe src=f>z</iframe>b", "", "a\nb"},
		{"template", "a<template>x<template>y</template>z</template>b", "", "ab"},
		{"shadow root", "a<template shadowrootmode=open>x</template>b", "", "axb"},
		{"comments", "a<!-- x > y -->b<!x>c<?php x ?>d", "", "abcd"},
		{"cut-off tag", "a<a href=\"x", "", "a"},
		{"xmp and plaintext", "<xmp><b>a</b></xmp><plaintext>b</plaintext>", "", "<b>a</b>\nb</plaintext>"},
		{"title", "<head><title> a &amp;\n b </title></head>c", "a & b", "c"},
		{"first title", "<title>a</title><title>b</title>c", "a", "c"},
		{"title has no tags", "<title>a<b>b</b></title>", "a<b>b</b>", ""},
		{"title of a drawing", "<svg><title>x</title><desc>y</desc><text>a</text></svg><title>b</title>c", "b", "ac"},
		{"title closed at once in a drawing", "<svg><title/><text>a</text></svg>b", "", "ab"},
		{"script in a drawing", "<svg><script>x<![CDATA[y]]></script>a</svg>b", "", "ab"},
		{"CDATA", "<svg><![CDATA[a<b>]]></svg><![CDATA[x]]>c", "", "a<b>c"},
		{"HTML ends a drawing", "<svg><title>x<desc><p>a<title>t</title>", "t", "a"},
		{"an end tag of HTML ends a drawing", "<svg></p><style><title>x</title></style><title>t</title>a", "t", "a"},
		{"an end tag of HTML that does not", "<svg></div><title>x</title>a", "", "a"},
		{"an image does not end a drawing", "<svg><image href=i /><section><title>x</title></section>a", "", "a"},
		{"font ends a drawing with an attribute", "<svg><font><title>x</title></font></svg><svg><font size=1><title>t</title>a", "t", "a"},
		{"HTML in a drawing", "<svg><foreignObject><p>a<style>x</style></p></foreignObject><title>x</title></svg>b", "", "a\nb"},
		{"formulas", "<math><mi>a</mi><mo>+</mo><mi>b</mi></math>c", "", "a+bc"},
		{"empty", "", "", ""},
		{"blank", " \n ", "", ""},
		{"no markup", "just a < b & c", "", "just a < b & c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readHTML(t, c.body)
			if got.Title != c.title || got.Text != c.text {
				t.Errorf("%s\n got %q / %q\nwant %q / %q", c.body, got.Title, got.Text, c.title, c.text)
			}
		})
	}
}

// TestLinks is about which elements link, and with what anchor.
func TestLinks(t *testing.T) {
	const dir = "http://www.example.org/docs/"
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"anchor text", "<a href=a> x <b>y</b>z </a>", []string{dir + "a x yz"}},
		{"nested", "<a href='/'> separate this <a href='ok'> from this</a></a>", []string{"http://www.example.org/ separate this", dir + "ok from this"}},
		{"unclosed", "<li> <a href='/'> home<li> <a href='1'> 1", []string{"http://www.example.org/ home", dir + "1 1"}},
		{"alt stands in for text", "<a href=g><!--none--></a><a href=g1> <!--x--></a><a href=g2><img src=t.gif alt=' bla  bla '></a><a href=g3><img alt=x>y</a>",
			[]string{dir + "g", dir + "g1", dir + "g2 bla bla", dir + "g3 y"}},
		{"drawing as anchor", "<a href=g><svg><title>Home</title><path/></svg></a>", []string{dir + "g Home"}},
		{"link in a drawing", "<svg><a xlink:href=g><text>x</text></a></svg>", []string{dir + "g x"}},
		{"frames", "<frameset><frame src=top><frame src=/left title=' L '><frame src=mailto:x></frameset><iframe src='f?x'>", []string{dir + "top", "http://www.example.org/left L", dir + "f?x"}},
		{"map", "<area href=../index.html alt=i><area href=#bottom><area nohref>", []string{"http://www.example.org/index.html i"}},
		{"the page itself", "<a href=''>x</a><a href='#a'>y</a><a href>z</a><a href=page.html>z</a><a href='page.html?'>q</a>", []string{dir + "page.html? q"}},
		{"no links", "<a name=x>y</a><a href='javascript:void(0)'>x</a><a href=mailto:a@b>x</a><a href='data:text/html,x'>y</a><a href=tel:1>z</a><a href='ws://h/'>w</a><a href='file:///etc/passwd'>f</a><a href='http://'>h</a><a href='http://[x]/'>h</a>", nil},
		{"once, first place, first anchor", "<a href=a></a><a href=b>b</a><a href='a#x'>one</a><a href=a>two</a>", []string{dir + "a one", dir + "b b"}},
		{"nofollow", "<a rel=nofollow href=a>a</a><a href=b rel='noopener UGC'>b</a><a href=c rel='sponsored,x'>c</a><a href=d rel=nofollowing>d</a>",
			[]string{"!" + dir + "a a", "!" + dir + "b b", "!" + dir + "c c", dir + "d d"}},
		{"nofollow holds if all say so", "<a rel=nofollow href=a>a</a><a href=a>b</a><a href=b>a</a><a rel=nofollow href=b>b</a>", []string{dir + "a a", dir + "b a"}},
		{"link elements", "<link rel=next href=n title=N><link rel='PREV' href=p><link rel='stylesheet' href=s><link rel='alternate stylesheet' href=t>" +
			"<link rel=icon href=i><link rel='shortcut icon' href=i><link rel=preload href=l><link rel=dns-prefetch href=//d><link rel=alternate type='application/rss+xml; x' href=f>" +
			"<link rel=alternate type=application/json+oembed href=o><link href=x>",
			[]string{dir + "n N", dir + "p", dir + "f"}},
		{"forms are none", "<form action=/search><input type=image src=x></form>", nil},
		{"noscript", "<noscript><a href=a>x</a><img src=i></noscript>", []string{dir + "a"}},
		{"template", "<template><a href='{{a}}'>x</a></template><a href=b>b</a>", []string{dir + "b b"}},
		{"base", "<base href=/other/><a href=a>a</a><base href=/no/><a href=b></a><a href='#x'></a>", []string{"http://www.example.org/other/a a", "http://www.example.org/other/b", "http://www.example.org/other/"}},
		{"base counts for what is before it", "<link rel=next href=n><a href=a>a</a><base target=x><base href=/other/><a href=a></a>", []string{"http://www.example.org/other/n", "http://www.example.org/other/a a"}},
		{"base that leads nowhere", "<base href='javascript:x'><base href=/no/><a href=a></a>", []string{dir + "a"}},
		{"base without scheme", "<base href=//other.example/><a href=index.html></a>", []string{"http://other.example/index.html"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readHTML(t, c.body)
			wantLinks(t, got, c.want...)
			if got.OutlinksCut != 0 || got.Truncated {
				t.Errorf("cut %d, truncated %v", got.OutlinksCut, got.Truncated)
			}
		})
	}
}

func TestSchemes(t *testing.T) {
	const body = "<a href=x>a</a><a href='gemini://h/y'>b</a><a href='mailto:m@h'>c</a><a href='http://h/'>d</a><a href='gemini://[/'>e</a>"
	got := read(t, &Parser{Schemes: []string{"gemini", "mailto"}}, &page.Content{URL: "http://h/", Body: []byte(body)})
	wantLinks(t, got, "gemini://h/y b", "mailto:m@h c")
	got = read(t, &Parser{}, &page.Content{URL: "gemini://g/d/p", Body: []byte(body)})
	wantLinks(t, got, "gemini://g/d/x a", "gemini://h/y b", "http://h/ d")
	got = read(t, &Parser{}, &page.Content{URL: "file:///d/p", Body: []byte("<a href='file:///x'>a</a><a href=y>b</a>")})
	wantLinks(t, got, "file:///x a", "file:///d/y b")
	got = read(t, &Parser{}, &page.Content{URL: "::no url", Body: []byte(body)})
	wantLinks(t, got, "http://h/ d")
}

func TestOptions(t *testing.T) {
	const dir = "http://www.example.org/docs/"
	const body = "<link rel=stylesheet href=s><link rel=preconnect href=//p><script src=j></script><img src=i alt=I><video src=v><source src=w></video><embed src=e><object data=o></object><a href=a></a>"
	wantLinks(t, readHTML(t, body), dir+"a")
	got := read(t, &Parser{Images: true}, &page.Content{Body: []byte(body)})
	wantLinks(t, got, dir+"i I", dir+"a")
	got = read(t, &Parser{FollowResources: true}, &page.Content{Body: []byte(body)})
	wantLinks(t, got, dir+"s", dir+"j", dir+"v", dir+"w", dir+"e", dir+"o", dir+"a")
}

func TestRobots(t *testing.T) {
	for _, c := range []struct {
		header, body      string
		noIndex, noFollow bool
	}{
		{"", "<meta name=robots content=NONE>", true, true},
		{"", "<meta name=ROBOTS content='NoIndex, nofollow'>", true, true},
		{"", "<meta name=robots content='noindex,follow'>", true, false},
		{"", "<meta name=robots content='index nofollow'>", false, true},
		{"", "<meta name=robots content='index,follow,noindexing'><meta name=robots>", false, false},
		{"", "<meta name=robots content=noindex><meta name=robots content=nofollow>", true, true},
		{"", "<meta name=Testbot content=noindex>", true, false},
		{"", "<meta name=otherbot content=noindex>", false, false},
		{"nofollow,noarchive", "<meta name=robots content=noindex>", true, true},
		{"none", "", true, true},
		{"", "<noscript><meta name=robots content=none></noscript>", true, true},
		{"", "<template><meta name=robots content=none></template>", false, false},
	} {
		got := read(t, &Parser{Agent: "testbot"}, &page.Content{Robots: c.header, Body: []byte(c.body + "<a href=x>x</a>text")})
		if got.NoIndex != c.noIndex || got.NoFollow != c.noFollow {
			t.Errorf("%q %s: noindex %v nofollow %v", c.header, c.body, got.NoIndex, got.NoFollow)
		}
		if len(got.Outlinks) != 1 || got.Outlinks[0].NoFollow != c.noFollow || got.Text != "xtext" {
			t.Errorf("%q %s: %q %q", c.header, c.body, links(got), got.Text)
		}
	}
}

func TestRefresh(t *testing.T) {
	for _, c := range []struct {
		content, want string
		delay         int
	}{
		{"0; url=http://h/", "http://h/", 0},
		{"5;URL='next.html'", "http://www.example.org/docs/next.html", 5},
		{"  7.9 , \"a b\" x", "http://www.example.org/docs/a%20b", 7},
		{"3 url = x;y", "http://www.example.org/docs/x;y", 3},
		{"3;/x", "http://www.example.org/x", 3},
		{".5;x", "http://www.example.org/docs/x", 0},
		{"99999999999999999999;x", "http://www.example.org/docs/x", maxRefresh},
		{"5", "", 0},
		{"5;url=page.html#x", "", 0},
		{"5;url=javascript:x", "", 0},
		{"x;url=y", "", 0},
		{"5x;url=y", "", 0},
		{"", "", 0},
		{";url=y", "", 0},
	} {
		got := readHTML(t, `<meta http-equiv="Refresh" content="`+strings.ReplaceAll(c.content, `"`, "&quot;")+`">`)
		if got.Refresh != c.want || got.RefreshDelay != time.Duration(c.delay)*time.Second {
			t.Errorf("%q: %q after %v", c.content, got.Refresh, got.RefreshDelay)
		}
	}
	got := readHTML(t, "<noscript><meta http-equiv=refresh content='0;a'></noscript><meta http-equiv=refresh content='1;b'><meta http-equiv=refresh content='2;c'><base href=/r/>")
	if got.Refresh != "http://www.example.org/r/b" || got.RefreshDelay != time.Second {
		t.Errorf("first refresh, with the base that follows: %q after %v", got.Refresh, got.RefreshDelay)
	}
	got = read(t, &Parser{}, &page.Content{Refresh: "3; url=h", Body: []byte("<base href=/r/><a href=a></a><meta http-equiv=refresh content='1;b'>")})
	if got.Refresh != "http://www.example.org/docs/h" || got.RefreshDelay != 3*time.Second {
		t.Errorf("the header comes first: %q after %v", got.Refresh, got.RefreshDelay)
	}
	wantLinks(t, got, "http://www.example.org/r/a")
}

func TestMeta(t *testing.T) {
	got := readHTML(t, `<html lang="sv-SE"><head><meta name="Keywords" content=" a,
 b "><meta property=og:title content=T><meta http-equiv="Content-Language" content=sv><meta name=keywords content=c>
<meta charset=utf-8><meta name="" content=x><link rel="canonical" href="/c#x"><link rel=canonical href=/d></head><body><link rel=canonical href=/e><meta name=late content=l>`)
	want := []page.Property{{Name: "lang", Value: "sv-SE"}, {Name: "keywords", Value: "a, b"}, {Name: "og:title", Value: "T"},
		{Name: "content-language", Value: "sv"}, {Name: "keywords", Value: "c"}, {Name: "late", Value: "l"}}
	if !slices.Equal(got.Meta, want) {
		t.Errorf("meta\n got %v\nwant %v", got.Meta, want)
	}
	if got.Canonical != "http://www.example.org/c" {
		t.Errorf("canonical %q", got.Canonical)
	}
}

func TestLimits(t *testing.T) {
	var b strings.Builder
	b.WriteString("<title>" + strings.Repeat("é", 50) + "</title>")
	for i := range 20 {
		fmt.Fprintf(&b, "<meta name=n%d content=x><a href=l%d>anchor text %d</a> ", i, i, i)
	}
	b.WriteString("<a href=l0></a><a href=" + strings.Repeat("x", 80) + ">long</a><a href='javascript:" + strings.Repeat("x", 80) + "'>")
	p := &Parser{MaxOutlinks: 3, MaxURL: 70, MaxText: 31, MaxTitle: 5, MaxAnchor: 8, MaxMeta: 2}
	got := read(t, p, &page.Content{Body: []byte(b.String())})
	wantLinks(t, got, "http://www.example.org/docs/l0 anchor t", "http://www.example.org/docs/l1 anchor t", "http://www.example.org/docs/l2 anchor t")
	if got.OutlinksCut != 18 {
		t.Errorf("OutlinksCut %d, want 17 above the number and 1 above the length", got.OutlinksCut)
	}
	if got.Title != "éé" || len(got.Meta) != 2 || got.Text != "anchor text 0 anchor text 1 anc" || !got.Truncated {
		t.Errorf("title %q, %d properties, text %q, truncated %v", got.Title, len(got.Meta), got.Text, got.Truncated)
	}

	got = read(t, &Parser{MaxOutlinks: -1, MaxText: -1, MaxTitle: -1, MaxAnchor: -1, MaxMeta: -1, MaxURL: -1, Timeout: -1}, &page.Content{Body: []byte(b.String())})
	if len(got.Outlinks) != 21 || got.OutlinksCut != 0 || len(got.Meta) != 20 || len(got.Title) != 100 || got.Truncated {
		t.Errorf("no limits: %d links, %d cut, %d properties, title of %d", len(got.Outlinks), got.OutlinksCut, len(got.Meta), len(got.Title))
	}
}

// TestLongBase shows that links of a few bytes below a base of thousands do not
// grow without bound.
func TestLongBase(t *testing.T) {
	var b strings.Builder
	b.WriteString("<base href='/" + strings.Repeat("x", 4000) + "/'>")
	for i := range 9000 {
		fmt.Fprintf(&b, "<a href=%d>", i)
	}
	got := readHTML(t, b.String())
	size := 0
	for _, l := range got.Outlinks {
		size += len(l.URL)
	}
	if size > maxLinkBytes || len(got.Outlinks)+got.OutlinksCut != 9000 || got.OutlinksCut == 0 {
		t.Errorf("%d links of %d bytes, %d cut", len(got.Outlinks), size, got.OutlinksCut)
	}
	got = readHTML(t, "<base href='/"+strings.Repeat("x", 5000)+"/'><a href=a>")
	wantLinks(t, got, "http://www.example.org/docs/a")
}

// stopAt is a context that is done after its error was asked for n times.
type stopAt struct {
	context.Context
	n int
}

func (c *stopAt) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancel(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range []parse.Parser{&Parser{}, &Text{}} {
		if _, err := p.Parse(done, &page.Content{URL: pageURL}); !errors.Is(err, context.Canceled) {
			t.Errorf("%T begun after the end of its context: %v", p, err)
		}
	}

	body := []byte(strings.Repeat("<a href=x>y</a> ", 100_000))
	got, err := (&Parser{}).Parse(&stopAt{t.Context(), 3}, &page.Content{URL: pageURL, Body: body})
	if err != nil || !got.Truncated || len(got.Outlinks) != 1 || len(got.Text) > 3*piece {
		t.Errorf("cancelled on the way: %v, truncated %v, %d bytes of text", err, got.Truncated, len(got.Text))
	}
	got, err = (&Text{}).Parse(&stopAt{t.Context(), 3}, &page.Content{URL: pageURL, Body: body})
	if err != nil || !got.Truncated || len(got.Text) == 0 || len(got.Text) > 3*piece {
		t.Errorf("text cancelled on the way: %v, truncated %v, %d bytes", err, got.Truncated, len(got.Text))
	}
	got, err = (&Parser{Timeout: 1}).Parse(t.Context(), &page.Content{URL: pageURL, Body: body})
	if err != nil || !got.Truncated {
		t.Errorf("out of time: %v, truncated %v", err, got.Truncated)
	}
}

func TestMux(t *testing.T) {
	m := Mux(nil)
	for _, c := range []struct{ typ, body, text, title string }{
		{"text/html; charset=utf-8", "<title>t</title>a", "a", "t"},
		{"application/xhtml+xml", "<?xml version='1.0'?><html><head><title>t</title></head><body>a<br/></body></html>", "a", "t"},
		{"text/plain", "<title>t</title>", "<title>t</title>", ""},
		{"", "<!DOCTYPE html><title>t</title>a", "a", "t"},
		{"", "words", "words", ""},
	} {
		got, err := m.Parse(t.Context(), &page.Content{URL: pageURL, Type: c.typ, Body: []byte(c.body)})
		if err != nil || got.Text != c.text || got.Title != c.title {
			t.Errorf("%q %q: %q %q %v", c.typ, c.body, got.Title, got.Text, err)
		}
	}
	if _, err := m.Parse(t.Context(), &page.Content{Type: "image/png"}); !errors.Is(err, parse.ErrUnsupported) {
		t.Errorf("image: %v", err)
	}
}

func TestPlainText(t *testing.T) {
	got, err := (&Text{MaxText: 12}).Parse(t.Context(), &page.Content{
		Type: "text/plain; charset=iso-8859-1", Robots: "noindex", Body: []byte("a\r\nb\rc\td\x00 caf\xe9 more"),
	})
	if err != nil || got.Text != "a\nb\nc\td  caf" || !got.Truncated || !got.NoIndex || got.Charset != "windows-1252" {
		t.Errorf("%q %+v %v", got.Text, got, err)
	}
}
