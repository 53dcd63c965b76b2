package recrawl_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

// signatures is an index that keeps the signature of each page, as a consumer of the feed makes it.
type signatures struct {
	pages map[string]string
	seen  map[string]bool // in the snapshot under way
}

func (x *signatures) apply(e *recrawl.PageEvent) {
	if x.pages == nil {
		x.pages = map[string]string{}
	}
	switch e.Kind {
	case recrawl.SnapshotBegin:
		x.seen = map[string]bool{}
	case recrawl.SnapshotEnd:
		for u := range x.pages {
			if !x.seen[u] {
				delete(x.pages, u)
			}
		}
		x.seen = nil
	case recrawl.PageGone, recrawl.PageMoved, recrawl.PageRefused:
		delete(x.pages, e.URL)
	default:
		x.pages[e.URL] = string(e.Signature)
		if x.seen != nil {
			x.seen[e.URL] = true
		}
	}
}

// read applies the events that a consumer has not acknowledged, at most some, and acknowledges them in
// batches.
func (x *signatures) read(t *testing.T, c *recrawl.Crawler, name string, most int) (events int) {
	t.Helper()
	k, err := c.Consumer(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	ack := func() {
		if last != "" {
			if err := k.Ack(t.Context(), last); err != nil {
				t.Fatal(err)
			}
		}
	}
	for e, err := range k.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		x.apply(&e)
		last = e.Position
		if events++; events%7 == 0 {
			ack()
		}
		if events == most {
			break
		}
	}
	ack()
	return events
}

func (s *setup) consumer(t *testing.T, c *recrawl.Crawler, name string, o recrawl.ConsumerOptions) *recrawl.Consumer {
	t.Helper()
	k, err := c.AddConsumer(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// unacknowledged returns the events that a consumer has not acknowledged.
func unacknowledged(t *testing.T, k *recrawl.Consumer) (all []recrawl.PageEvent) {
	t.Helper()
	for e, err := range k.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// signatures is the index that a crawl db should have led to.
func (s *setup) signatures(t *testing.T) map[string]string {
	t.Helper()
	want := map[string]string{}
	for u, d := range s.records(t) {
		if d.Signature != nil { // gone pages and redirects have none
			want[u] = string(d.Signature)
		}
	}
	return want
}

func status(t *testing.T, c *recrawl.Crawler, name string) recrawl.ConsumerStatus {
	t.Helper()
	all, err := c.Consumers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no consumer %s of %v", name, all)
	return recrawl.ConsumerStatus{}
}

// changingWeb is a crawl whose pages change every few days, of a few pages a round.
func changingWeb() *setup {
	const day = 24 * time.Hour
	s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 12, Periods: []time.Duration{day, 2 * day, 0}})
	s.opts.Generate.TopN = 6
	s.opts.Schedule = &schedule.Default{DefaultInterval: day}
	return s
}

// seeded returns a crawler that has the seeds.
func (s *setup) seeded(t *testing.T) *recrawl.Crawler {
	t.Helper()
	c := s.crawler(t)
	if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	return c
}

// live runs a crawl for some days.
func (s *setup) live(t *testing.T, c *recrawl.Crawler, days int) (rounds int) {
	t.Helper()
	for range days {
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rounds += r.Rounds
		s.now = s.now.AddDate(0, 0, 1)
	}
	return rounds
}

func TestConsumerThatWasDownMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		s.opts.Retention = recrawl.Retention{Segments: 2, Age: time.Hour}
		c := s.seeded(t)
		defer c.Close()
		s.consumer(t, c, "index", recrawl.ConsumerOptions{})
		var x signatures
		s.live(t, c, 3)
		x.read(t, c, "index", -1)
		rounds := s.live(t, c, 6) // the index is down
		if rounds < 10 || len(segments(t, s)) < rounds {
			t.Fatalf("%d of %d segments are kept", len(segments(t, s)), rounds)
		}
		if st := status(t, c, "index"); st.Segments < rounds || st.Events < 10 || st.Bytes == 0 || st.Oldest.IsZero() || st.Lapses > 0 {
			t.Errorf("%+v", st)
		}
		x.read(t, c, "index", -1)
		if want := s.signatures(t); len(want) < 12 || !maps.Equal(x.pages, want) {
			t.Errorf("%d pages in the index, want %d: %q", len(x.pages), len(want), differing(x.pages, want))
		}
		if st := status(t, c, "index"); st.Segments != 0 || st.Events != 0 || !st.Oldest.IsZero() || st.Acknowledged.IsZero() {
			t.Errorf("%+v", st)
		}
		s.live(t, c, 1)
		x.read(t, c, "index", -1)
		s.live(t, c, 1)
		if n := len(segments(t, s)); n > 8 {
			t.Errorf("%d segments are kept when all is acknowledged", n)
		}
	})
}

