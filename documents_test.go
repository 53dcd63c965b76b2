package recrawl_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

// tableIndex is an index.Lister whose changes count once they are committed. It fails when the test sets an error.
type tableIndex struct {
	pages   map[string]index.Document
	pending []index.Change
	fail    func() error
	commits int
}

func (x *tableIndex) Write(_ context.Context, d *index.Document) error {
	x.pending = append(x.pending, index.Change{URL: d.URL, Document: d})
	return x.failure()
}

func (x *tableIndex) Delete(_ context.Context, url string) error {
	x.pending = append(x.pending, index.Change{URL: url})
	return x.failure()
}

func (x *tableIndex) Commit(context.Context) error {
	if err := x.failure(); err != nil {
		return err
	}
	if x.pages == nil {
		x.pages = map[string]index.Document{}
	}
	for _, c := range x.pending {
		if delete(x.pages, c.URL); c.Document != nil {
			x.pages[c.URL] = *c.Document
		}
	}
	x.pending = nil
	x.commits++
	return x.failure() // the changes are there, and the caller does not hear of it
}

func (x *tableIndex) URLs(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, u := range slices.Sorted(maps.Keys(x.pages)) {
			if !yield(u, nil) {
				return
			}
		}
	}
}

func (x *tableIndex) failure() error {
	if x.fail == nil {
		return nil
	}
	return x.fail()
}

// wholeIndex is what the crawl has, as index.Run writes it.
func wholeIndex(t *testing.T, s *setup) map[string]index.Document {
	t.Helper()
	x := &tableIndex{}
	if _, err := index.Run(t.Context(), s.db.Crawl(), s.db.Links(), s.db.Segments(), x, index.Options{}); err != nil {
		t.Fatal(err)
	}
	return x.pages
}

// sameDocuments compares documents in what a visit decides: anchors may have been added since.
func sameDocuments(t *testing.T, when string, got, want map[string]index.Document) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d documents, want %d", when, len(got), len(want))
	}
	for u, w := range want {
		g, ok := got[u]
		if !ok || g.Title != w.Title || g.Text != w.Text || g.Signature != w.Signature || !g.Fetched.Equal(w.Fetched) || g.Segment != w.Segment {
			t.Errorf("%s: %s is %.200v, want %.200v", when, u, g, w)
		}
	}
}

func (s *setup) index(t *testing.T, c *recrawl.Crawler, x index.Writer, o recrawl.IndexOptions) (recrawl.IndexReport, error) {
	t.Helper()
	k := s.consumer(t, c, "index", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning, EveryVisit: true})
	return k.Index(t.Context(), x, o)
}

var errIndexDown = errors.New("down")

// An index that fails at every method again and again is equal to the crawl in the end.
func TestIndexThatFailsIsEqualToTheCrawl(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 12, Periods: []time.Duration{36 * time.Hour, 0}, Calm: true})
	s.opts.Schedule = &schedule.Default{DefaultInterval: 24 * time.Hour}
	s.opts.Generate.TopN = 9
	calls, every := 0, 0
	x := &tableIndex{fail: func() error {
		if calls++; calls == every {
			return errIndexDown
		}
		return nil
	}}
	s.run(t, s.web.Seeds()...)
	c := s.crawler(t)
	defer c.Close()
	failures := 0
	for range 4 {
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for {
			every, calls = every%11+1, 0 // so that each call is the one that fails some time
			_, err := s.index(t, c, x, recrawl.IndexOptions{Batch: 5})
			if err == nil {
				break
			}
			if !errors.Is(err, errIndexDown) {
				t.Fatal(err)
			}
			x.pending = nil // as if the process had been killed
			failures++
		}
		sameDocuments(t, s.now.Format(time.DateOnly), x.pages, wholeIndex(t, s))
		s.now = s.now.Add(24 * time.Hour)
	}
	if failures < 10 {
		t.Errorf("the index failed %d times", failures)
	}
	commits := x.commits
	if r, err := s.index(t, c, x, recrawl.IndexOptions{}); err != nil || r != (recrawl.IndexReport{}) || x.commits != commits {
		t.Errorf("with nothing to do: %+v, %v", r, err)
	}
}

