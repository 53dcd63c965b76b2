package recrawl_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// setup is a crawler over a synthetic web, in memory and without a network.
type setup struct {
	web  *webtest.Web
	db   *memstore.DB
	now  time.Time // the recorded time
	opts recrawl.Options

	dueIndex bool // the crawl db is a crawldb.DueStore
}

// dueStore is a store with an index, as far as its callers can tell.
type dueStore struct{ crawldb.Store }

func (s dueStore) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return crawldb.DueByScan(ctx, s.Store, q, nil)
}

func newSetup(w *webtest.Web) *setup {
	s := &setup{web: w, db: &memstore.DB{}, now: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)}
	w.Start = s.now.AddDate(-1, 0, 0)
	w.Now = func() time.Time { return s.now }
	s.opts = recrawl.Options{
		Agent: "recrawl-test", Protocol: w.Protocol(),
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Now:   func() time.Time { return s.now },
	}
	return s
}

func (s *setup) stores() recrawl.Stores {
	var crawl crawldb.Store = s.db.Crawl()
	if s.dueIndex {
		crawl = dueStore{crawl}
	}
	return recrawl.Stores{Crawl: crawl, Hosts: s.db.Hosts(), Links: s.db.Links(), Segments: s.db.Segments()}
}

func (s *setup) crawler(t *testing.T) *recrawl.Crawler {
	t.Helper()
	c, err := recrawl.New(s.stores(), s.opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run crawls until nothing is due.
func (s *setup) run(t *testing.T, seeds ...string) recrawl.Report {
	t.Helper()
	c := s.crawler(t)
	defer c.Close()
	if len(seeds) > 0 {
		if _, err := c.Inject(t.Context(), seeds...); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *setup) records(t *testing.T) map[string]crawldb.Datum {
	t.Helper()
	all := map[string]crawldb.Datum{}
	for d, err := range s.db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[d.URL] = d
	}
	return all
}

// dump is the crawl db and the link db as text.
func (s *setup) dump(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for d, err := range s.db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := d.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %x\n", d.URL, d.Status, raw)
	}
	for e, err := range s.db.Links().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %q\n", e.URL, e.Inlinks)
	}
	return b.String()
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + w[i]
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

type protocolFunc func(context.Context, protocol.Request) (protocol.Response, error)

func (f protocolFunc) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	return f(ctx, r)
}

// scripted answers with what the script has for a path in the round under way:
// "=text" a page, "304", "404", "503", "denied", ">path" a redirect.
func scripted(script map[string][]string, round *int) protocol.Protocol {
	return protocolFunc(func(_ context.Context, r protocol.Request) (protocol.Response, error) {
		var resp protocol.Response
		path := strings.TrimPrefix(r.URL, "http://a.example.test/")
		if path == "robots.txt" {
			resp.Outcome.Code = protocol.Success
			resp.Content = page.Content{Type: "text/plain", Body: []byte("User-agent: *\nDisallow: /forbidden")}
			return resp, nil
		}
		answer := script[path][*round]
		switch {
		case strings.HasPrefix(answer, "="):
			resp.Outcome.Code = protocol.Success
			resp.Content = page.Content{Type: "text/html", Body: []byte("<title>T</title><p>" + answer[1:])}
		case strings.HasPrefix(answer, ">"):
			resp.Outcome.Code, resp.Outcome.Location = protocol.MovedPerm, "http://a.example.test/"+answer[1:]
		default:
			resp.Outcome.Code = map[string]protocol.Code{"304": protocol.NotModified, "404": protocol.NotFound, "503": protocol.Failed}[answer]
		}
		return resp, nil
	})
}

// force makes a record due.
func force(t *testing.T, s crawldb.Store, url string, now time.Time) {
	t.Helper()
	err := s.Update(t.Context(), crawldb.Batch{URLs: []string{url}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := *old
		d.FetchTime = now
		return &d, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func segments(t *testing.T, s *setup) []string {
	t.Helper()
	var names []string
	for name, err := range s.db.Segments().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
