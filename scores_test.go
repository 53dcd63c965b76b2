package recrawl_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/internal/testlevel"
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

var errFrail = errors.New("dead")

// fickle is a web where a page is another one at every visit: gone, a redirect to
// itself, a page of links that may not be followed.
type fickle struct {
	seed  uint64
	visit *uint64
}

func (w fickle) Fetch(_ context.Context, req protocol.Request) (r protocol.Response, err error) {
	if strings.HasSuffix(req.URL, "/robots.txt") {
		r.Outcome.Code = protocol.NotFound
		return r, nil
	}
	h := fnv.New64a()
	h.Write([]byte(req.URL))
	rnd := rand.New(rand.NewPCG(w.seed^h.Sum64(), *w.visit))
	link := func() string {
		return []string{
			fmt.Sprintf("http://h%d.example/%d", rnd.IntN(5), rnd.IntN(40)), fmt.Sprintf("/%d?a=%d#x", rnd.IntN(9), rnd.IntN(3)),
			req.URL, "http://bad.example/x", "mailto:x", "/%d", "//h1.example",
		}[rnd.IntN(7)]
	}
	html := func(format string, args ...any) {
		r.Content = page.Content{Type: "text/html", Body: fmt.Appendf(nil, format, args...)}
	}
	codes := []protocol.Code{protocol.NotFound, protocol.Gone, protocol.Denied, protocol.Failed, protocol.Busy, protocol.NotModified, protocol.MovedPerm, protocol.MovedTemp, protocol.Success}
	switch r.Outcome.Code = codes[min(rnd.IntN(16), len(codes)-1)]; {
	case r.Outcome.Code.Redirect():
		r.Outcome.Location = link()
	case r.Outcome.Code != protocol.Success:
	case rnd.IntN(9) == 0:
		r.Content = page.Content{Type: "application/x-unknown", Body: []byte("x")}
	case rnd.IntN(9) == 0:
		html("")
	case rnd.IntN(9) == 0:
		html(`<meta name=robots content=nofollow><a href=/1>x</a>`)
	case rnd.IntN(9) == 0:
		html(`<meta http-equiv=refresh content="0;url=%s"><a href=/1>x</a>`, link())
	default:
		var b strings.Builder
		for range rnd.IntN(12) {
			b.WriteString(`<a href="` + link() + `">x</a>`)
		}
		html("%s", b.String())
	}
	return r, nil
}

// frail is a crawl db that dies at the n-th write.
type frail struct {
	crawldb.Store
	n int
}

func (f *frail) Update(ctx context.Context, b crawldb.Batch) error {
	if f.n--; f.n == 0 {
		return errFrail
	}
	return f.Store.Update(ctx, b)
}

// Segments of such a web are applied in any order, by updates that die and are
// continued, through chains of filters that drop links, and records are deleted
// between rounds: what the records have is what the seeds brought, less what
// was deleted.
func TestScoreIsConservedWhenPagesChange(t *testing.T) {
	testlevel.SkipInRace(t)
	for i, filter := range []scoring.Filter{
		scoring.OPIC{},
		scoring.Chain{scoring.OPIC{CountFiltered: true, InternalFactor: 0.3}, scoring.Depth{Max: 4}, scoring.Orphan{}},
		scoring.Chain{scoring.Depth{Max: 3}, scoring.OPIC{ExternalFactor: -1}},
	} {
		synctest.Test(t, func(t *testing.T) { // hosts that are busy are left alone for minutes
			db, rnd, round := new(memstore.DB), rand.New(rand.NewPCG(uint64(i), 7)), uint64(0)
			crawl := &frail{Store: db.Crawl()}
			c, err := recrawl.New(recrawl.Stores{Crawl: crawl, Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{
				Protocol: fickle{uint64(i), &round}, Scoring: filter, Schedule: schedule.Default{DefaultInterval: time.Hour},
				Rules: &urlfilter.Rules{
					Normalizers: []urlfilter.Normalizer{urlfilter.Basic{}},
					Filters:     []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { return !strings.Contains(u, "bad") })},
				},
				Generate: generate.Options{Segments: 2, TopN: 25}, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, ParseLater: i == 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for n := range 5 {
				if _, err := c.InjectSeeds(t.Context(), inject.URLs(fmt.Sprintf("http://h%d.example/", n)), inject.Options{Score: float32(n + 1)}); err != nil {
					t.Fatal(err)
				}
			}
			want := 15.0
			for round = range 30 {
				g, err := c.Generate(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range g.Segments {
					if _, err := c.Fetch(t.Context(), name); err != nil {
						t.Fatal(err)
					}
				}
				rnd.Shuffle(len(g.Segments), func(i, j int) { g.Segments[i], g.Segments[j] = g.Segments[j], g.Segments[i] })
				for _, name := range g.Segments {
					for err = errFrail; errors.Is(err, errFrail); {
						crawl.n = rnd.IntN(4)
						_, err = c.Update(t.Context(), name)
					}
					if crawl.n = 0; err != nil {
						t.Fatal(err)
					}
				}
				cash, urls := 0.0, []string(nil)
				for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
					if err != nil {
						t.Fatal(err)
					}
					cash += scoring.Cash(&d)
					if rnd.IntN(200) == 0 {
						urls = append(urls, d.URL)
					}
				}
				if math.Abs(cash-want) > 1e-9 {
					t.Fatalf("%T after round %d: the cash is %v, want %v", filter, round, cash, want)
				}
				err = db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
					want -= scoring.Cash(old)
					return nil, nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(rnd.IntN(80)) * time.Hour)
			}
			if want < 1 {
				t.Errorf("after all that was deleted the cash is %v", want)
			}
		})
	}
}

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
		Fetch:  fetch.Options{Politeness: fetch.Politeness{Delay: -1}, NutchCompat: true, Links: fetch.Links{MaxPerPage: 100}},
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
func TestScoreOfACrawlIsConserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // some servers ask to be left alone for two minutes
		s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 25, LinksPerPage: 4, Seed: 5})
		s.web.Start, s.web.Now = time.Now().AddDate(-1, 0, 0), time.Now
		s.opts.Run.Rounds, s.opts.Now = 1, time.Now
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
