package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// richSite has a bit of everything.
func richSite() *site {
	s := &site{robots: "User-agent: *\nDisallow: /no/"}
	s.answer = func(url string) protocol.Response {
		_, path, _ := strings.Cut(url[7:], "/")
		switch path {
		case "links":
			return body("text/html", `<title>L</title><a href=/x>one</a><a href=/y>two</a><a href=/x>again</a><a href=/links>self</a>`+
				`<a href=http://b.example.test/>out</a><a rel=nofollow href=/nf>no</a><a href="mailto:x@y">mail</a>text`)
		case "nofollow":
			return body("text/html", `<meta name=robots content=nofollow><meta http-equiv=refresh content="0; url=/z"><a href=/x>one</a>`)
		case "refresh":
			return body("text/html", `<meta http-equiv=refresh content="0; url=/z"><a href=/x>one</a>`)
		case "moved", "moved2":
			r := code(protocol.MovedPerm)
			r.Outcome.Location = "http://a.example.test/target"
			return r
		case "selfmoved":
			r := code(protocol.MovedTemp)
			r.Outcome.Location = url
			return r
		case "out":
			r := code(protocol.MovedTemp)
			r.Outcome.Location = "http://b.example.test/target"
			return r
		case "gone":
			return code(protocol.Gone)
		case "picture":
			return body("image/png", "\x89PNG\r\n\x1a\n")
		case "panic":
			return body("text/html", "panic")
		case "error":
			return body("text/html", "error\nof two lines")
		}
		return body("text/html", "<p>"+url)
	}
	return s
}

// picky is a parser that fails on some pages.
func picky(p parse.Parser) parse.Parser {
	return parserFunc(func(ctx context.Context, c *page.Content) (page.Parsed, error) {
		switch text := string(c.Body); {
		case text == "panic":
			panic("parser")
		case strings.HasPrefix(text, "error"):
			return page.Parsed{}, errors.New(text)
		}
		return p.Parse(ctx, c)
	})
}

func richURLs() []string {
	var urls []string
	for _, p := range []string{"links", "nofollow", "refresh", "moved", "selfmoved", "out", "gone", "picture", "no/1", "plain", "error"} {
		urls = append(urls, "http://a.example.test/"+p)
	}
	return append(urls, "http://b.example.test/links", "http://b.example.test/moved2")
}

func contents(t *testing.T, s segment.Store, name string) map[string]page.Content {
	return records(t, s, name, func(c *page.Content) string { return c.URL })
}

func targets(p segment.Parse) []string {
	var out []string
	for _, l := range p.Links {
		out = append(out, strings.TrimPrefix(l.URL, "http://"))
	}
	return out
}

