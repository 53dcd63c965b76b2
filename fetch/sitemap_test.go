package fetch_test

import (
	"sync/atomic"

	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

const home = "http://" + host

// records writes a fetch list of records.
func (r *rig) records(name string, list ...crawldb.Datum) {
	r.t.Helper()
	w, err := segment.NewWriter[crawldb.Datum](r.t.Context(), r.db.Segments(), name, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := errors.Join(w.Append(r.t.Context(), list), w.Commit(r.t.Context())); err != nil {
		r.t.Fatal(err)
	}
}

func marked(url string, s crawldb.Sitemap) crawldb.Datum {
	d := crawldb.Datum{URL: url, Status: crawldb.Unfetched}
	s.Set(&d.Meta)
	return d
}

// told returns the statements of the links of a page, in its order.
func claimsOf(p segment.Parse) (out []string) {
	for _, l := range p.Links {
		s := strings.TrimPrefix(l.URL, home)
		if l.Score != 0 {
			s += fmt.Sprintf(" gets %g", l.Score)
		}
		if m, ok := crawldb.SitemapOf(l.Meta); ok {
			s += fmt.Sprintf(" sitemap %d %d %s", m.Depth, m.Budget, strings.Join(m.Origins, ","))
		}
		if h, ok := crawldb.SitemapEntryOf(l.Meta); ok {
			s += " hint"
			if !h.Modified.IsZero() {
				s += fmt.Sprintf(" %s+%v", h.Modified.Format("2006-01-02T15:04"), h.Span)
			}
			if h.Every > 0 {
				s += fmt.Sprintf(" every %v", h.Every)
			}
			if h.HasPriority {
				s += fmt.Sprintf(" %g", h.Priority)
			}
		}
		out = append(out, s)
	}
	return out
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSitemapsOfRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{robots: "Sitemap: /s.xml\nSitemap: s.xml.gz\nSitemap: ///" + host + "/s.xml#f\nSitemap: https://cdn.test/x\nSitemap: " + home + "/archive.zip\nSitemap: mailto:x\nUser-agent: *\nDisallow: /no"}
		r := newRig(t, s, home+"/no", home+"/yes")
		r.o.Rules = urlfilter.Default()
		r.o.Scoring = scoring.OPIC{}
		rep := r.run(seg)
		lists := []string{
			"/s.xml sitemap 0 1666 " + home, "/s.xml.gz sitemap 0 1666 " + home, "https://cdn.test/x sitemap 0 1666 " + home,
		}
		// The first visit has them, whatever its outcome, and no other.
		var got []string
		for _, p := range r.parses(seg) {
			got = append(got, claimsOf(p)...)
		}
		want(t, "links", got, lists...)
		if rep.LinksRejected != 2 || rep.Visits[protocol.RobotsDenied] != 1 {
			t.Errorf("%+v", rep)
		}
		// The parse stage finds the same.
		r.list("later", home+"/no", home+"/yes")
		parser := r.o.Parser
		r.o.Parser = nil
		r.run("later")
		r.o.Parser = parser
		if _, err := fetch.Parse(t.Context(), r.db.Segments(), "later", r.o); err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, p := range r.parses("later") {
			got = append(got, claimsOf(p)...)
		}
		want(t, "links of the parse stage", got, lists...)

		for name, off := range map[string]func(*fetch.Options){
			"off":   func(o *fetch.Options) { o.Sitemaps.NoDiscovery = true },
			"nutch": func(o *fetch.Options) { o.NutchCompat = true },
		} {
			r.list(name, home+"/yes")
			o := r.o
			off(&o)
			if _, err := fetch.Run(t.Context(), r.db.Segments(), name, o); err != nil {
				t.Fatal(err)
			}
			want(t, name, claimsOf(r.parses(name)[home+"/yes"]))
		}
	})
}