// A crawl and its consumer die together at each write, with the cursor wherever it is, and the index has everything
// in the end. No event comes before one of an earlier visit to its page.
func TestConsumerThatDiesAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(s *setup, x *signatures, stores recrawl.Stores) (err error) {
			c, err := recrawl.New(stores, s.opts)
			if err != nil {
				return err
			}
			defer c.Close()
			k, err := c.AddConsumer(t.Context(), "index", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning})
			if err != nil {
				return err
			}
			for i := 0; ; i++ {
				r, err := c.Round(t.Context())
				if err != nil {
					return err
				}
				if i%3 == 2 || r.Rounds == 0 {
					last, n := "", 0
					for e, err := range k.Events(t.Context()) {
						if err != nil {
							return err
						}
						x.apply(&e)
						if last, n = e.Position, n+1; n%5 == 0 {
							if err := k.Ack(t.Context(), last); err != nil {
								return err
							}
						}
					}
					if last != "" {
						if err := k.Ack(t.Context(), last); err != nil {
							return err
						}
					}
				}
				if r.Rounds > 0 {
					continue
				}
				if s.now.Day() > testlevel.Pick(6, 9) {
					return nil
				}
				s.now = s.now.AddDate(0, 0, 1)
			}
		}
		died := true
		for n := 1; died; n += 1 + n/testlevel.Pick(1, 30) {
			for _, applies := range []bool{false, true} {
				s := changingWeb()
				s.opts.Retention.Segments = 2
				c := s.crawler(t)
				if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
					t.Fatal(err)
				}
				c.Close()
				var x signatures
				left := n
				stores := s.stores()
				stores.Crawl, stores.Segments = dyingCrawl{stores.Crawl, &left, applies}, dyingSegments{stores.Segments, &left}
				err := run(s, &x, stores)
				if died = err != nil; died && !errors.Is(err, errDied) {
					t.Fatal(err)
				}
				if died {
					if err := run(s, &x, s.stores()); err != nil {
						t.Fatal(err)
					}
				}
				if want := s.signatures(t); len(want) < 12 || !maps.Equal(x.pages, want) {
					t.Fatalf("died at write %d (applied: %v): %d pages in the index, want %d: %q", n, applies, len(x.pages), len(want), differing(x.pages, want))
				}
				c = s.crawler(t)
				if st := status(t, c, "index"); st.Segments != 0 || st.Lapses != 0 {
					t.Errorf("died at write %d (applied: %v): %+v", n, applies, st)
				}
				if kept := segments(t, s); len(kept) > 5 {
					t.Errorf("died at write %d (applied: %v): %d segments are kept", n, applies, len(kept))
				}
				c.Close()
				if t.Failed() {
					return
				}
			}
		}
	})
}

func TestConsumerStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		c := s.seeded(t)
		defer c.Close()
		s.live(t, c, 2)
		kinds := func(name string) map[recrawl.PageKind]int {
			t.Helper()
			k, err := c.Consumer(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			events := unacknowledged(t, k)
			n := map[recrawl.PageKind]int{}
			for _, e := range events {
				n[e.Kind]++
			}
			if len(events) > 0 {
				if err := k.Ack(t.Context(), events[len(events)-1].Position); err != nil {
					t.Fatal(err)
				}
			}
			return n
		}
		s.consumer(t, c, "now", recrawl.ConsumerOptions{})
		s.consumer(t, c, "all", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning})
		s.consumer(t, c, "every", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning, EveryVisit: true})
		s.consumer(t, c, "pages", recrawl.ConsumerOptions{Start: recrawl.StartWithSnapshot})
		s.consumer(t, c, "now", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning}) // it is registered already
		pages := len(s.signatures(t))
		if n := kinds("now"); len(n) > 0 {
			t.Error("now", n)
		}
		if n := kinds("all"); n[recrawl.PageNew] != pages || n[recrawl.PageUnchanged] > 0 || n[recrawl.PageChanged] == 0 {
			t.Error("all", n)
		}
		if n := kinds("every"); n[recrawl.PageNew] != pages || n[recrawl.PageUnchanged] == 0 {
			t.Error("every", n)
		}
		if n := kinds("pages"); n[recrawl.PageKnown] != pages || n[recrawl.SnapshotBegin] != 1 || n[recrawl.SnapshotEnd] != 1 || n[recrawl.PageNew] > 0 {
			t.Error("pages", n)
		}
		s.live(t, c, 1)
		first := kinds("now")
		for _, name := range []string{"all", "pages"} {
			if n := kinds(name); len(n) == 0 || !maps.Equal(n, first) {
				t.Error(name, n, first)
			}
		}
		// Those that have read all hold nothing, even if the last visits were not worth an event to them.
		for _, name := range []string{"now", "all", "pages", "every"} {
			kinds(name)
			if st := status(t, c, name); st.Segments > 0 {
				t.Errorf("%+v", st)
			}
		}
		for _, name := range []string{"", "a/b", "ä", strings.Repeat("x", 65)} {
			if _, err := c.AddConsumer(t.Context(), name, recrawl.ConsumerOptions{}); err == nil {
				t.Errorf("a consumer is named %q", name)
			}
		}
		for _, position := range []string{"", "1", "1.1", "0.0.0", "99999.0.0", "x:", "1.1.-1", "01.1.1"} {
			k, err := c.Consumer(t.Context(), "now")
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Ack(t.Context(), position); err == nil {
				t.Errorf("%q is acknowledged", position)
			}
		}
	})
}

