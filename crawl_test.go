package recrawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// setup is a crawler over a synthetic web, in memory and without a network.
type setup struct {
	web  *webtest.Web
	db   *memstore.DB
	now  time.Time // the recorded time
	opts recrawl.Options
}

func newSetup(w *webtest.Web) *setup {
	s := &setup{web: w, db: &memstore.DB{}, now: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)}
	w.Start = s.now.AddDate(-1, 0, 0)
	w.Now = func() time.Time { return s.now }
	s.opts = recrawl.Options{
		Agent: "recrawl-test", Protocol: w.Protocol(),
		Fetch: fetch.Options{Delay: -1},
		Now:   func() time.Time { return s.now },
	}
	return s
}

func (s *setup) stores() recrawl.Stores {
	return recrawl.Stores{Crawl: s.db.Crawl(), Hosts: s.db.Hosts(), Links: s.db.Links(), Segments: s.db.Segments()}
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

func TestCrawlFindsEveryPageThatIsLinked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 60})
		s.run(t, s.web.Seeds()...)
		records := s.records(t)

		// What a perfect crawler finds from the seeds.
		want := map[string]bool{}
		queue := slices.Clone(s.web.Seeds())
		for len(queue) > 0 {
			u := queue[0]
			queue = queue[1:]
			if want[u] {
				continue
			}
			want[u] = true
			truth, ok := s.web.Page(u)
			if !ok || truth.Disallowed {
				continue
			}
			if truth.Location != "" {
				queue = append(queue, truth.Location)
			}
			if !truth.NoFollow {
				queue = append(queue, truth.Outlinks...)
			}
		}
		for u := range want {
			d, ok := records[u]
			if !ok {
				t.Errorf("%s is not in the crawl db", u)
				continue
			}
			truth, _ := s.web.Page(u)
			var status crawldb.Status
			switch {
			case truth.Disallowed:
				status = crawldb.Gone
				if s.web.Count(u) > 0 {
					t.Errorf("%s is disallowed and was requested", u)
				}
			case truth.Exists:
				status = crawldb.Fetched
			case truth.Status == 301 || truth.Status == 308:
				status = crawldb.RedirPerm
			case truth.Location != "":
				status = crawldb.RedirTemp
			case truth.Status == 404 || truth.Status == 410:
				status = crawldb.Gone
			default: // it fails for now
				status = crawldb.Unfetched
			}
			if d.Status != status {
				t.Errorf("%s (HTTP %d): status %v, want %v", u, truth.Status, d.Status, status)
			}
			if d.LeasedBy != "" || !d.LeasedUntil.IsZero() {
				t.Errorf("%s is still leased by %s", u, d.LeasedBy)
			}
			if !d.FetchTime.After(s.now) {
				t.Errorf("%s is due at %v, not after now", u, d.FetchTime)
			}
		}
		if len(records) != len(want) {
			t.Errorf("the crawl db has %d records, want %d", len(records), len(want))
		}
	})
}

func TestRecrawlAdaptsIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true})
		s.run(t, s.web.Seeds()...)
		first := s.records(t)
		s.now = s.now.AddDate(0, 0, 31)
		var changed, unchanged int
		s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
			truth, _ := s.web.Page(e.URL)
			want := recrawl.PageUnchanged
			if truth.Changed.After(first[e.URL].LastFetch) {
				want = recrawl.PageChanged
			}
			if e.Kind != want {
				t.Errorf("%s: event %v, want %v", e.URL, e.Kind, want)
			}
			return nil
		}
		s.run(t)
		for u, d := range s.records(t) {
			truth, _ := s.web.Page(u)
			if truth.Changed.After(first[u].LastFetch) {
				changed++
				if d.Status != crawldb.Fetched || d.Interval >= first[u].Interval || !d.Modified.After(first[u].LastFetch) {
					t.Errorf("%s changed: %v, interval %v after %v, modified %v", u, d.Status, d.Interval, first[u].Interval, d.Modified)
				}
			} else {
				unchanged++
				if d.Status != crawldb.NotModified || d.Interval <= first[u].Interval {
					t.Errorf("%s did not change: %v, interval %v after %v", u, d.Status, d.Interval, first[u].Interval)
				}
			}
		}
		if changed < 10 || unchanged < 5 {
			t.Fatalf("%d pages changed and %d did not: the web does not test anything", changed, unchanged)
		}
	})
}

func TestRunEndsWithAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 40, Calm: true})
		s.run(t, s.web.Seeds()...)
		pages := len(s.records(t))
		s.opts.Generate = generate.Options{Ahead: 31 * 24 * time.Hour, TopN: 7}
		r := s.run(t)
		if r.Visited() != pages {
			t.Errorf("%d visits of %d pages", r.Visited(), pages)
		}
		// And once more at the same time of the clock: nothing but the mark of the
		// run tells what it has fetched.
		s.opts.Generate.Ahead = 60 * 24 * time.Hour
		if r := s.run(t); r.Visited() != pages {
			t.Errorf("second run: %d visits of %d pages", r.Visited(), pages)
		}
	})
}

func TestInterruptedCrawlConverges(t *testing.T) {
	undisturbed := func(t *testing.T) string {
		s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 40, Latency: 10 * time.Millisecond})
		s.run(t, s.web.Seeds()...)
		return s.dump(t)
	}
	synctest.Test(t, func(t *testing.T) {
		want := undisturbed(t)
		for _, threads := range []int{1, 2, 8, 64} {
			s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 40, Latency: 10 * time.Millisecond})
			s.opts.Fetch.Threads = threads
			c := s.crawler(t)
			if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
			for i := 0; ; i++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(35+17*i)*time.Millisecond)
				_, err := c.Run(ctx)
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if i > 1000 {
					t.Fatal("the crawl does not end")
				}
			}
			c.Close()
			if got := s.dump(t); got != want {
				t.Errorf("%d threads: the interrupted crawl differs:\n%s", threads, firstDifference(got, want))
			}
		}
	})
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

func TestGenerateThatDiedIsUndone(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
	c := s.crawler(t)
	defer c.Close()
	if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	before := s.dump(t)
	// It dies when it is about to write the fetch list.
	died := errors.New("died")
	_, err := generate.Run(t.Context(), s.db.Crawl(), failingSegments{s.db.Segments(), died}, generate.Options{Now: s.opts.Now})
	if !errors.Is(err, died) {
		t.Fatalf("generate: %v", err)
	}
	if s.dump(t) == before {
		t.Fatal("nothing was leased: the test does not test anything")
	}
	c2 := s.crawler(t)
	defer c2.Close()
	if got := s.dump(t); got != before {
		t.Errorf("after recovery: %s", firstDifference(got, before))
	}
	for name, err := range s.db.Segments().List(t.Context()) {
		t.Errorf("segment %s is left over (%v)", name, err)
	}
}

// failingSegments dies with the fetch list: it takes none, and nothing can be
// cleaned up either.
type failingSegments struct {
	segment.Store
	err error
}

func (f failingSegments) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	if part == segment.GeneratePart || keep < 0 {
		return nil, f.err
	}
	return f.Store.Append(ctx, name, part, keep)
}

func TestPolitenessHoldsAcrossHostsAndRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 12, Calm: true, Latency: 300 * time.Millisecond})
		s.opts.Fetch.Delay = 2 * time.Second
		c := s.crawler(t)
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond)
			_, err := c.Run(ctx)
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			c.Close()
			c = s.crawler(t)
		}
		c.Close()
		for h := range s.web.Hosts {
			log := s.web.HostLog(s.web.Host(h))
			if log.MinGap < 2*time.Second || log.MaxInFlight != 1 {
				t.Errorf("%s: gap %v, %d at once", s.web.Host(h), log.MinGap, log.MaxInFlight)
			}
		}
	})
}

func TestFailingHostDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true})
		bad := s.web.Host(0)
		inner := s.opts.Protocol
		asked := 0
		s.opts.Protocol = protocolFunc(func(ctx context.Context, r protocol.Request) (protocol.Response, error) {
			if crawldb.Host(r.URL) == bad && !strings.HasSuffix(r.URL, "/robots.txt") {
				asked++
				return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: "down"}}, nil
			}
			return inner.Fetch(ctx, r)
		})
		var seeds []string
		for u := range s.web.URLs() {
			seeds = append(seeds, u)
		}
		began := time.Now()
		r := s.run(t, seeds...)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
		if asked != 5 {
			t.Errorf("the host was asked %d times, want 5", asked)
		}
		if r.Visits[protocol.Skipped] == 0 {
			t.Error("nothing was skipped")
		}
		for u, d := range s.records(t) {
			if crawldb.Host(u) != bad {
				if d.Status != crawldb.Fetched {
					t.Errorf("%s: %v", u, d.Status)
				}
			} else if d.Status != crawldb.Unfetched || d.Retries > 1 || !d.FetchTime.After(s.now) {
				t.Errorf("%s: %v, %d retries, due %v", u, d.Status, d.Retries, d.FetchTime)
			}
		}
	})
}

type protocolFunc func(context.Context, protocol.Request) (protocol.Response, error)

func (f protocolFunc) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	return f(ctx, r)
}

func TestPluginThatPanicsFailsThatPageOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 10, Calm: true})
		inner := s.opts.Protocol
		seed := s.web.Seeds()[0]
		s.opts.Protocol = protocolFunc(func(ctx context.Context, r protocol.Request) (protocol.Response, error) {
			if strings.HasSuffix(r.URL, ".html") {
				panic("boom")
			}
			return inner.Fetch(ctx, r)
		})
		s.run(t, seed)
		if d := s.records(t)[seed]; d.Status != crawldb.Fetched {
			t.Errorf("%s: %v", seed, d.Status)
		}
	})
}

func TestSegmentsOnlyForTheDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The clock stands still, and each crawler has segments of its own that
		// are gone with it: marks of theirs are not taken for those of new ones.
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 20, Calm: true})
		for i, u := range s.web.Seeds() {
			stores := s.stores()
			stores.Segments = nil
			for range 8 {
				s.opts.Rounds = 1
				c, err := recrawl.New(stores, s.opts)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Inject(t.Context(), u); err != nil {
					t.Fatal(i, err)
				}
				if _, err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for u, d := range s.records(t) {
			if d.Status != crawldb.Fetched {
				t.Errorf("%s: %v", u, d.Status)
			}
		}
		// One that is cut short has lost its segment, and gives back its pages.
		s.now = s.now.AddDate(0, 2, 0)
		stores := s.stores()
		stores.Segments = nil
		c, err := recrawl.New(stores, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Generate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if c, err = recrawl.New(stores, s.opts); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for u, d := range s.records(t) {
			if d.LeasedBy != "" {
				t.Errorf("%s is leased by %s, which is gone", u, d.LeasedBy)
			}
		}
	})
}

func TestAgentIsAProductToken(t *testing.T) {
	for _, agent := range []string{"my bot", "bot/1.0", "bot\r\nX: y", "bót", "bot."} {
		if c, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.DB).Crawl()}, recrawl.Options{Agent: agent}); err == nil {
			c.Close()
			t.Errorf("agent %q is accepted; no robots.txt can name it", agent)
		}
	}
	c, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.DB).Crawl()}, recrawl.Options{Agent: "My-bot_2"})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// With ReadOnly, New leaves what a generate that died has left.
func TestReadOnlyLeavesWhatDied(t *testing.T) {
	db := &memstore.DB{}
	w, err := db.Segments().Append(t.Context(), "20260105090000-000", "leases", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(t.Context(), nil), w.Close()); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Segments: db.Segments()}, recrawl.Options{Agent: "test", ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, err := range db.Segments().List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			left++
		}
		if want := map[bool]int{true: 1, false: 0}[readOnly]; left != want {
			t.Errorf("ReadOnly %v: %d segments are left", readOnly, left)
		}
	}
}