// A page that the crawl forgot, and one that became a duplicate of a page visited later, are deleted.
func TestIndexIsRidOfForgottenPagesAndDuplicates(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 6, Calm: true})
	s.run(t, s.web.Seeds()...)
	c := s.crawler(t)
	defer c.Close()
	x := &tableIndex{}
	if _, err := s.index(t, c, x, recrawl.IndexOptions{}); err != nil || len(x.pages) != 6 {
		t.Fatal(len(x.pages), err)
	}
	x.pages["http://forgotten.example/"] = index.Document{URL: "http://forgotten.example/"}
	if n, err := index.Reconcile(t.Context(), s.db.Crawl(), x); err != nil || n != 1 {
		t.Errorf("%d documents deleted, %v", n, err)
	}
	if err := x.Commit(t.Context()); err != nil || len(x.pages) != 6 {
		t.Errorf("%d documents, %v", len(x.pages), err)
	}
}

// An index whose segments were removed before it read them has what is kept, and no page that is gone.
func TestIndexAfterSnapshotHasNoForgottenPages(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 20, Calm: true})
	s.opts.Generate.TopN = 4
	c := s.crawler(t)
	defer c.Close()
	if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := &tableIndex{pages: map[string]index.Document{"http://forgotten.example/": {}}}
	k := s.consumer(t, c, "index", recrawl.ConsumerOptions{Start: recrawl.StartWithSnapshot, EveryVisit: true})
	if _, err := k.Index(t.Context(), x, recrawl.IndexOptions{}); err != nil {
		t.Fatal(err)
	}
	sameDocuments(t, "after a snapshot", x.pages, wholeIndex(t, s))
	if len(x.pages) != 20 {
		t.Errorf("%d pages", len(x.pages))
	}
}

// An index that follows has each round as soon as it is published.
func TestIndexFollowsTheCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 6, Calm: true})
		c := s.crawler(t)
		defer c.Close()
		x := &tableIndex{}
		k := s.consumer(t, c, "index", recrawl.ConsumerOptions{EveryVisit: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		var last recrawl.IndexReport
		go func() {
			_, err := k.Index(ctx, x, recrawl.IndexOptions{Follow: true, OnCommit: func(r recrawl.IndexReport) { last = r }})
			done <- err
		}()
		if _, err := c.Inject(ctx, s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(x.pages) != 6 || last.Documents != 6 {
			t.Errorf("%d pages, %+v", len(x.pages), last)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// shelf is an index in memory. One on disk would write its documents at Commit.
type shelf map[string]string

func (s shelf) Write(_ context.Context, d *index.Document) error { s[d.URL] = d.Title; return nil }
func (s shelf) Delete(_ context.Context, url string) error       { delete(s, url); return nil }
func (s shelf) Commit(context.Context) error                     { return nil }

// An index that is up to date after each call, whenever the process died before.
func ExampleConsumer_Index() {
	web := &webtest.Web{Hosts: 1, PagesPerHost: 6, Calm: true}
	var db memstore.DB
	defer db.Close()
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	ctx := context.Background()
	crawler, err := recrawl.New(stores, recrawl.Options{Agent: "example", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}})
	if err != nil {
		log.Fatal(err)
	}
	defer crawler.Close()
	consumer, err := crawler.AddConsumer(ctx, "index", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning, EveryVisit: true})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := crawler.Inject(ctx, web.Seeds()...); err != nil {
		log.Fatal(err)
	}
	if _, err := crawler.Run(ctx); err != nil {
		log.Fatal(err)
	}
	titles := shelf{}
	report, err := consumer.Index(ctx, titles, recrawl.IndexOptions{})
	fmt.Println(report.Documents, len(titles), err)
	// Output: 6 6 <nil>
}
