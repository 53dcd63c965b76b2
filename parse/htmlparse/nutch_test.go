package htmlparse

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/page"
)

func nutchParse(t *testing.T, p Parser, url, body string) page.Parsed {
	t.Helper()
	p.NutchCompat = true
	out, err := p.Parse(t.Context(), &page.Content{URL: url, Type: "text/html; charset=utf-8", Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func linkList(links []page.Outlink) string {
	var b strings.Builder
	for _, l := range links {
		fmt.Fprintf(&b, "(%s, %s) ", l.URL, l.Anchor)
	}
	return strings.TrimSpace(b.String())
}

// The cases of Nutch's TestDOMContentUtils. Texts are compared by their words.
func TestNutchDOMContentUtils(t *testing.T) {
	const site = "http://www.nutch.org/"
	for i, c := range []struct {
		p                 Parser
		url, body         string
		text, title, want string
	}{
		{Parser{}, "http://www.nutch.org", `<html><head><title> title </title><script> script </script></head><body> body <a href="http://www.nutch.org"> anchor </a><!--comment--></body></html>`,
			"title body anchor", "title", "(http://www.nutch.org, anchor)"},
		{Parser{}, site + "docs/foo.html", `<html><head><title> title </title><script> script </script></head><body> body <a href="/"> home </a><!--comment--><style> style </style> <a href="bot.html"> bots </a></body></html>`,
			"title body home bots", "title", "(http://www.nutch.org/, home) (http://www.nutch.org/docs/bot.html, bots)"},
		{Parser{}, site + "docs/", `<html><head><title> </title></head><body><a href="/"> separate this <a href="ok"> from this</a></a></body></html>`,
			"separate this from this", "", "(http://www.nutch.org/, separate this) (http://www.nutch.org/docs/ok, from this)"},
		{Parser{}, site + "docs/", `<html><head><title>my title</title></head><body> body <ul> <li> <a href="/"> home<li> <a href="1"> 1<li> <a href="2"> 2</ul></body></html>`,
			"my title body home 1 2", "my title", "(http://www.nutch.org/, home) (http://www.nutch.org/docs/1, 1) (http://www.nutch.org/docs/2, 2)"},
		{Parser{}, site + "frames/", `<html><head><title> my title </title></head><frameset rows="20,*"><frame src="top.html"></frame><frameset cols="20,*"><frame src="left.html"></frame><frame src="invalid.html"/><frame src="right.html"></frame></frameset></frameset></html>`,
			"my title", "my title", "(http://www.nutch.org/frames/top.html, ) (http://www.nutch.org/frames/left.html, ) (http://www.nutch.org/frames/invalid.html, ) (http://www.nutch.org/frames/right.html, )"},
		{Parser{}, site + "maps/", `<html><head><title> my title </title></head><body><img src="logo.gif" usemap="#green" border="0"><map name="green"><area shape="polygon" coords="19,44" href="../index.html"><area shape="polygon" href="#bottom"><area shape="polygon" href="../bot.html"></map><a name="bottom"/><h1> the bottom </h1> <iframe src="../docs/index.html"/></body></html>`,
			"my title the bottom", "my title", "(http://www.nutch.org/maps/logo.gif, ) (http://www.nutch.org/index.html, ) (http://www.nutch.org/maps/#bottom, ) (http://www.nutch.org/bot.html, ) (http://www.nutch.org/docs/index.html, )"},
		{Parser{}, site + "whitespace/", "<html><head><title> my title\t</title></head><body> Whitespace\ttest  <a href=\"../index.html\">\n  whitespace test\r\n\t</a>  \t This is a whitespace<span> <span> </span> test</span>. Newlines<br>should appear as\nspace too.<table><tr><td>one</td><td>two</td></tr></table></body></html>",
			"my title Whitespace test whitespace test This is a whitespace test . Newlines should appear as space too. one two", "my title", "(http://www.nutch.org/index.html, whitespace test)"},
		{Parser{}, site + "nofollow/", `<html><body><a href="a" rel="nofollow"> ignore </a><a rel="nofollow" href="b"> ignore </a></body></html>`, "ignore ignore", "", ""},
		{Parser{}, site + "nofollow/", `<html><body><a href="a" rel="noreferrer nofollow"> x </a><a rel="nofollow noreferrer" href="b"> y </a></body></html>`, "x y", "", ""},
		{Parser{FormAction: true}, site, `<html><body><form method='POST' action='/search.jsp'><input type=text><input type=submit><p>test1</p></form><form method='GET' action='/dummy.jsp'><input type=text><p>test2</p></form></body></html>`,
			"test1 test2", "", "(http://www.nutch.org/dummy.jsp, test2)"},
		{Parser{}, site, `<html><body><form method='POST' action='/search.jsp'><p>test1</p></form><form method='GET' action='/dummy.jsp'><p>test2</p></form></body></html>`, "test1 test2", "", ""},
		{Parser{}, site, `<html><head><title>my title</title></head><body><p><a href=";x">anchor1</a><a href="g;x">anchor2</a><a href="g;x?y#s">anchor3</a></p></body></html>`,
			"my title anchor1 anchor2 anchor3", "my title", "(http://www.nutch.org/;x, anchor1) (http://www.nutch.org/g;x, anchor2) (http://www.nutch.org/g;x?y#s, anchor3)"},
		{Parser{}, site + ";something", `<html><body><p><a href="g">1</a><a href="g?y#s">2</a><a href="?y=1">3</a><a href="?y=1#s">4</a><a href="?y=1;somethingelse">5</a></p></body></html>`,
			"1 2 3 4 5", "", "(http://www.nutch.org/g, 1) (http://www.nutch.org/g?y#s, 2) (http://www.nutch.org/;something?y=1, 3) (http://www.nutch.org/;something?y=1#s, 4) (http://www.nutch.org/;something?y=1;somethingelse, 5)"},
		{Parser{}, site, `<html><body><a href="g"><!--no anchor--></a><a href="g1"> <!--no anchor--> </a><a href="g2"> <img src="test.gif" alt='bla bla'> </a></body></html>`,
			"", "", "(http://www.nutch.org/g, ) (http://www.nutch.org/g1, ) (http://www.nutch.org/g2, bla bla) (http://www.nutch.org/test.gif, bla bla)"},
		{Parser{}, site, `<html><body><video controls><source src="movie.mp4" type="video/mp4"></video></body></html>`, "", "", "(http://www.nutch.org/movie.mp4, )"},
	} {
		got := nutchParse(t, c.p, c.url, c.body)
		if text := strings.Join(strings.Fields(got.Text), " "); text != c.text {
			t.Errorf("page %d: text %q, want %q", i+1, text, c.text)
		}
		if got.Title != c.title {
			t.Errorf("page %d: title %q, want %q", i+1, got.Title, c.title)
		}
		if links := linkList(got.Outlinks); links != c.want {
			t.Errorf("page %d:\ngot  %s\nwant %s", i+1, links, c.want)
		}
	}
}

// What is a link for Nutch, and what is not.
func TestNutchLinks(t *testing.T) {
	const u = "http://a.example/d/p"
	for body, want := range map[string]string{
		`<a href=x></a><a href=y>z</a>`:                                 "(http://a.example/d/y, z)",
		`<a href=x/>1</a><a href="z"/>t`:                                "(http://a.example/d/x/, 1)", // the slash is part of the first value
		`<a href=x>1</a><a href=x>2</a>`:                                "(http://a.example/d/x, 1) (http://a.example/d/x, 2)",
		`<a href=/d/p>self</a><a href=#f>f</a>`:                         "(http://a.example/d/p, self) (http://a.example/d/p#f, f)",
		`<a href=x rel=ugc>1</a><a href=y rel=sponsored>2</a>`:          "(http://a.example/d/x, 1) (http://a.example/d/y, 2)",
		`<a href=x rel=NoFollow,me>1</a><a href=y rel=xnofollow>2</a>`:  "(http://a.example/d/y, 2)",
		`<a href="javascript:x()">1</a><a href="tel:1">2</a>`:           "",
		`<a href="mailto:x@y">1</a><a href="ftp://h/x">2</a>`:           "(ftp://h/x, 2)",
		`<a href="file:/etc/x">1</a><a href="data:,x">2</a>`:            "(file:/etc/x, 1)",
		`<link rel=stylesheet href=s.css><link rel=icon href=i>`:        "(http://a.example/d/s.css, ) (http://a.example/d/i, )",
		`<script src=s.js></script><img src=i.png><img srcset="j.png">`: "(http://a.example/d/s.js, ) (http://a.example/d/i.png, )",
		`<embed src=e><object data=o></object><video src=v></video>`:    "",
		`<base href=/b/><a href=x>1</a>`:                                "(http://a.example/b/x, 1)",
		`<body><base href=/b/><a href=x>1</a>`:                          "(http://a.example/d/x, 1)",
		`<base href=foo:bar><base href=/c/><a href=x>1</a>`:             "(http://a.example/d/x, 1)",
		`<a href=" x&amp;y ">1</a><a href="../../../z">2</a>`:           "(http://a.example/d/x&y, 1) (http://a.example/../../z, 2)",
		`<a href="//B.example:80/x">1</a><a href="http:q">2</a>`:        "(http://B.example:80/x, 1) (http://a.example/d/q, 2)",
		`<a href="http://b:x/">1</a><a href="http://[::1/">2</a>`:       "",
		`<a name=n>x</a><area href=y><a>z</a>`:                          "(http://a.example/d/y, )",
		`<a href=x>one <b>two</b><p>three</a>`:                          "(http://a.example/d/x, one two\nthree)",
		`<noscript><a href=x>1</a></noscript>`:                          "(http://a.example/d/x, 1)",
		`<template><a href=x>1</a></template>`:                          "(http://a.example/d/x, 1)",
		`<!-- <a href=x>1</a> -->`:                                      "",
		`<table><tr><td><a href=x>1<td><a href=y>2</table>`:             "(http://a.example/d/x, 1) (http://a.example/d/y, 2)",
		`<meta name=robots content=nofollow><a href=x>1</a>`:            "",
		`<meta name=robots content=noindex><a href=x>1</a>`:             "(http://a.example/d/x, 1)",
		`<body><meta name=robots content=nofollow><a href=x>1</a>`:      "(http://a.example/d/x, 1)",
	} {
		if got := linkList(nutchParse(t, Parser{}, u, body).Outlinks); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
		}
	}
	got := nutchParse(t, Parser{IgnoreTags: []string{"img", "LINK"}}, u, `<link href=l><img src=i><a href=x>1</a>`)
	if l := linkList(got.Outlinks); l != "(http://a.example/d/x, 1)" {
		t.Errorf("elements that are left out: %s", l)
	}
	if got := nutchParse(t, Parser{MaxOutlinks: 1}, u, `<a href=x>1</a><a href=x>1</a>`); len(got.Outlinks) != 1 || got.OutlinksCut != 1 {
		t.Errorf("%+v", got)
	}
}

// Nutch's TestRobotsMetaProcessor, and the refresh.
func TestNutchMeta(t *testing.T) {
	for meta, want := range map[string]string{
		`<META NAME="ROBOTS" CONTENT="NONE">`:                                   "TT",
		`<meta name="robots" content="all">`:                                    "FF",
		`<meta name="RoBoTs" content="nOnE">`:                                   "TT",
		`<meta name="robots" content="noindex,nofollow">`:                       "TT",
		`<meta name="robots" content="noindex,follow">`:                         "TF",
		`<meta name="robots" content="index,nofollow">`:                         "FT",
		`<meta name="robots" content="index,follow">`:                           "FF",
		`<meta name="robots">`:                                                  "FF",
		`<meta name="robots" content="xnonex">`:                                 "TT",
		`<meta name=robots content=noindex><meta name=robots content=nofollow>`: "TT",
		`<meta name="recrawl" content="none">`:                                  "FF",
	} {
		out := nutchParse(t, Parser{Agent: "recrawl"}, "http://a.example/", "<head>"+meta+"</head><body>text")
		got := map[bool]string{true: "T", false: "F"}[out.NoIndex] + map[bool]string{true: "T", false: "F"}[out.NoFollow]
		if got != want || out.NoIndex != (out.Text == "") {
			t.Errorf("%s: %s, want %s; text %q", meta, got, want, out.Text)
		}
	}
	for content, want := range map[string]string{
		"0; url=http://example.com/": "http://example.com/ 0s",
		"5;URL=x":                    "http://a.example/d/x 5s",
		"5;x":                        "http://a.example/d/x 5s",
		"5; url='x'":                 "http://a.example/d/'x' 5s",
		"5":                          "http://a.example/d/p 5s",
		"5;":                         "http://a.example/d/p 5s",
		" 5; url=x":                  " 0s",
		"5.0; url=x":                 " 0s",
		"5; url=foo:bar":             "http://a.example/d/p 5s",
		"x; url=y":                   " 0s",
	} {
		out := nutchParse(t, Parser{}, "http://a.example/d/p", `<base href=/b/><meta http-equiv=Refresh content="`+content+`">`)
		if got := out.Refresh + " " + out.RefreshDelay.String(); got != want {
			t.Errorf("%q: %s, want %s", content, got, want)
		}
	}
	out, err := (&Parser{NutchCompat: true}).Parse(t.Context(), &page.Content{URL: "http://a.example/", Body: []byte("<a href=x>1</a>"), Robots: "none", Refresh: "0; url=/y"})
	if err != nil || out.NoFollow || out.Refresh != "" || len(out.Outlinks) != 1 {
		t.Errorf("headers count: %+v, %v", out, err)
	}
	if _, err := (&Parser{NutchCompat: true}).Parse(t.Context(), &page.Content{URL: "foo:bar"}); err == nil {
		t.Error("a page whose URL is none")
	}
}

func TestNutchText(t *testing.T) {
	for body, want := range map[string]string{
		`a<b>b</b>`:                 "a b",
		`<b>a</b> <b>b</b>`:         "a\nb",
		`<p>a</p><p>b</p>c`:         "a\nb\nc",
		`<div>a<div>b</div>c</div>`: "a\nb\nc",
		`a<br>b`:                    "a b",
		`<table><tr><td>a</td><td>b</td></table>c`:                                "a b\nc",
		"  a \t\r\n b\u00a0c ":                                                    "a b\u00a0c",
		`<script>x</script><style>y</style>a<!--z-->b`:                            "a b",
		`<noscript>a</noscript>b`:                                                 "a\nb",
		`<title>t</title><body>b`:                                                 "t b",
		`<head> <title>t</title> <title>u</title></head> <body><title>v</title>b`: "t\nu v b",
		`a&amp;b &lt;c`:                                                           "a&b <c",
	} {
		if got := nutchParse(t, Parser{}, "http://a.example/", body).Text; got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	if got := nutchParse(t, Parser{}, "http://a.example/", `<title> t <b> </title><title>u</title>`).Title; got != "t <b>" {
		t.Errorf("title %q", got)
	}
	if got := nutchParse(t, Parser{MaxText: 5}, "http://a.example/", `abc def`); got.Text != "abc " || !got.Truncated {
		t.Errorf("%+v", got)
	}
}

func TestNutchHostilePages(t *testing.T) {
	for name, body := range map[string]string{
		"deep":             strings.Repeat("<div>", 200_000),
		"deep links":       strings.Repeat("<a href=x><table><td>", 50_000),
		"deep and closing": strings.Repeat("<b>", 50_000) + strings.Repeat("<li>", 50_000) + strings.Repeat("</p>", 50_000),
		"forms":            strings.Repeat("<form action=x>", 50_000) + strings.Repeat("text ", 50_000),
		"attributes":       "<a " + strings.Repeat("x=y ", 200_000) + ">" + strings.Repeat("<a href=x>y</a>", 10_000),
		"dots":             "<a href='" + strings.Repeat("../", 2_000_000) + "'>x</a>",
		"dots and names":   strings.Repeat("<a href='"+strings.Repeat("a/../", 1500)+"'>x</a>", 100),
		"no end":           "<a href=x>" + strings.Repeat("<!", 100_000),
	} {
		start := time.Now()
		p := Parser{FormAction: true, NutchCompat: true}
		if _, err := p.Parse(context.Background(), &page.Content{URL: "http://a.example/", Body: []byte(body)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s takes %v", name, d)
		}
	}
}

func FuzzNutch(f *testing.F) {
	f.Add("http://a.example/x", `<base href=/b/><a href="?y">1<li><a href=../z>2</a><form action=q>t</form><meta http-equiv=refresh content="0;url=x">`)
	f.Add("file:///x/../y", `<a href=./..>a<td></a></table><img src=//h:1/ alt=x><!--`)
	f.Fuzz(func(t *testing.T, url, body string) {
		p := Parser{FormAction: true, NutchCompat: true, MaxText: 1000, MaxOutlinks: 100}
		out, err := p.Parse(t.Context(), &page.Content{URL: url, Body: []byte(body)})
		if err != nil {
			return
		}
		if len(out.Text) > 1000 || len(out.Outlinks) > 100 {
			t.Fatalf("%+v", out)
		}
		for _, l := range out.Outlinks {
			u, err := parseNutchURL(nil, l.URL)
			if err != nil {
				t.Fatalf("%q: %v", l.URL, err)
			}
			if strings.ContainsAny(u.Protocol, "/?#") || len(l.URL) > defaultMaxURL {
				t.Fatalf("%q", l.URL)
			}
		}
	})
}
