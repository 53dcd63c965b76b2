package fetch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/update"
)

// tagged is a page that never changes, on a server that sends an X-Robots-Tag.
type tagged struct {
	site
	tag    string
	mute   bool // sends none with "not modified"
	broken bool // answers "not modified" to any request
}

func (s *tagged) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	resp, err := s.site.Fetch(ctx, r)
	if err != nil || strings.HasSuffix(r.URL, "robots.txt") {
		return resp, err
	}
	resp = body("text/html", "<p>text")
	if s.broken || r.ETag != "" {
		resp = code(protocol.NotModified)
	}
	if resp.Outcome.Code == protocol.Success || !s.mute {
		resp.Content.Robots = s.tag
	}
	resp.ETag = `"1"`
	return resp, nil
}

// A page that was not modified is asked for again, under a grant of its own and without validators, if its header
// forbids indexing and did not when it said so last, or the other way round.
func TestNoIndexOfANotModifiedPage(t *testing.T) {
	past, future := "unavailable_after: 1999-12-31", "unavailable_after: 2999-12-31"
	const mark = "page.x-robots-tag"
	known := func(_ *rig, _ *tagged, d *crawldb.Datum) { d.Meta.Set(mark, "noindex") }
	for _, c := range []struct {
		name, tag string
		set       func(*rig, *tagged, *crawldb.Datum)
		asked     int
		code      protocol.Code
		noted     bool
	}{
		{name: "without", asked: 1, code: protocol.NotModified},
		{name: "with others", tag: "nofollow,noarchive", asked: 1, code: protocol.NotModified},
		{name: "forbidden", tag: "noindex", asked: 2, code: protocol.Success, noted: true},
		{name: "known to be", tag: "noindex", set: known, asked: 1, code: protocol.NotModified},
		{name: "no longer", set: known, asked: 2, code: protocol.Success},
		{name: "no longer, with others", tag: "nofollow", set: known, asked: 2, code: protocol.Success},
		{name: "over", tag: past, asked: 2, code: protocol.Success, noted: true},
		{name: "not over yet", tag: future, asked: 1, code: protocol.NotModified},
		{name: "told with content only", tag: "noindex", set: func(_ *rig, s *tagged, _ *crawldb.Datum) { s.mute = true }, asked: 1, code: protocol.NotModified},
		{name: "by one who was not asked", tag: "noindex", set: func(_ *rig, s *tagged, d *crawldb.Datum) { s.broken, d.ETag = true, "" }, asked: 1, code: protocol.NotModified},
		{name: "by one who does not read", tag: "noindex", set: func(_ *rig, s *tagged, _ *crawldb.Datum) { s.broken = true }, asked: 2, code: protocol.NotModified},
		{name: "no longer, by one who does not read", set: func(r *rig, s *tagged, d *crawldb.Datum) { known(r, s, d); s.broken = true }, asked: 2, code: protocol.NotModified},
		{name: "content", tag: "noindex", set: func(_ *rig, _ *tagged, d *crawldb.Datum) { d.ETag = "" }, asked: 1, code: protocol.Success},
		{name: "known to be, and content", tag: "noindex", set: func(r *rig, s *tagged, d *crawldb.Datum) { known(r, s, d); d.ETag = "" }, asked: 1, code: protocol.Success, noted: true},
		{name: "what no parser reads", tag: "noindex", set: func(r *rig, _ *tagged, _ *crawldb.Datum) {
			r.o.Parser = parserFunc(func(context.Context, *page.Content) (page.Parsed, error) { return page.Parsed{}, parse.ErrUnsupported })
		}, asked: 2, code: protocol.Success, noted: true},
		{name: "parsed later", tag: "noindex", set: func(r *rig, _ *tagged, _ *crawldb.Datum) { r.o.Parser = nil }, asked: 1, code: protocol.NotModified},
		{name: "a sitemap", tag: "noindex", set: func(_ *rig, _ *tagged, d *crawldb.Datum) { crawldb.Sitemap{}.Set(&d.Meta) }, asked: 1, code: protocol.NotModified},
		{name: "as Nutch", tag: "noindex", set: func(r *rig, _ *tagged, _ *crawldb.Datum) { r.o.NutchCompat = true }, asked: 1, code: protocol.NotModified},
		{name: "content as Nutch", tag: "noindex", set: func(r *rig, s *tagged, d *crawldb.Datum) {
			known(r, s, d)
			r.o.NutchCompat, d.ETag = true, ""
		}, asked: 1, code: protocol.Success},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tagged{tag: c.tag}
				r := newRig(t, &s.site)
				r.o.Protocol = s
				r.renew()
				d := crawldb.Datum{URL: "http://" + host + "/page", Status: crawldb.Fetched, ETag: `"1"`, Signature: []byte("x")}
				if c.set != nil {
					c.set(r, s, &d)
				}
				r.records("s2", d, crawldb.Datum{URL: "http://" + host + "/other", Status: crawldb.Unfetched})
				rep := r.run("s2")
				v := r.visits("s2")[d.URL]
				if asked := len(s.of("/page")); asked != c.asked || v.Outcome.Code != c.code || v.ETag == "" {
					t.Errorf("%d requests: %+v", asked, v)
				}
				if r.o.Parser != nil {
					if value, noted := r.parses("s2")[d.URL].Meta.Get(strings.TrimPrefix(mark, "page.")); noted != c.noted || noted && value != "noindex" {
						t.Errorf("noted %t: %q", noted, value)
					}
				}
				polite(t, &s.site, hostdb.ByHost, five)
				if h := hostOf(t, r, host); rep.Visited() != 2 || len(h.Grants) > 0 || h.Spent.Requests != int64(c.asked+2) {
					t.Errorf("%d visits, %+v", rep.Visited(), h)
				}
			})
		})
	}
}

