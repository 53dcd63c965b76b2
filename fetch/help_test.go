package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/stores/memstore"
)

const seg = "20260105080000-000"

// ask is one request that was made.
type ask struct {
	url        string
	begin, end time.Time
	cut        bool // by the context
}

// site answers requests after a while and remembers them. A nil answer is an
// empty page.
type site struct {
	latency time.Duration
	slow    map[string]time.Duration // by URL, instead of latency
	robots  string                   // body of every robots.txt; empty: 404
	answer  func(url string) protocol.Response

	mu   sync.Mutex
	asks []ask
}

func (s *site) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	wait, ok := s.slow[r.URL]
	if !ok {
		wait = s.latency
	}
	a := ask{url: r.URL, begin: time.Now()}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		a.cut = true
	}
	a.end = time.Now()
	s.mu.Lock()
	s.asks = append(s.asks, a)
	s.mu.Unlock()
	if a.cut {
		return protocol.Response{}, ctx.Err()
	}
	if strings.HasSuffix(r.URL, "/robots.txt") {
		if s.robots == "" {
			return code(protocol.NotFound), nil
		}
		return body("text/plain", s.robots), nil
	}
	if s.answer == nil {
		return body("text/html", "<p>"+r.URL), nil
	}
	return s.answer(r.URL), nil
}

func code(c protocol.Code) protocol.Response {
	return protocol.Response{Outcome: protocol.Outcome{Code: c}}
}

func body(typ, text string) protocol.Response {
	r := code(protocol.Success)
	r.Content = page.Content{Type: typ, Body: []byte(text)}
	r.Bytes = int64(len(text))
	return r
}

// of returns the requests whose URL contains some text, in the order they began.
func (s *site) of(text string) []ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ask
	for _, a := range s.asks {
		if strings.Contains(a.url, text) {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b ask) int { return a.begin.Compare(b.begin) })
	return out
}

// gaps returns the pauses between requests, which must not overlap.
func gaps(t *testing.T, asks []ask) []time.Duration {
	t.Helper()
	var out []time.Duration
	for i := 1; i < len(asks); i++ {
		gap := asks[i].begin.Sub(asks[i-1].end)
		if gap < 0 {
			t.Errorf("%s and %s were asked at the same time", asks[i-1].url, asks[i].url)
		}
		out = append(out, gap)
	}
	return out
}

// rig is a fetch with all it needs, in memory.
type rig struct {
	t    *testing.T
	site *site
	db   *memstore.DB
	o    fetch.Options
}

// newRig makes a fetch of some pages.
func newRig(t *testing.T, s *site, urls ...string) *rig {
	t.Helper()
	r := &rig{t: t, site: s, db: &memstore.DB{}}
	r.o = fetch.Options{Protocol: s, Hosts: r.db.Hosts(), Parser: htmlparse.Mux(&htmlparse.Parser{}), Signature: signature.TextMD5{}}
	r.renew()
	r.list(seg, urls...)
	return r
}

// renew forgets what is in memory only.
func (r *rig) renew() {
	r.o.Robots = &robots.Cache{Protocol: r.o.Protocol, Hosts: r.o.Hosts, Product: "test", Now: r.o.Now}
}