const set = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>` + home + `/dir/a</loc><lastmod>1999-12-30</lastmod><changefreq>daily</changefreq><priority>0.75</priority></url>
<url><loc>` + home + `/dir/a</loc></url>
<url><loc>` + home + `/dir/../dir/b</loc><lastmod>2099-01-01T00:00:00Z</lastmod></url>
<url><loc>` + home + `/other</loc></url>
<url><loc>http://b.test/x</loc></url>
<url><loc>` + home + `/dir/pic.jpg</loc></url>
<url><loc>not a url</loc></url>
</urlset>`

func TestReadSitemaps(t *testing.T) {
	index := `<sitemapindex><sitemap><loc>` + home + `/1.xml</loc></sitemap><sitemap><loc>` + home + `/2.xml</loc></sitemap><sitemap><loc>` + home + `/3.xml</loc></sitemap></sitemapindex>`
	all := crawldb.Sitemap{Origins: []string{home}, Budget: 100}
	for _, c := range []struct {
		name, url, typ, body string
		mark                 crawldb.Sitemap
		edit                 func(*fetch.Options)
		want                 []string
		report               fetch.SitemapReport
		err                  string
	}{
		{name: "below its directory", url: "/dir/s.xml", body: set,
			want:   []string{"/dir/a hint 1999-12-30T00:00+24h0m0s every 24h0m0s 0.75", "/dir/b hint"},
			report: fetch.SitemapReport{Files: 1, URLs: 2, OutOfScope: 2, Rejected: 1, Bad: 1}},
		{name: "listed by two sites", url: "/dir/s.xml", body: set, mark: crawldb.Sitemap{Origins: []string{home, "http://b.test"}},
			want:   []string{"/dir/a hint 1999-12-30T00:00+24h0m0s every 24h0m0s 0.75", "/dir/b hint", "/other hint", "http://b.test/x hint"},
			report: fetch.SitemapReport{Files: 1, URLs: 4, Rejected: 1, Bad: 1}},
		{name: "not strict", url: "/dir/s.xml", body: set, edit: func(o *fetch.Options) { o.Sitemaps.NoStrict = true; o.Links.IgnoreExternal = true },
			want:   []string{"/dir/a hint 1999-12-30T00:00+24h0m0s every 24h0m0s 0.75", "/dir/b hint", "/other hint"},
			report: fetch.SitemapReport{Files: 1, URLs: 3, Rejected: 2, Bad: 1}},
		{name: "without rules", url: "/dir/s.xml", body: set, edit: func(o *fetch.Options) { o.Sitemaps.NoFilter, o.Sitemaps.NoNormalize = true, true },
			want:   []string{"/dir/a hint 1999-12-30T00:00+24h0m0s every 24h0m0s 0.75", "/dir/../dir/b hint", "/dir/pic.jpg hint"},
			report: fetch.SitemapReport{Files: 1, URLs: 3, OutOfScope: 2, Bad: 1}},
		{name: "lines", url: "/s.txt", typ: "text/plain", body: home + "/1\n" + home + "/2\n", mark: all, want: []string{"/1 hint", "/2 hint"},
			report: fetch.SitemapReport{Files: 1, URLs: 2}},
		{name: "so many", url: "/s.txt", typ: "text/plain", body: home + "/1\n" + home + "/2\n", mark: all, edit: func(o *fetch.Options) { o.Sitemaps.MaxURLs = 1 },
			want: []string{"/1 hint"}, report: fetch.SitemapReport{Files: 1, URLs: 1, Truncated: 1}},
		{name: "index", url: "/i.xml", body: index, mark: all,
			want:   []string{"/1.xml sitemap 1 32 " + home, "/2.xml sitemap 1 32 " + home, "/3.xml sitemap 1 32 " + home},
			report: fetch.SitemapReport{Files: 1, Indexes: 1, Sitemaps: 3}},
		{name: "beyond its budget", url: "/i.xml", body: index, mark: crawldb.Sitemap{Origins: []string{home}, Budget: 2, Depth: 1},
			want:   []string{"/1.xml sitemap 2 0 " + home, "/2.xml sitemap 2 0 " + home},
			report: fetch.SitemapReport{Files: 1, Indexes: 1, Sitemaps: 2, Cut: 1}},
		{name: "too deep", url: "/i.xml", body: index, mark: crawldb.Sitemap{Budget: 9, Depth: 2}, report: fetch.SitemapReport{Files: 1, Indexes: 1, Cut: 3}},
		{name: "of itself", url: "/1.xml", body: index, mark: all,
			want:   []string{"/2.xml sitemap 1 49 " + home, "/3.xml sitemap 1 49 " + home},
			report: fetch.SitemapReport{Files: 1, Indexes: 1, Sitemaps: 2}},
		{name: "feed", url: "/deep/f.rss", body: `<rss><channel><item><link>` + home + `/news</link><pubDate>Fri, 31 Dec 1999 10:00:00 GMT</pubDate></item></channel></rss>`,
			want: []string{"/news hint 1999-12-31T10:00+1s"}, report: fetch.SitemapReport{Files: 1, Feeds: 1, URLs: 1}},
		{name: "no sitemap", url: "/s.xml", typ: "text/html", body: "<html><a href=/x>not here</a>", err: "not a sitemap", report: fetch.SitemapReport{Failed: 1}},
		{name: "a page after all", url: "/s.xml", typ: "text/html", body: "<html><a href=/x>here</a>", mark: crawldb.Sitemap{Page: true}, want: []string{"/x gets 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.typ == "" {
					c.typ = "application/xml"
				}
				s := &site{answer: func(string) protocol.Response { return body(c.typ, c.body) }}
				r := newRig(t, s)
				r.o.Rules, r.o.Scoring = urlfilter.Default(), scoring.OPIC{}
				if c.edit != nil {
					c.edit(&r.o)
				}
				d := marked(home+c.url, c.mark)
				d.Score = 2
				r.records("fetched", d)
				rep := r.run("fetched")
				p := r.parses("fetched")[d.URL]
				want(t, "links", claimsOf(p), c.want...)
				if rep.Sitemaps != c.report {
					t.Errorf("%+v\nwant %+v", rep.Sitemaps, c.report)
				}
				if p.Error != c.err || p.Sitemap == (c.name == "a page after all") || (p.Signature == nil) != (c.err != "") || p.Gave != 2 {
					t.Errorf("%+v", p)
				}
				bodies := records(t, r.db.Segments(), "fetched", func(c *page.Content) string { return c.URL })
				if len(bodies) != 0 && p.Sitemap {
					t.Error("the body was kept")
				}
				aligned(t, r.db.Segments(), "fetched")

				// A fetch that does not parse leaves it to the parse stage.
				r.records("parsed", d)
				o := r.o
				o.Parser = nil
				if _, err := fetch.Run(t.Context(), r.db.Segments(), "parsed", o); err != nil {
					t.Fatal(err)
				}
				if _, err := fetch.Parse(t.Context(), r.db.Segments(), "parsed", r.o); err != nil {
					t.Fatal(err)
				}
				again := r.parses("parsed")[d.URL]
				want(t, "links of the parse stage", claimsOf(again), c.want...)
				if string(again.Signature) != string(p.Signature) || again.Error != p.Error || again.Sitemap != p.Sitemap {
					t.Errorf("%+v", again)
				}
			})
		})
	}
}

func TestSitemapMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{answer: func(string) protocol.Response {
			r := code(protocol.MovedPerm)
			r.Outcome.Location = home + "/new.xml"
			return r
		}}
		r := newRig(t, s)
		d := marked(home+"/old.xml", crawldb.Sitemap{Depth: 1, Budget: 5, Origins: []string{home}, Page: true})
		r.records("s", d)
		r.run("s")
		want(t, "links", claimsOf(r.parses("s")[d.URL]), "/new.xml sitemap 1 5 "+home)
		m, _ := crawldb.SitemapOf(r.parses("s")[d.URL].Links[0].Meta)
		if m.Hops != 1 || m.Page {
			t.Errorf("%+v", m)
		}
		d = marked(home+"/old.xml", crawldb.Sitemap{Hops: 5})
		r.records("t", d)
		r.run("t")
		want(t, "links after five", claimsOf(r.parses("t")[d.URL]))
	})
}

// No more sitemaps than have a place are in memory at a time, and pages pass those
// that wait.
func TestSitemapsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second, answer: func(string) protocol.Response { return body("text/plain", home+"/x\n") }}
		r := newRig(t, s)
		r.o.Threads, r.o.Politeness.Delay, r.o.Politeness.NoRobots = 16, -1, true
		r.o.Politeness.MaxWait, r.o.Politeness.MaxCrawlDelay = 1, 1 // to wait for a place is no wait for a host
		var list []crawldb.Datum
		for i := range 8 {
			u := fmt.Sprintf("http://h%d.test/", i)
			list = append(list, marked(u+"s.txt", crawldb.Sitemap{}), crawldb.Datum{URL: u, Status: crawldb.Unfetched})
		}
		r.records("s", list...)
		began := time.Now()
		r.run("s")
		asks := s.of("/s.txt")
		for i, a := range asks {
			n := 0
			for _, b := range asks {
				if !b.begin.After(a.begin) && b.end.After(a.begin) {
					n++
				}
			}
			if n > 2 {
				t.Errorf("%d at the time of sitemap %d", n, i)
			}
		}
		for _, a := range s.of("test/") {
			if !strings.HasSuffix(a.url, "s.txt") && a.begin.Sub(began) > 1100*time.Millisecond {
				t.Errorf("%s was asked after %v", a.url, a.begin.Sub(began))
			}
		}
		if took := time.Since(began); len(asks) != 8 || took > 5*time.Second {
			t.Errorf("%d sitemaps in %v", len(asks), took)
		}
	})
}

func TestFeedsAreRead(t *testing.T) {
	feed := `<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/a"/><updated>1999-12-31T01:02:03Z</updated></entry>` +
		`<entry><link href="http://b.test/b"/><updated>1999-12-31T01:02:03Z</updated></entry><entry><link href="/x.gif"/></entry></feed>`
	for _, c := range []struct {
		typ, body string
		edit      func(*fetch.Options)
		want      []string
	}{
		{typ: "application/atom+xml", body: feed, want: []string{"/a gets 1", "http://b.test/b gets 1", "/a hint 1999-12-31T01:02+1s"}},
		{typ: "text/xml; charset=utf-8", body: feed, want: []string{"/a gets 1", "http://b.test/b gets 1", "/a hint 1999-12-31T01:02+1s"}},
		{typ: "image/png", body: feed},
		{typ: "application/xml", body: set},
		{typ: "application/xml", body: "<html/>"},
		{typ: "application/atom+xml", body: feed, edit: func(o *fetch.Options) { o.Sitemaps.NoFeeds = true }},
		{typ: "application/atom+xml", body: feed, edit: func(o *fetch.Options) { o.NutchCompat = true }},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: func(string) protocol.Response { return body(c.typ, c.body) }}
			r := newRig(t, s)
			r.o.Rules, r.o.Scoring = urlfilter.Default(), scoring.OPIC{}
			if c.edit != nil {
				c.edit(&r.o)
			}
			d := crawldb.Datum{URL: home + "/feed", Status: crawldb.Unfetched, Score: 2}
			r.records("s", d)
			rep := r.run("s")
			p := r.parses("s")[d.URL]
			want(t, c.typ, claimsOf(p), c.want...)
			if p.Sitemap || p.Signature == nil || p.Gave > 2 || rep.Sitemaps.Feeds != min(len(c.want), 1) {
				t.Errorf("%+v %+v", p, rep.Sitemaps)
			}
		})
	}
}

