// Search feeds an index with the pages that a crawl brought, and with deletions of those that
// are gone. The index is a consumer of the crawl: it acknowledges changes when they are committed, so
// it misses nothing, whenever the process dies and however long the index is down. The site
// and its clock are simulated.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
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
	titles           map[string]string
	down             error // why it takes nothing now
	written, deleted int
}

func (s *shelf) Write(_ context.Context, d *index.Document) error {
	s.titles[d.URL] = d.Title
	s.written++
	return s.down
}

func (s *shelf) Delete(_ context.Context, url string) error {
	if _, is := s.titles[url]; is {
		delete(s.titles, url)
		s.deleted++
	}
	return s.down
}

func (s *shelf) Commit(context.Context) error { return s.down }

// search is a crawl and the index of its pages.
type search struct {
	crawler  *recrawl.Crawler
	consumer *recrawl.Consumer
	index    *shelf
}

// catchUp applies the changes that are not acknowledged. An error leaves them to the next call: the
// crawl keeps their segments, and what is written twice does no harm.
func (s *search) catchUp(ctx context.Context) error {
	_, err := s.consumer.Index(ctx, s.index, recrawl.IndexOptions{})
	return err
}

// open resumes where the last process ended. A service that crawls for years calls Index in a goroutine of
// its own, with IndexOptions.Follow, so that the crawl does not wait for the index.
func open(ctx context.Context, stores recrawl.Stores, x *shelf, o recrawl.Options) (*search, error) {
	s := &search{index: x}
	var err error
	if s.crawler, err = recrawl.New(stores, o); err != nil {
		return nil, err
	}
	// A page with the same text may have begun to ask not to be indexed: every visit counts.
	s.consumer, err = s.crawler.AddConsumer(ctx, "index", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning, EveryVisit: true})
	if err == nil {
		err = s.catchUp(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.crawler.Close())
	}
	return s, nil
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
		Agent: "search", Protocol: site{web.Protocol(), removed}, Now: clock, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, Retention: recrawl.Retention{Age: 7 * day, Bytes: 10 << 30},
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
			err = s.catchUp(ctx)
		}
		if err == nil {
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