func TestLinks(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"all": {
			"links":    "a.example.test/x a.example.test/y b.example.test/",
			"nofollow": "", "plain": "",
			"refresh": "a.example.test/z a.example.test/x",
			"moved":   "a.example.test/target", "selfmoved": "", "out": "b.example.test/target",
		},
		"internal": {
			"links":    "a.example.test/x a.example.test/y",
			"nofollow": "", "plain": "",
			"refresh": "a.example.test/z a.example.test/x",
			"moved":   "a.example.test/target", "selfmoved": "", "out": "",
		},
		"filtered": {
			"links":    "a.example.test/y b.example.test/",
			"nofollow": "", "plain": "",
			"refresh": "a.example.test/z",
			"moved":   "", "selfmoved": "", "out": "b.example.test/target",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, richSite(), richURLs()...)
				r.o.Scoring = share{}
				r.o.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool {
					return !strings.HasPrefix(u, "mailto:") && (name != "filtered" || !strings.HasSuffix(u, "/x") && u != "http://a.example.test/target")
				})}}
				r.o.Links.IgnoreExternal = name == "internal"
				rep := r.run(seg)
				parses := r.parses(seg)
				links := 0
				for _, p := range parses {
					links += len(p.Links)
					if p.Gave != float64(len(p.Links)) {
						t.Errorf("%s gave %g with %d links", p.URL, p.Gave, len(p.Links))
					}
					for i, l := range p.Links {
						if l.Score != float64(i+1) {
							t.Errorf("%s gives %g to link %d", p.URL, l.Score, i)
						}
					}
				}
				if rep.Links != links || rep.LinksRejected == 0 {
					t.Errorf("%d links: %+v", links, rep)
				}
				for _, path := range slices.Sorted(maps.Keys(want)) {
					p, ok := parses["http://a.example.test/"+path]
					if got := strings.Join(targets(p), " "); !ok || got != want[path] {
						t.Errorf("%s: %q, want %q", path, got, want[path])
					}
				}
				if _, ok := parses["http://a.example.test/gone"]; ok {
					t.Error("a page that is gone was parsed")
				}
				if p := parses["http://a.example.test/picture"]; p.Signature == nil || p.Error != "" || len(p.Links) > 0 {
					t.Errorf("picture: %+v", p)
				}
				if p := parses["http://a.example.test/moved"]; p.Signature != nil {
					t.Errorf("redirect: %+v", p)
				}
				// What data says of the links is what the crawl follows.
				data := records(t, r.db.Segments(), seg, func(d *segment.Data) string { return d.URL })
				var anchors []string
				for _, l := range data["http://a.example.test/links"].Parsed.Outlinks {
					anchors = append(anchors, l.Anchor)
				}
				wantAnchors := map[string]string{"all": "one two out", "internal": "one two", "filtered": "two out"}[name]
				if got := strings.Join(anchors, " "); got != wantAnchors {
					t.Errorf("anchors %q, want %q", got, wantAnchors)
				}
			})
		})
	}
}

// share gives the first link 1, the second 2 and so on.
type share struct{ scoring.Base }

func (share) Distribute(_ scoring.Page, links []scoring.Link) float64 {
	for i := range links {
		links[i].Score = float64(i + 1)
	}
	return float64(len(links))
}

func TestNormalFormsOfLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{answer: func(url string) protocol.Response {
			if strings.HasSuffix(url, "moved") {
				r := code(protocol.MovedPerm)
				r.Outcome.Location = "http://A.example.test:80/%7Ex#frag"
				return r
			}
			return body("text/html", `<a href="HTTP://A.Example.Test:80/y#1">1</a><a href="/y">2</a><a href="/./y#2">3</a>`)
		}}
		r := newRig(t, s, "http://a.example.test/moved", "http://a.example.test/p")
		r.o.Rules = urlfilter.Default()
		r.run(seg)
		p := r.parses(seg)
		if got := targets(p["http://a.example.test/p"]); len(got) != 1 || got[0] != "a.example.test/y" {
			t.Errorf("%v", got)
		}
		if got := targets(p["http://a.example.test/moved"]); len(got) != 1 || got[0] != "a.example.test/~x" {
			t.Errorf("%v", got)
		}
	})
}

func TestPluginThatPanicsCostsItsPageOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := richSite()
		r := newRig(t, s, "http://a.example.test/panic", "http://a.example.test/error", "http://a.example.test/plain", "http://b.example.test/boom")
		r.o.Parser = picky(r.o.Parser)
		r.o.Protocol = protocolFunc(func(ctx context.Context, q protocol.Request) (protocol.Response, error) {
			if strings.HasSuffix(q.URL, "boom") {
				panic("protocol")
			}
			return s.Fetch(ctx, q)
		})
		rep := r.run(seg)
		if rep.ParseFailed != 2 || rep.Parsed != 1 || rep.Visits[protocol.Failed] != 1 || rep.Visits[protocol.Success] != 3 {
			t.Errorf("%+v", rep)
		}
		parses := r.parses(seg)
		for _, p := range []string{"panic", "error"} {
			if got := parses["http://a.example.test/"+p]; got.Error == "" || strings.Contains(got.Error, "\n") || got.Signature != nil {
				t.Errorf("%s: %+v", p, got)
			}
		}
		if h := hostOf(t, r, "b.example.test"); len(h.Grants) > 0 || h.Stats.Failures != 1 {
			t.Errorf("%+v", h)
		}
		aligned(t, r.db.Segments(), seg)
	})
}

func TestValidatorsAreSentOnlyForContentThatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s)
		data := []crawldb.Datum{
			{URL: "http://a.example.test/known", ETag: "e", LastModified: "l", Signature: []byte("x")},
			{URL: "http://b.example.test/forgotten", ETag: "e", LastModified: "l"},
		}
		w, err := segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), "s2", 0)
		if err := errors.Join(err, w.Append(t.Context(), data), w.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
		sent := map[string]string{}
		r.o.Threads = 1
		r.o.Limits.MaxBytes = 77
		r.o.Protocol = protocolFunc(func(ctx context.Context, q protocol.Request) (protocol.Response, error) {
			if !strings.HasSuffix(q.URL, "robots.txt") {
				sent[q.URL] = fmt.Sprint(q.ETag, q.LastModified, q.MaxBytes)
			}
			return s.Fetch(ctx, q)
		})
		r.run("s2")
		if sent[data[0].URL] != "el77" || sent[data[1].URL] != "77" {
			t.Errorf("%v", sent)
		}
		// Nutch asks so for whatever it takes to have been modified once.
		w, err = segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), "s3", 0)
		if err := errors.Join(err, w.Append(t.Context(), data), w.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
		r.o.NutchCompat = true
		r.run("s3")
		if sent[data[0].URL] != "el77" || sent[data[1].URL] != "el77" {
			t.Errorf("NutchCompat: %v", sent)
		}
		w, err = segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), "s4", 0)
		if err := errors.Join(err, w.Append(t.Context(), data), w.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
		r.o.Unconditional = true
		r.run("s4")
		if sent[data[0].URL] != "77" || sent[data[1].URL] != "77" {
			t.Errorf("Unconditional: %v", sent)
		}
	})
}

// linksOf is a parser that finds the links that a body lists, in its order; one
// that begins with "refresh:" is where a refresh leads.
func linksOf(_ context.Context, c *page.Content) (page.Parsed, error) {
	p := page.Parsed{}
	for _, l := range strings.Fields(string(c.Body)) {
		to, refresh := strings.CutPrefix(l, "refresh:")
		switch {
		case refresh:
			p.Refresh = to
		case l == "nofollow":
			p.NoFollow = true
		default:
			p.Outlinks = append(p.Outlinks, page.Outlink{URL: l, Anchor: "to " + l})
		}
	}
	return p, nil
}

const from = "http://www.a.com/"

// accepted fetches one page and returns the links that are kept of it, with what
// each is given.
func accepted(t *testing.T, o fetch.Options, apart bool, resp protocol.Response) string {
	t.Helper()
	links, rep := kept(t, o, apart, resp)
	out := ""
	for _, l := range links {
		out += fmt.Sprintf("%s=%g ", l.URL, l.Score)
		if v, ok := l.Meta.Get("seed"); ok {
			out += "(" + v + ") "
		}
	}
	return out + fmt.Sprintf("rejected %d cut %d", rep.LinksRejected, rep.LinksCut)
}

func kept(t *testing.T, o fetch.Options, apart bool, resp protocol.Response) (links []segment.Link, rep fetch.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{answer: func(string) protocol.Response { return resp }})
		const seg = "seeded"
		w, err := segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), seg, 0)
		d := crawldb.Datum{URL: from, Status: crawldb.Unfetched, Meta: crawldb.MetaOf("seed", "x")}
		if err := errors.Join(err, w.Append(t.Context(), []crawldb.Datum{d}), w.Commit(t.Context())); err != nil {
			t.Fatal(err)
		}
		p := r.o
		r.o = o
		r.o.Protocol, r.o.Hosts, r.o.Politeness.Delay, r.o.Now = p.Protocol, p.Hosts, p.Politeness.Delay, p.Now
		if r.o.Scoring == nil {
			r.o.Scoring = found{}
		}
		if !apart {
			r.o.Parser = parserFunc(linksOf)
		}
		rep = r.run(seg)
		if apart {
			r.o.Parser = parserFunc(linksOf)
			if rep, err = fetch.Parse(t.Context(), r.db.Segments(), seg, r.o); err != nil {
				t.Fatal(err)
			}
		}
		links = r.parses(seg)[from].Links
	})
	return links, rep
}