// Sitemaps that wait for a place do not keep the loop busy, however many they are.
func TestSitemapsBeyondTheMemoryLimitWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		s := &site{slow: map[string]time.Duration{}, answer: func(string) protocol.Response {
			return body("application/xml", "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'></urlset>")
		}}
		r := newRig(t, s)
		w, err := segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), "maps", 0)
		if err != nil {
			t.Fatal(err)
		}
		var all []crawldb.Datum
		for i := range n {
			d := crawldb.Datum{URL: fmt.Sprintf("http://h%d.test/map", i), Status: crawldb.Unfetched}
			crawldb.Sitemap{Budget: 1}.Set(&d.Meta)
			all = append(all, d)
			s.slow[d.URL] = 5 * time.Minute
		}
		if err := w.Append(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.o.Threads = 64 // eight places
		var looks atomic.Int64
		r.o.Robots = &robots.Cache{Protocol: s, Hosts: r.o.Hosts, Now: func() time.Time {
			looks.Add(1)
			return time.Now()
		}}
		began := time.Now()
		rep := r.run("maps")
		took := time.Since(began)
		if rep.Sitemaps.Files != n || took > n/8*6*time.Minute || looks.Load() > 30_000 {
			t.Errorf("%d looks in %v, %+v", looks.Load(), took, rep.Sitemaps)
		}
	})
}

