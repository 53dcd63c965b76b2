package recrawl_test

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// pagesOf is a site by URL; a page that begins with "->" is a redirect.
type pagesOf map[string]string

func (s pagesOf) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	body, ok := s[r.URL]
	if !ok {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound}}, nil
	}
	if to, ok := strings.CutPrefix(body, "->"); ok {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.MovedPerm, Location: to}}, nil
	}
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success}, Content: page.Content{Type: "text/html", Body: []byte(body)}}, nil
}

// Ten crawls of a whole site with NutchCompat everywhere, beside the arithmetic
// of Nutch's crawl with scoring-opic: 32-bit floats, a share for each
// occurrence of a link, nothing along redirects, and nothing taken away.
func TestScoresOfACrawlByNutch(t *testing.T) {
	const a, b = "http://a.example/", "http://b.example/"
	site := pagesOf{
		a:       `<a href="/1">1</a><a href="/1">again</a><a href="2">2</a><a href="#top">self</a><a href="http://b.example">b</a><a href="mailto:x@y">m</a><a rel=nofollow href=/3>3</a><a href="/gone"></a>`,
		a + "1": `<link rel=stylesheet href=/s.css><a href="/">up</a><a href="/1">self</a><a href="/2">2</a><a href="/gone">x</a>`,
		a + "2": "->http://a.example/4",
		a + "4": `<p>no links`,
		b:       `<a href="http://a.example/1">1</a><form action=/f><p>no</form><meta name=robots content=nofollow>`,
	}
	// What Nutch writes of each page: the targets in order, after its own rules.
	links := map[string][]string{
		a:       {a + "1", a + "1", a + "2", a, b},
		a + "1": {a + "s.css", a, a + "2", a + "gone"},
		b:       {a + "1"},
	}
	redirects := map[string]string{a + "2": a + "4"}

	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	db := new(memstore.DB)
	defer db.Close()
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{
		Protocol: site, Now: func() time.Time { return now },
		Parser:    htmlparse.Mux(&htmlparse.Parser{NutchCompat: true}),
		Scoring:   scoring.OPIC{NutchCompat: true},
		Schedule:  schedule.Default{DefaultInterval: time.Hour, NutchCompat: true},
		Signature: signature.MD5{},
		Rules: &urlfilter.Rules{
			Normalizers: []urlfilter.Normalizer{urlfilter.Basic{NutchCompat: true}},
			Filters:     []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return strings.HasPrefix(u, "http://") })},
		},
		Fetch:  fetch.Options{Delay: -1, NutchCompat: true, MaxOutlinks: 100},
		Update: update.Options{NutchCompat: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Inject(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	want := map[string]float32{a: 1}
	for round := range 10 {
		in := map[string][]float32{}
		for from, score := range want {
			if to, ok := redirects[from]; ok {
				in[to] = append(in[to], 0)
			}
			for _, to := range links[from] {
				in[to] = append(in[to], score/float32(len(links[from])))
			}
		}
		for to, shares := range in {
			slices.SortFunc(shares, func(x, y float32) int { return cmp.Compare(y, x) })
			var sum float32
			for _, s := range shares {
				sum += s
			}
			want[to] += sum
		}

		g, err := c.Generate(t.Context())
		if err != nil || len(g.Segments) != 1 {
			t.Fatalf("%+v, %v", g, err)
		}
		name := g.Segments[0]
		if _, err := c.FetchOnly(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Parse(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Update(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		got := map[string]float32{}
		for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			got[d.URL] = d.Score
		}
		if !maps.Equal(got, want) {
			t.Fatalf("after %d rounds:\ngot  %v\nwant %v", round+1, got, want)
		}
		now = now.AddDate(0, 0, 100)
	}
}

// A web with redirects, dead links, robots.txt and pages without links: whatever
// happens to a page, the cash of the seeds is all there is, and most of it goes
// round.
func TestCashOfACrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // some servers ask to be left alone for two minutes
		s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 25, LinksPerPage: 4, Seed: 5})
		s.web.Start, s.web.Now = time.Now().AddDate(-1, 0, 0), time.Now
		s.opts.Rounds, s.opts.Now = 1, time.Now
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		seeds := float64(len(s.web.Seeds()))
		for round := range 30 {
			if _, err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			cash, waiting := 0.0, 0.0
			for _, d := range s.records(t) {
				cash += scoring.Cash(&d)
				if d.Status == crawldb.Fetched || d.Status == crawldb.Unfetched || d.Status == crawldb.NotModified {
					waiting += scoring.Cash(&d)
				}
			}
			if math.Abs(cash-seeds) > 1e-6 || waiting < seeds/4 {
				t.Fatalf("after %d rounds the cash is %v of %v, %v of it in pages", round+1, cash, seeds, waiting)
			}
			time.Sleep(20 * 24 * time.Hour)
		}
	})
}