// found gives each link the number of links that were found.
type found struct{ scoring.Base }

func (found) Distribute(p scoring.Page, links []scoring.Link) float64 {
	for i := range links {
		links[i].Score = float64(p.Found)
	}
	return 0
}

// anchored gives each link the length of the anchor that its page has for it.
type anchored struct{ scoring.Base }

func (anchored) Distribute(p scoring.Page, links []scoring.Link) float64 {
	for i := range links {
		for _, l := range p.Parsed.Outlinks {
			if l.URL == links[i].URL {
				links[i].Score = float64(len(l.Anchor))
			}
		}
	}
	return 0
}

// A filter finds the anchor of a link by its URL, although the rules have given that another
// spelling than the page has.
func TestScoringFindsTheAnchorOfALink(t *testing.T) {
	o := fetch.Options{Scoring: anchored{}, Rules: &urlfilter.Rules{
		Normalizers: []urlfilter.Normalizer{lowercase{}},
		Filters:     []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "/no") })},
	}}
	resp := body("text/html", "refresh:http://www.a.com/r http://www.a.com/no HTTP://WWW.A.COM/1 http://www.a.com/LONGER")
	want := "http://www.a.com/r=0 http://www.a.com/1=21 http://www.a.com/longer=26 rejected 1 cut 0"
	for _, apart := range []bool{false, true} {
		if got := accepted(t, o, apart, resp); got != want {
			t.Errorf("parsed apart: %v: got %s, want %s", apart, got, want)
		}
	}
}