// forgetful is a host store that loses what was not synced when the process dies.
type forgetful struct {
	*memstore.Hosts
	durable map[string]hostdb.Host
	died    func() bool
}

func (f *forgetful) Sync(ctx context.Context) error {
	if f.died() {
		return nil
	}
	f.durable = map[string]hostdb.Host{}
	for h, err := range f.Scan(ctx) {
		if err != nil {
			return err
		}
		h.Robots = slices.Clone(h.Robots)
		f.durable[h.Name] = h
	}
	return nil
}

// restart returns the host store as the next process finds it.
func (f *forgetful) restart(t *testing.T) *memstore.Hosts {
	hosts := new(memstore.Hosts)
	for name, h := range f.durable {
		h.Grants = nil
		if err := hosts.Update(t.Context(), name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil }); err != nil {
			t.Fatal(err)
		}
	}
	return hosts
}

func TestSitemapsOfRobotsSurviveKillOfFetchWithoutParser(t *testing.T) {
	for n := 1; ; n++ {
		finished := false
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &site{robots: "Sitemap: /s.xml"}, append(pageURLs("a.test", 1), pageURLs("b.test", 30)...)...)
			parser := r.o.Parser
			r.o.Parser = nil
			left := n
			hosts := &forgetful{Hosts: new(memstore.Hosts), died: func() bool { return left <= 0 }}
			r.o.Hosts = hosts
			r.renew()
			if _, err := fetch.Run(t.Context(), dying{r.db.Segments(), &left}, seg, r.o); err == nil {
				finished = true
			} else if !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			r.o.Hosts = hosts.restart(t)
			r.renew()
			r.run(seg)
			r.o.Parser = parser
			if _, err := fetch.Parse(t.Context(), r.db.Segments(), seg, r.o); err != nil {
				t.Fatal(err)
			}
			sitemaps := 0
			for _, p := range r.parses(seg) {
				sitemaps += len(claimsOf(p))
			}
			if sitemaps != 2 {
				t.Errorf("killed at step %d: %d sitemaps, want 2", n, sitemaps)
			}
		})
		if finished {
			return
		}
	}
}
