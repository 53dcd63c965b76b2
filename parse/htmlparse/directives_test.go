package htmlparse

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/directives"
	"github.com/recrawl/recrawl/page"
)

// Which of the directives of headers and of meta elements hold for a page: all
// that are for everybody or for us, and of those that disagree the stricter.
func TestPrecedenceOfDirectives(t *testing.T) {
	const soon, late = "unavailable_after: 2029-07-14", "unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT"
	visit := time.Date(2029, 7, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		headers, metas string // headers apart by |; metas as "name=content", apart by |
		after          time.Duration
		want           string
	}{
		{"noindex", "", 0, "noindex"},
		{"noindex", "robots=index, follow", 0, "noindex"},
		{"index, follow", "robots=noindex", 0, "noindex"},
		{"nofollow", "robots=noindex", 0, "noindex nofollow"},
		{"all", "robots=none", 0, "noindex nofollow"},
		{"none", "robots=all", 0, "noindex nofollow"},
		{"noarchive", "robots=nocache", 0, "noarchive"},
		{"", "robots=noarchive,nosnippet", 0, "noarchive"},
		{"nocache, noai, max-snippet: 0", "", 0, "noarchive"},

		// To us, to others, to everybody.
		{"testbot: noindex", "", 0, "noindex"},
		{"TestBot/2.0: noindex", "", 0, "noindex"},
		{"otherbot: noindex", "", 0, ""},
		{"otherbot: none|testbot: nofollow", "", 0, "nofollow"},
		{"otherbot: noindex, nofollow, testbot: noarchive", "", 0, "noarchive"},
		{"noindex, otherbot: nofollow", "", 0, "noindex"},
		{"", "testbot=noindex", 0, "noindex"},
		{"", "TESTBOT=noindex", 0, "noindex"},
		{"", "testbot/1.0=noindex", 0, "noindex"},
		{"", "testbots=noindex", 0, ""},
		{"", "otherbot=none", 0, ""},
		{"", "*=none", 0, ""},
		{"", "robots=noindex|testbot=index", 0, "noindex"}, // not the one that is meant for us alone
		{"", "robots=index|testbot=noindex", 0, "noindex"},
		{"testbot: index", "robots=noindex", 0, "noindex"},
		{"otherbot: noindex", "otherbot=noindex|testbot=nofollow", 0, "nofollow"},
		{"", "robots=otherbot: noindex", 0, ""}, // no names within an element

		// A time.
		{soon, "", 0, "2029-07-14"},
		{"", "robots=" + soon, 0, "2029-07-14"},
		{late, "robots=" + soon, 0, "2029-07-14"},
		{soon + ", nofollow", "robots=" + late, 0, "nofollow 2029-07-14"},
		{late + ", nofollow", "", 0, "nofollow 2029-10-03"},
		{"otherbot: " + soon, "testbot=" + late, 0, "2029-10-03"},
		{soon, "", 13*24*time.Hour - 1, "2029-07-14"},
		{soon, "", 13 * 24 * time.Hour, "noindex 2029-07-14"},
		{"", "robots=" + soon, 14 * 24 * time.Hour, "noindex 2029-07-14"},
		{"unavailable_after: soon", "", 14 * 24 * time.Hour, ""},
	} {
		body := ""
		for m := range strings.SplitSeq(c.metas, "|") {
			name, content, _ := strings.Cut(m, "=")
			body += fmt.Sprintf("<meta name=%q content=%q>", name, content)
		}
		in := &page.Content{Type: "text/html", Robots: directives.Text(strings.Split(c.headers, "|"), "testbot"), Time: visit.Add(c.after), Body: []byte(body + "<a href=x>x</a>text")}
		p := read(t, &Parser{Agent: "testbot"}, in)
		if got := asks(p); got != c.want {
			t.Errorf("%s; %s: %q, want %q", c.headers, c.metas, got, c.want)
		}
		if len(p.Outlinks) != 1 || p.Outlinks[0].NoFollow != p.NoFollow || p.Text != "xtext" {
			t.Errorf("%s; %s: links %v, text %q", c.headers, c.metas, p.Outlinks, p.Text)
		}
		if c.metas == "" {
			if p, err := (&Text{}).Parse(context.Background(), in); err != nil || asks(p) != c.want {
				t.Errorf("%s: a text asks for %q, %v; want %q", c.headers, asks(p), err, c.want)
			}
		}
	}
	// Without a current time, no date counts as past.
	if p := read(t, &Parser{}, &page.Content{Robots: soon}); p.NoIndex {
		t.Error("without a time of the visit, the time of the page is over")
	}
}

func asks(p page.Parsed) string {
	s := ""
	for _, d := range []struct {
		name string
		on   bool
	}{{" noindex", p.NoIndex}, {" nofollow", p.NoFollow}, {" noarchive", p.NoArchive}} {
		if d.on {
			s += d.name
		}
	}
	if !p.UnavailableAfter.IsZero() {
		s += p.UnavailableAfter.Format(" 2006-01-02")
	}
	return strings.TrimPrefix(s, " ")
}

// Nutch calls it nocache.
func TestNutchNoArchive(t *testing.T) {
	for head, want := range map[string]bool{
		`<meta name="robots" content="NOARCHIVE">`:            true,
		`<meta name="robots" content="none">`:                 false,
		`<META HTTP-EQUIV="Pragma" CONTENT="No-Cache">`:       true,
		`<meta http-equiv="pragma" content="x no-cache y">`:   true,
		`<meta http-equiv="cache-control" content=no-cache>`:  false,
		`<meta name="recrawl" content="noarchive">`:           false,
		`<meta name="robots" content="noindex, noarchive">`:   true,
		`<meta name="description" content="noarchive, none">`: false,
	} {
		if got := nutchParse(t, Parser{Agent: "recrawl"}, "http://a.example/", "<head>"+head+"</head><body>text"); got.NoArchive != want {
			t.Errorf("%s: %v", head, got.NoArchive)
		}
	}
}
