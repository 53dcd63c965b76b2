package recrawl_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/stores/memstore"
)

// texts is a web of pages in plain text.
type texts map[string]string

func (w texts) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	text, ok := w[r.URL]
	if !ok {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
	}
	return protocol.Response{
		Outcome: protocol.Outcome{Code: protocol.Success, Status: 200},
		Content: page.Content{URL: r.URL, Type: "text/plain", Body: []byte(text)},
	}, nil
}

// A round marks duplicates if it is asked to, and a page whose original has
// changed gets back in the round that sees it.
func TestRoundsMarkDuplicates(t *testing.T) {
	var db memstore.DB
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	web := texts{"http://a.example.test/": "one text", "http://a.example.test/copy": "one text", "http://a.example.test/other": "another"}
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{
		Agent: "test", Protocol: web, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, Now: func() time.Time { return now },
		Dedup: &dedup.Options{Order: []dedup.Criterion{dedup.URLLength}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Inject(t.Context(), "http://a.example.test/", "http://a.example.test/copy", "http://a.example.test/other"); err != nil {
		t.Fatal(err)
	}
	check := func(want map[string]crawldb.Status) {
		t.Helper()
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := map[string]crawldb.Status{}
		for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			got[d.URL] = d.Status
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	check(map[string]crawldb.Status{"http://a.example.test/": crawldb.Fetched, "http://a.example.test/copy": crawldb.Duplicate, "http://a.example.test/other": crawldb.Fetched})
	now = now.AddDate(0, 6, 0)
	check(map[string]crawldb.Status{"http://a.example.test/": crawldb.NotModified, "http://a.example.test/copy": crawldb.Duplicate, "http://a.example.test/other": crawldb.NotModified})
	web["http://a.example.test/"] = "news"
	now = now.AddDate(0, 6, 0)
	check(map[string]crawldb.Status{"http://a.example.test/": crawldb.Fetched, "http://a.example.test/copy": crawldb.NotModified, "http://a.example.test/other": crawldb.NotModified})
	if r, err := c.Dedup(t.Context()); err != nil || r.Candidates != 3 || r.Duplicates+r.Restored != 0 {
		t.Errorf("by hand: %+v, %v", r, err)
	}
}

// Nutch's dedup is an update of its own: with db.update.purge.404 it drops what has
// gone in the same round, which the update itself does a round later.
func TestNutchDedupPurges(t *testing.T) {
	for _, compat := range []bool{false, true} {
		var db memstore.DB
		events := 0
		o := recrawl.Options{
			Agent: "test", Protocol: texts{"http://a.example.test/": "one text"}, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
			Dedup: &dedup.Options{NutchCompat: compat}, OnPage: func(context.Context, recrawl.PageEvent) error { events++; return nil }, Run: recrawl.RunOptions{Rounds: 1},
		}
		o.Update.Sweep.PurgeGone = true
		c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Inject(t.Context(), "http://a.example.test/", "http://a.example.test/gone"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = db.Crawl().Get(t.Context(), "http://a.example.test/gone")
		if purged := errors.Is(err, crawldb.ErrNotFound); purged != compat || events != 2 {
			t.Errorf("NutchCompat %v: %v, %d events", compat, err, events)
		}
	}
}