// list writes a fetch list.
func (r *rig) list(name string, urls ...string) {
	r.t.Helper()
	w, err := segment.NewWriter[crawldb.Datum](r.t.Context(), r.db.Segments(), name, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	var data []crawldb.Datum
	for _, u := range urls {
		data = append(data, crawldb.Datum{URL: u, Status: crawldb.Unfetched})
	}
	if err := errors.Join(w.Append(r.t.Context(), data), w.Commit(r.t.Context())); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) run(name string) fetch.Report {
	r.t.Helper()
	rep, err := fetch.Run(r.t.Context(), r.db.Segments(), name, r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	return rep
}

// records reads a part.
func records[T segment.Record](t *testing.T, s segment.Store, name string, url func(*T) string) map[string]T {
	t.Helper()
	m := map[string]T{}
	for rec, err := range segment.Records[T](t.Context(), s, name) {
		if err != nil {
			t.Fatal(err)
		}
		u := url(&rec)
		if _, dup := m[u]; dup {
			t.Errorf("%s has %s twice", segment.PartOf[T](), u)
		}
		m[u] = rec
	}
	return m
}

func visitURL(v *segment.Visit) string { return v.URL }
func parseURL(p *segment.Parse) string { return p.URL }

func (r *rig) visits(name string) map[string]segment.Visit {
	r.t.Helper()
	return records(r.t, r.db.Segments(), name, visitURL)
}

func (r *rig) parses(name string) map[string]segment.Parse {
	r.t.Helper()
	return records(r.t, r.db.Segments(), name, parseURL)
}

// codes counts the outcomes.
func (r *rig) codes(name string) map[protocol.Code]int {
	m := map[protocol.Code]int{}
	for _, v := range r.visits(name) {
		m[v.Outcome.Code]++
	}
	return m
}

// aligned checks that block k of every part is about the visits in block k.
func aligned(t *testing.T, s segment.Store, name string, parts ...string) {
	t.Helper()
	var visits [][]string
	for b, err := range segment.Blocks[segment.Visit](t.Context(), s, name, 0) {
		if err != nil {
			t.Fatal(err)
		}
		var urls []string
		for _, v := range b {
			urls = append(urls, v.URL)
		}
		visits = append(visits, urls)
	}
	check(t, s, name, visits, func(c *page.Content) string { return c.URL })
	if len(parts) == 0 {
		check(t, s, name, visits, func(c *segment.Text) string { return c.URL })
		check(t, s, name, visits, func(c *segment.Data) string { return c.URL })
		check(t, s, name, visits, parseURL)
	}
}

func check[T segment.Record](t *testing.T, s segment.Store, name string, visits [][]string, url func(*T) string) {
	t.Helper()
	k := 0
	for b, err := range segment.Blocks[T](t.Context(), s, name, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if k >= len(visits) {
			t.Fatalf("%s has more blocks than there are of visits", segment.PartOf[T]())
		}
		rest := visits[k]
		for i := range b {
			at := slices.Index(rest, url(&b[i]))
			if at < 0 {
				t.Fatalf("%s: %s is not in block %d of the visits, or out of order", segment.PartOf[T](), url(&b[i]), k)
			}
			rest = rest[at+1:]
		}
		k++
	}
	if k != len(visits) {
		t.Errorf("%s has %d blocks, the visits %d", segment.PartOf[T](), k, len(visits))
	}
}

// pageURLs returns n URLs of a host.
func pageURLs(host string, n int) []string {
	var urls []string
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://%s/%d", host, i))
	}
	return urls
}

type parserFunc func(ctx context.Context, c *page.Content) (page.Parsed, error)

func (f parserFunc) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	return f(ctx, c)
}

var _ parse.Parser = parserFunc(nil)

func hostOf(t *testing.T, r *rig, name string) hostdb.Host {
	t.Helper()
	h, err := r.db.Hosts().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func slowParser(p parse.Parser, wait time.Duration) parse.Parser {
	return parserFunc(func(ctx context.Context, c *page.Content) (page.Parsed, error) {
		select {
		case <-time.After(wait):
			return p.Parse(ctx, c)
		case <-ctx.Done():
			return page.Parsed{}, ctx.Err()
		}
	})
}

const host = "a.example.test"

type protocolFunc func(context.Context, protocol.Request) (protocol.Response, error)

func (f protocolFunc) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	return f(ctx, r)
}

type answers func(url string) protocol.Response

func (f answers) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	return f(r.URL), nil
}

// lease writes a fetch list of pages that are in the crawl db.
func (r *rig) lease(name string, due time.Time, urls ...string) {
	r.t.Helper()
	r.list(name, urls...)
	urls = slices.SortedFunc(slices.Values(urls), crawldb.Compare)
	batch := crawldb.Batch{URLs: urls}
	batch.Next = func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{URL: urls[i], Status: crawldb.Unfetched, FetchTime: due, LeasedBy: name, LeasedUntil: due.Add(7 * 24 * time.Hour)}, nil
	}
	if err := r.db.Crawl().Update(r.t.Context(), batch); err != nil {
		r.t.Fatal(err)
	}
}