// A page whose operator forbids indexing and later allows it is out of the index, and in it again, though
// the page itself has not changed and the server answers "not modified" wherever it can. A server whose "not modified"
// has no such header costs no request more.
func TestIndexFollowsTheHeaderOfAPageThatDoesNotChange(t *testing.T) {
	for _, mute := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &tagged{mute: mute}
			r := newRig(t, &s.site)
			r.o.Protocol = s
			r.renew()
			url := "http://" + host + "/page"
			shelf := shelf{}
			for i, c := range []struct {
				tag     string
				indexed bool
				asked   int
			}{{"", true, 1}, {"", true, 1}, {"noindex", false, 2}, {"noindex", false, 1}, {"noindex", false, 1}, {"", true, 2}, {"", true, 1}, {"noindex", false, 2}} {
				if mute {
					c.indexed, c.asked = true, 1
				}
				s.tag = c.tag
				name := fmt.Sprint("s", i)
				r.listAgain(name, url)
				before := len(s.of("/page"))
				r.run(name)
				if _, err := update.Run(t.Context(), r.db.Crawl(), r.db.Segments(), name, update.Options{}); err != nil {
					t.Fatal(err)
				}
				if _, err := index.Run(t.Context(), r.db.Crawl(), nil, r.db.Segments(), shelf, index.Options{Segments: []string{name}}); err != nil {
					t.Fatal(err)
				}
				if asked := len(s.of("/page")) - before; shelf[url] != c.indexed || asked != c.asked {
					t.Errorf("mute %t, visit %d, %q: in the index %t, %d requests", mute, i, c.tag, shelf[url], asked)
				}
				time.Sleep(40 * 24 * time.Hour)
			}
		})
	}
}

// shelf is an index of URLs.
type shelf map[string]bool

func (s shelf) Write(_ context.Context, d *index.Document) error { s[d.URL] = true; return nil }
func (s shelf) Delete(_ context.Context, url string) error       { delete(s, url); return nil }
func (s shelf) Commit(context.Context) error                     { return nil }
