// Search feeds an index with the pages that each round of a crawl brought, and with
// deletions of those that are gone. The index remembers the last segment it has in the
// same commit as its documents, so it misses nothing, whenever the process dies. The
// site and its clock are simulated.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

const day = 24 * time.Hour

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// shelf is the index: an index.Writer. A durable one would have a database here, and
// Commit would end its transaction.
type shelf struct {
	titles  map[string]string
	segment string // the last one that is in it

	next             string // what segment is to be after Commit
	written, deleted int
}

func (s *shelf) Write(_ context.Context, d *index.Document) error {
	s.titles[d.URL] = d.Title
	s.written++
	return nil
}

func (s *shelf) Delete(_ context.Context, url string) error {
	if _, is := s.titles[url]; is {
		delete(s.titles, url)
		s.deleted++
	}
	return nil
}

func (s *shelf) Commit(context.Context) error {
	s.segment = s.next
	return nil
}

// search is a crawl and the index of its pages.
type search struct {
	crawler *recrawl.Crawler
	stores  recrawl.Stores
	index   *shelf
}

// catchUp indexes the segments that are done and not yet in the index. With
// Options.Retention, a process that was down must come back before they are removed, unless
// the index is a consumer of the crawl: see recrawl.Consumer.
func (s *search) catchUp(ctx context.Context) error {
	done, err := s.crawler.DoneSegments(ctx)
	if err != nil {
		return err
	}
	done = slices.DeleteFunc(done, func(name string) bool { return name <= s.index.segment })
	if len(done) == 0 {
		return nil
	}
	s.index.next = done[len(done)-1]
	_, err = index.Run(ctx, s.stores.Crawl, s.stores.Links, s.stores.Segments, s.index, index.Options{Segments: done})
	return err
}

// open resumes where the last process ended, perhaps between a round and its commit in
// the index.
func open(ctx context.Context, stores recrawl.Stores, x *shelf, o recrawl.Options) (*search, error) {
	s := &search{stores: stores, index: x}
	o.OnRound = func(recrawl.Report) {
		if err := s.catchUp(ctx); err != nil {
			log.Print(err) // the next round tries again
		}
	}
	var err error
	if s.crawler, err = recrawl.New(stores, o); err != nil {
		return nil, err
	}
	return s, s.catchUp(ctx)
}

func run(ctx context.Context, out io.Writer) error {
	today := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return today }
	web := &webtest.Web{Hosts: 1, PagesPerHost: 6, Calm: true, Start: today, Now: clock, Periods: []time.Duration{2 * day, 5 * day, 0}}
	removed := map[string]bool{}
	var db memstore.DB
	defer db.Close()
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	x := &shelf{titles: map[string]string{}}
	s, err := open(ctx, stores, x, recrawl.Options{
		Agent: "search", Protocol: site{web.Protocol(), removed}, Now: clock, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, Retention: recrawl.Retention{Segments: 10},
		Schedule: &schedule.Default{DefaultInterval: day},
	})
	if err != nil {
		return err
	}
	defer s.crawler.Close()
	_, err = s.crawler.Inject(ctx, web.Seeds()...)
	for i := 0; i < 3 && err == nil; i++ {
		x.written, x.deleted = 0, 0
		if _, err = s.crawler.Run(ctx); err == nil {
			fmt.Fprintf(out, "%s  %d written, %d deleted, %d pages in the index\n", today.Format(time.DateOnly), x.written, x.deleted, len(x.titles))
		}
		removed["http://"+web.Host(0)+"/pages/3.html"] = true
		today = today.Add(day)
	}
	return err
}

// site is a web with some pages removed.
type site struct {
	protocol.Protocol
	removed map[string]bool
}

func (s site) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if s.removed[r.URL] {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
	}
	return s.Protocol.Fetch(ctx, r)
}
