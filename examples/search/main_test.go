package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestSearch(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if want := `2026-01-01  6 written, 0 deleted, 6 pages in the index
2026-01-02  1 written, 1 deleted, 5 pages in the index
2026-01-03  1 written, 0 deleted, 5 pages in the index
`; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// If a process dies after a round, and before it has noted its place in the index, nothing
// is left out.
func TestCatchUp(t *testing.T) {
	web := &webtest.Web{Hosts: 1, PagesPerHost: 6, Calm: true}
	var db memstore.DB
	defer db.Close()
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	o := recrawl.Options{Agent: "search", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, Run: recrawl.RunOptions{Rounds: 1}}
	died, err := recrawl.New(stores, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := died.Inject(t.Context(), web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	if _, err := died.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := died.Close(); err != nil {
		t.Fatal(err)
	}
	x := &shelf{titles: map[string]string{}}
	s, err := open(t.Context(), stores, x, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.crawler.Close()
	if x.written != 1 {
		t.Errorf("%d documents of a round that was not indexed; want 1", x.written)
	}
	if err := s.catchUp(t.Context()); err != nil || x.written != 1 {
		t.Errorf("%d documents after a second look, %v", x.written, err)
	}
	if _, err := s.crawler.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(x.titles) != 6 || x.written != 6 {
		t.Errorf("%d documents of 6 pages were written, %d are there", x.written, len(x.titles))
	}
}

// An index that is down while the crawl makes more rounds than are kept otherwise has every page afterwards.
func TestIndexThatWasDown(t *testing.T) {
	web := &webtest.Web{Hosts: 1, PagesPerHost: 20, Calm: true}
	var db memstore.DB
	defer db.Close()
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	x := &shelf{titles: map[string]string{}}
	o := recrawl.Options{Agent: "search", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, Retention: recrawl.Retention{Segments: 1}}
	o.Generate.TopN = 2
	s, err := open(t.Context(), stores, x, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.crawler.Close()
	if _, err := s.crawler.Inject(t.Context(), web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	x.down = errors.New("down")
	for {
		r, err := s.crawler.Round(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Rounds == 0 {
			break
		}
		if err := s.catchUp(t.Context()); !errors.Is(err, x.down) {
			t.Fatal(err)
		}
	}
	x.down, x.titles = nil, map[string]string{} // nothing was committed
	if err := s.catchUp(t.Context()); err != nil || len(x.titles) != 20 {
		t.Errorf("%d pages in the index, %v", len(x.titles), err)
	}
}
