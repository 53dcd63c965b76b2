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
		if h := hostOf(t, r, "b.example.test"); len(h.Busy) > 0 || h.Stats.Failures != 1 {
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

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, richSite(), richURLs()...)
		done, bytes := 0, int64(0)
		r.o.OnVisit = func(v segment.Visit, p fetch.Progress) {
			done++
			bytes += v.Bytes
			if p.Done != done || p.Listed != len(richURLs()) || p.InFlight < 0 || p.Hosts > 2 {
				t.Errorf("%+v after %d visits", p, done)
			}
		}
		rep := r.run(seg)
		if done != rep.Visited() || done != rep.Listed || bytes != rep.Bytes || bytes == 0 {
			t.Errorf("told of %d visits and %d bytes: %+v", done, bytes, rep)
		}
	})
}