// Consumers follow a crawl that runs, at their own pace, and it waits for none.
func TestConsumersFollowARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		s.opts.Now = nil
		s.web.Now, s.now = time.Now, time.Now()
		s.web.Start = s.now.AddDate(-1, 0, 0)
		s.opts.Run.Wait = true
		s.opts.Retention.Age = time.Second
		c := s.crawler(t)
		defer c.Close()
		ctx, stop := context.WithCancel(t.Context())
		if _, err := c.Inject(ctx, s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		follow := func(name string, pause time.Duration) (x *signatures, done chan error) {
			x, done = &signatures{}, make(chan error, 1)
			k := s.consumer(t, c, name, recrawl.ConsumerOptions{})
			go func() {
				for e, err := range k.Follow(ctx) {
					if err != nil {
						done <- err
						return
					}
					x.apply(&e)
					time.Sleep(pause)
					if err := k.Ack(t.Context(), e.Position); err != nil {
						done <- err
						return
					}
				}
			}()
			return x, done
		}
		fast, fastDone := follow("fast", 0)
		slow, slowDone := follow("slow", time.Hour)
		s.consumer(t, c, "dead", recrawl.ConsumerOptions{})
		ran := make(chan error, 1)
		var r recrawl.Report
		go func() {
			var err error
			r, err = c.Run(ctx)
			ran <- err
		}()
		time.Sleep(10*24*time.Hour + time.Hour)
		synctest.Wait()
		if want := s.signatures(t); len(want) < 12 || !maps.Equal(fast.pages, want) {
			t.Errorf("%d pages in the index, want %d", len(fast.pages), len(want))
		}
		if st := status(t, c, "slow"); st.Events == 0 {
			t.Errorf("%+v", st)
		}
		k, err := c.Consumer(t.Context(), "fast")
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range k.Events(ctx) {
			if !errors.Is(err, recrawl.ErrConsumerBusy) {
				t.Errorf("a second reader: %v", err)
			}
		}
		// The followers of a dropped consumer end.
		if err := c.DropConsumer(t.Context(), "fast"); err != nil {
			t.Fatal(err)
		}
		if err := <-fastDone; !errors.Is(err, recrawl.ErrNoConsumer) {
			t.Error(err)
		}
		stop()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := <-slowDone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		slow.read(t, c, "slow", -1)
		if want := s.signatures(t); !maps.Equal(slow.pages, want) {
			t.Errorf("%d pages in the index of the slow consumer, want %d", len(slow.pages), len(want))
		}
		if n := len(segments(t, s)); r.Rounds < 10 || n < r.Rounds {
			t.Errorf("%d of %d segments are kept for the dead consumer", n, r.Rounds)
		}
	})
}

// differing names the pages whose signatures differ.
func differing(got, want map[string]string) (urls []string) {
	for u := range want {
		if got[u] != want[u] {
			urls = append(urls, u+" should be there or has another signature")
		}
	}
	for u := range got {
		if _, is := want[u]; !is {
			urls = append(urls, u+" should not be there")
		}
	}
	slices.Sort(urls)
	return urls
}