func TestWhichLinksAreKept(t *testing.T) {
	lower := &urlfilter.Rules{
		Normalizers: []urlfilter.Normalizer{lowercase{}},
		Filters:     []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "/no") })},
	}
	all := "http://www.a.com/1 http://www.a.com/1 http://WWW.A.COM/ http://www.a.com/ http://b.a.com/ http://c.com/ http://www.a.com/no"
	exempt := func(from, to string) bool {
		return strings.Contains(to, "c.com") && strings.HasPrefix(from, "http://www.a.com")
	}
	for _, c := range []struct {
		name  string
		o     fetch.Options
		body  string
		ours  string
		nutch string // in the parse stage
	}{
		{"all", fetch.Options{Rules: lower}, all,
			"http://www.a.com/1=4 http://b.a.com/=4 http://c.com/=4 rejected 1 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://b.a.com/=7 http://c.com/=7 rejected 2 cut 0"},
		{"no filter", fetch.Options{Rules: lower, Links: fetch.Links{NoFilter: true}}, all,
			"http://www.a.com/1=4 http://b.a.com/=4 http://c.com/=4 http://www.a.com/no=4 rejected 0 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://b.a.com/=7 http://c.com/=7 http://www.a.com/no=7 rejected 1 cut 0"},
		{"no normalizer", fetch.Options{Rules: lower, Links: fetch.Links{NoNormalize: true}}, all,
			"http://www.a.com/1=5 http://WWW.A.COM/=5 http://b.a.com/=5 http://c.com/=5 rejected 1 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://WWW.A.COM/=7 http://b.a.com/=7 http://c.com/=7 rejected 2 cut 0"},
		{"on the host", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true}}, all,
			"http://www.a.com/1=4 rejected 3 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 rejected 4 cut 0"},
		{"in the domain", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true, By: hostdb.ByDomain}}, all,
			"http://www.a.com/1=4 http://b.a.com/=4 rejected 2 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://b.a.com/=7 rejected 3 cut 0"},
		{"off the host", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreInternal: true}}, all,
			"http://b.a.com/=7 http://c.com/=7 rejected 5 cut 0",
			"http://b.a.com/=7 http://c.com/=7 rejected 5 cut 0"},
		{"nowhere", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreInternal: true, IgnoreExternal: true}}, all,
			"rejected 7 cut 0", "rejected 7 cut 0"},
		{"but for exemptions", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true, Exempt: exempt}}, all,
			"http://www.a.com/1=4 http://c.com/=4 rejected 2 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://c.com/=7 rejected 3 cut 0"},
		{"exemptions count for hosts only in Nutch", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true, Exempt: exempt, By: hostdb.ByDomain}}, all,
			"http://www.a.com/1=4 http://b.a.com/=4 http://c.com/=4 rejected 1 cut 0",
			"http://www.a.com/1=7 http://www.a.com/1=7 http://www.a.com/=7 http://b.a.com/=7 rejected 3 cut 0"},
		{"and with filters only", fetch.Options{Rules: lower, Links: fetch.Links{IgnoreExternal: true, Exempt: exempt, NoFilter: true}}, "http://c.com/",
			"http://c.com/=1 rejected 0 cut 0", "rejected 1 cut 0"},
		{"two are enough, of those that are accepted", fetch.Options{Rules: lower, Links: fetch.Links{MaxPerPage: 2}}, "http://www.a.com/no http://x/1 http://x/1 http://x/2 http://x/3 http://x/1",
			"http://x/1=4 http://x/2=4 rejected 1 cut 1",
			"http://x/1=6 http://x/1=6 rejected 1 cut 3"},
		{"length", fetch.Options{Links: fetch.Links{MaxLength: 12}}, "http://x/123 http://x/1234 http://x/é2",
			"http://x/123=3 http://x/é2=3 rejected 1 cut 0", "http://x/123=3 http://x/é2=3 rejected 1 cut 0"},
		{"length in the units of Java", fetch.Options{Links: fetch.Links{MaxLength: 12}}, "http://x/é23",
			"rejected 1 cut 0", "http://x/é23=1 rejected 0 cut 0"},
		{"a refresh is a link, for Nutch a redirect without share", fetch.Options{Rules: lower}, "refresh:http://R/ http://x/1",
			"http://r/=2 http://x/1=2 rejected 0 cut 0", "http://x/1=1 http://r/=0 rejected 0 cut 0"},
		{"that is followed from a page that must not be", fetch.Options{Rules: lower}, "nofollow refresh:http://R/ http://x/1",
			"rejected 1 cut 0", "http://r/=0 rejected 1 cut 0"},
		{"a refresh out of the site", fetch.Options{Links: fetch.Links{IgnoreExternal: true}, Following: fetch.Following{ExemptRedirects: true}}, "refresh:http://r/",
			"http://r/=1 rejected 0 cut 0", "rejected 0 cut 0"},
		{"a refresh to the page itself", fetch.Options{}, "refresh:" + from, "rejected 0 cut 0", "rejected 0 cut 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, compat := range []bool{false, true} {
				want := map[bool]string{false: c.ours, true: c.nutch}[compat]
				c.o.NutchCompat = compat
				if got := accepted(t, c.o, true, body("text/html", c.body)); got != want {
					t.Errorf("compat %v:\ngot  %s\nwant %s", compat, got, want)
				}
			}
		})
	}
}

// lowercase is a normalizer.
type lowercase struct{}

func (lowercase) Normalize(_ urlfilter.Scope, u string) (string, error) {
	return strings.ToLower(u), nil
}

// A page without links gives its cash anyway; one that may have links again keeps it.
func TestScoreOfPagesWithoutLinks(t *testing.T) {
	for name, c := range map[string]struct {
		resp protocol.Response
		want float64
	}{
		"no links":      {body("text/html", ""), 1},
		"no parser":     {body("image/png", "x"), 1},
		"parse failure": {body("text/html", "error"), 1},
		"gone":          {code(protocol.Gone), 1},
		"not found":     {code(protocol.NotFound), 1},
		"redirect to itself": {func() protocol.Response {
			r := code(protocol.MovedTemp)
			r.Outcome.Location = from
			return r
		}(), 1},
		"not modified": {code(protocol.NotModified), 0},
		"busy":         {code(protocol.Busy), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &site{answer: func(string) protocol.Response { return c.resp }}, from)
			r.o.Parser = picky(r.o.Parser)
			r.o.Scoring = sinks{}
			r.run(seg)
			if got := r.parses(seg)[from].Gave; got != c.want {
				t.Errorf("%s: gave %g, want %g", name, got, c.want)
			}
			aligned(t, r.db.Segments(), seg)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{robots: "User-agent: *\nDisallow: /"}, from)
		r.o.Scoring = sinks{}
		r.run(seg)
		if got := r.parses(seg)[from].Gave; got != 1 {
			t.Errorf("a page that robots.txt forbids gave %g, want 1", got)
		}
		aligned(t, r.db.Segments(), seg)
	})
}

type sinks struct{ scoring.Base }

func (sinks) Distribute(_ scoring.Page, links []scoring.Link) float64 {
	if len(links) == 0 {
		return 1
	}
	return 0
}

// With Nutch the target of a redirect begins with all that is known of the page
// that led to it.
func TestNutchTargetsKnowTheVisit(t *testing.T) {
	moved := code(protocol.MovedPerm)
	moved.Outcome.Status, moved.Outcome.Location, moved.Content.Type = 301, "http://www.a.com/x", "text/html"
	for _, c := range []struct {
		name  string
		resp  protocol.Response
		apart bool
		links int
		want  string
	}{
		{"a redirect", moved, false, 1,
			"Content-Type=text/html _pst_=moved(12), lastModified=0: http://www.a.com/x _repr_=http://www.a.com/ _rs_=0 nutch.protocol.code=301 seed=x"},
		{"a refresh, if the fetcher parses", body("text/html", "refresh:http://b.com/"), false, 2, // that of the parser knows nothing
			"Content-Type=text/html _pst_=success(1), lastModified=0 _repr_=http://b.com/ seed=x"},
		{"a refresh to a page that stands for itself", body("text/html", "refresh:http://b.com/"), true, 1, ""},
		{"a refresh to one that does not", body("text/html", "refresh:http://www.a.com/x"), true, 1, "_repr_=http://www.a.com/"},
	} {
		links, _ := kept(t, fetch.Options{NutchCompat: true}, c.apart, c.resp)
		var meta []string
		for _, l := range links {
			for name, value := range l.Meta.All() {
				meta = append(meta, name+"="+value)
			}
		}
		if got := strings.Join(meta, " "); len(links) != c.links || got != c.want {
			t.Errorf("%s: %d links\ngot  %s\nwant %d %s", c.name, len(links), got, c.links, c.want)
		}
	}
}

// Hosts are compared, as in Nutch: not their ports nor the schemes.
func TestIgnoreExternalComparesHostsOnly(t *testing.T) {
	links := body("text/html", "http://www.a.com:8080/x https://www.a.com/y http://b.a.com/z file:///etc/hosts")
	for _, nutch := range []bool{false, true} {
		for by, want := range map[hostdb.By]string{
			hostdb.ByHost:   "http://www.a.com:8080/x https://www.a.com/y",
			hostdb.ByDomain: "http://www.a.com:8080/x https://www.a.com/y http://b.a.com/z",
			hostdb.ByIP:     "http://www.a.com:8080/x https://www.a.com/y",
		} {
			kept, _ := kept(t, fetch.Options{NutchCompat: nutch, Links: fetch.Links{IgnoreExternal: true, By: by}}, false, links)
			var got []string
			for _, l := range kept {
				got = append(got, l.URL)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%v, nutch %v: %s, want %s", by, nutch, got, want)
			}
		}
	}
}

func TestNutchCountsLinksAfterFilteringWhenTheFetcherParses(t *testing.T) {
	rules := &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "/no") })}}
	for apart, want := range map[bool]string{false: "http://x/1=1 rejected 1 cut 0", true: "http://x/1=2 rejected 1 cut 0"} {
		if got := accepted(t, fetch.Options{Rules: rules, NutchCompat: true}, apart, body("text/html", "http://x/1 http://x/no")); got != want {
			t.Errorf("apart %v: %s, want %s", apart, got, want)
		}
	}
}
