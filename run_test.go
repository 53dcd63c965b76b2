package recrawl_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/robots"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

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

func TestKeepSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 30, LinksPerPage: 4, Calm: true})
		s.opts.KeepSegments = 2
		s.opts.Generate.TopN = 5
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		r, err := c.Run(t.Context())
		if err != nil || r.Rounds < 4 || len(r.Segments) != r.Rounds {
			t.Fatalf("%+v, %v", r, err)
		}
		kept := segments(t, s)
		if len(kept) != 2 || kept[1] != r.Segments[r.Rounds-1] {
			t.Errorf("kept %v of %v", kept, r.Segments)
		}
		for i, name := range r.Segments {
			for _, job := range []string{update.Job(name), "round/" + name} {
				mark, err := s.db.Crawl().Progress(t.Context(), job)
				if gone := i < r.Rounds-2; err != nil || gone != (mark == "") {
					t.Errorf("segment %d of %d: mark %s is %q, %v", i, r.Rounds, job, mark, err)
				}
			}
			if i > 0 && name <= r.Segments[i-1] {
				t.Errorf("%s after %s", name, r.Segments[i-1])
			}
		}
	})
}

func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 30, LinksPerPage: 4, Calm: true})
		s.opts.Generate.TopN = 5
		s.opts.Rounds = 2
		if r := s.run(t, s.web.Seeds()...); r.Rounds != 2 {
			t.Errorf("%+v", r)
		}
		s.opts.Rounds = 0
		if r := s.run(t); r.Rounds < 3 || r.NextDue.IsZero() || !r.NextDue.After(s.now) {
			t.Errorf("%+v", r)
		}
		if r := s.run(t); r.Rounds != 0 || r.Visited() != 0 {
			t.Errorf("nothing is due: %+v", r)
		}
	})
}

// A run of three rounds that is cut short in the middle of any of them, or between
// two, has three rounds with the run that takes it up.
func TestRoundsOfAnInterruptedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pages := range 16 { // five a round
			s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 30, LinksPerPage: 4, Calm: true})
			s.opts.Generate.TopN = 5
			s.opts.Rounds = 3
			c := s.crawler(t)
			if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
			c.Close()
			ctx, cancel := context.WithCancel(t.Context())
			told := 0
			s.opts.OnPage = func(context.Context, recrawl.PageEvent) error {
				if told++; told > pages {
					cancel()
					return ctx.Err()
				}
				return nil
			}
			c = s.crawler(t)
			_, err := c.Run(ctx)
			c.Close()
			cancel()
			s.opts.OnPage = nil
			if err != nil {
				s.run(t)
			}
			if n := len(segments(t, s)); n != 3 {
				t.Errorf("interrupted at page %d (%v): %d rounds", pages, err, n)
			}
			// And that is the end of it.
			if r := s.run(t); r.Rounds != 3 {
				t.Errorf("interrupted at page %d: the next run has %d rounds", pages, r.Rounds)
			}
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 3, Calm: true})
		s.opts.Wait, s.opts.Now, s.web.Now = true, nil, nil
		s.opts.Schedule = schedule.Default{DefaultInterval: 10 * time.Hour}
		c := s.crawler(t)
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := c.Run(ctx)
			ended <- err
		}()
		time.Sleep(30 * time.Hour)
		synctest.Wait() // it may be looking at this very moment
		if n := s.web.Requests(); n != 0 || c.Status().Stage != "wait" {
			t.Errorf("%d requests, %+v", n, c.Status())
		}
		// It wakes when something is injected,
		if _, err := c.Inject(t.Context(), s.web.Seeds()[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := s.web.Count(s.web.Seeds()[0]); n != 1 {
			t.Errorf("%d requests for what was injected", n)
		}
		// and when something is due.
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		if n := s.web.Count(s.web.Seeds()[0]); n != 2 {
			t.Errorf("%d requests after ten hours", n)
		}
		st := c.Status()
		if st.Stage != "wait" || st.Rounds < 2 || st.Visited() == 0 || st.NextDue.IsZero() || st.Bytes == 0 {
			t.Errorf("%+v", st)
		}
		// Who asks for a round beside it waits no longer than his context.
		short, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		for name, f := range map[string]func(context.Context) error{
			"Round":    func(ctx context.Context) error { _, err := c.Round(ctx); return err },
			"Run":      func(ctx context.Context) error { _, err := c.Run(ctx); return err },
			"Sitemaps": func(ctx context.Context) error { _, err := c.ReadSitemaps(ctx, recrawl.SitemapOptions{}); return err },
		} {
			if err := f(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s beside a Run: %v", name, err)
			}
		}
		if st := c.Status(); st.Stage != "wait" {
			t.Errorf("%+v", st)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if st := c.Status(); st.Stage != "" {
			t.Errorf("%+v", st)
		}
	})
}

// A round that is over is no stage, and a crawler may be closed by whoever comes first.
func TestRoundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true})
		c := s.crawler(t)
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := c.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := c.Status(); st.Stage != "" || st.Segment != "" {
				t.Errorf("%+v", st)
			}
		}
		closed := make(chan error)
		for range 2 {
			go func() { closed <- c.Close() }()
		}
		if err := errors.Join(<-closed, <-closed); err != nil {
			t.Error(err)
		}
	})
}

// The last visit is found in whichever of many segments it was made.
func TestLastVisitOfManySegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 8, Calm: true})
		s.run(t, s.web.Seeds()...)
		s.now = s.now.AddDate(0, 0, 40) // all are due
		s.opts.Generate.TopN, s.opts.Generate.Segments = 2, 9
		if r := s.run(t); len(r.Segments) != 4 {
			t.Fatalf("%d segments", len(r.Segments))
		}
		c := s.crawler(t)
		defer c.Close()
		for url := range s.records(t) {
			if e, err := c.Explain(t.Context(), url); err != nil || e.Visit == nil || !e.Visit.Time.Equal(e.Record.LastFetch) {
				t.Errorf("%s: %+v, %v", url, e.Visit, err)
			}
		}
	})
}

func TestOnlyACrawlDBIsRequired(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	synctest.Test(t, func(t *testing.T) {
		if _, err := recrawl.New(recrawl.Stores{}, recrawl.Options{Agent: "x"}); err == nil {
			t.Error("no crawl db, no error")
		}
		if _, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.Crawl)}, recrawl.Options{}); err == nil {
			t.Error("no agent, no error")
		}
		for _, o := range []fetch.Options{{Delay: 5}, {MinDelay: 1000}} {
			if _, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.Crawl)}, recrawl.Options{Agent: "x", Fetch: o}); err == nil || !strings.Contains(err.Error(), "5*time.Second") {
				t.Errorf("pauses of %v and %v: %v", o.Delay, o.MinDelay, err)
			}
		}
		whole := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 15})
		whole.run(t, whole.web.Seeds()...)
		want, _, _ := strings.Cut(whole.dump(t), "\n\n")

		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 15})
		c, err := recrawl.New(recrawl.Stores{Crawl: s.db.Crawl()}, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.dump(t); !strings.HasPrefix(want, got) || got == "" {
			t.Errorf("differs: %s", firstDifference(got, want))
		}
		if r, err := c.InvertLinks(t.Context(), "any"); err != nil || r.Links != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStagesOneByOneAreARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := func() *setup { return newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 25}) }
		calm := web()
		calm.run(t, calm.web.Seeds()...)
		want := calm.dump(t)
		for name, stages := range map[string]func(*recrawl.Crawler, string) error{
			"each": func(c *recrawl.Crawler, seg string) error {
				_, err1 := c.FetchOnly(t.Context(), seg)
				_, err2 := c.Parse(t.Context(), seg)
				_, err3 := c.Update(t.Context(), seg)
				_, err4 := c.InvertLinks(t.Context(), seg)
				return errors.Join(err1, err2, err3, err4, c.Finish(t.Context(), seg))
			},
			"fetch, then a round": func(c *recrawl.Crawler, seg string) error {
				_, err1 := c.FetchOnly(t.Context(), seg)
				r, err2 := c.Round(t.Context())
				if len(r.Segments) != 1 || r.Segments[0] != seg {
					t.Errorf("the round worked on %v, not %s", r.Segments, seg)
				}
				return errors.Join(err1, err2)
			},
			"a round": func(c *recrawl.Crawler, seg string) error {
				_, err := c.Round(t.Context())
				return err
			},
		} {
			s := web()
			c := s.crawler(t)
			if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
			for {
				g, err := c.Generate(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(g.Segments) == 0 {
					break
				}
				if err := stages(c, g.Segments[0]); err != nil {
					t.Fatal(name, err)
				}
				if done, err := c.Updated(t.Context(), g.Segments[0]); !done || err != nil {
					t.Errorf("%s: %s is not updated: %v", name, g.Segments[0], err)
				}
			}
			c.Close()
			if got := s.dump(t); got != want {
				t.Errorf("%s: %s", name, firstDifference(got, want))
			}
		}
	})
}

// No bubble: who waits for a mutex does not count as waiting there.
func TestRoundsRunOneAfterTheOther(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 30, Calm: true})
	c := s.crawler(t)
	defer c.Close()
	if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	for range 4 {
		go func() {
			_, err := c.Run(t.Context())
			ended <- err
		}()
	}
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for u := range s.records(t) {
		if n := s.web.Count(u); n > 1 {
			t.Errorf("%s was fetched %d times", u, n)
		}
	}
}

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1})
		down := false
		s.opts.Protocol = protocolFunc(func(_ context.Context, r protocol.Request) (protocol.Response, error) {
			var resp protocol.Response
			switch resp.Outcome.Code = protocol.Success; {
			case down:
				resp.Outcome.Code = protocol.Failed
			case strings.HasSuffix(r.URL, "robots.txt"):
				resp.Content.Body = []byte("User-agent: *\nDisallow: /forbidden\nCrawl-delay: 7")
			default:
				resp.Content.Type, resp.Content.Body = "text/html", []byte("x")
			}
			return resp, nil
		})
		s.opts.Rules = urlfilter.Default()
		s.opts.Rules.Filters = append(s.opts.Rules.Filters, urlfilter.FilterFunc(func(u string) bool { return !strings.HasSuffix(u, "/filtered") }))
		s.opts.Generate.MinScore = 0.5
		c := s.crawler(t)
		defer c.Close()
		expect := func(url, verdict string) recrawl.Explanation {
			t.Helper()
			e, err := c.Explain(t.Context(), url)
			if err != nil || !strings.HasPrefix(e.Verdict, verdict) {
				t.Errorf("%s: %q, want %q; %v", url, e.Verdict, verdict, err)
			}
			return e
		}
		const base = "http://a.example.test/"
		if e := expect("not a url", "Never fetched: it is not a URL"); e.Rejected == nil || e.Record != nil {
			t.Errorf("%+v", e)
		}
		expect(base+"filtered", "Never fetched: the rules of the crawl reject it")
		if e := expect("HTTP://A.example.test:80/x#f", "Not fetched: the crawl has not heard of it"); e.Normal != base+"x" {
			t.Errorf("%+v", e)
		}
		if _, err := c.Inject(t.Context(), base+"x", base+"forbidden", base+"poor"); err != nil {
			t.Fatal(err)
		}
		poor, err := s.db.Crawl().Get(t.Context(), base+"poor")
		if err != nil {
			t.Fatal(err)
		}
		poor.Priority = 0.25
		if err := s.db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{poor.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &poor, nil }}); err != nil {
			t.Fatal(err)
		}
		expect(base+"poor", "Due, but its priority of 0.25 is below 0.5")
		if e := expect(base+"x", "Due: the next round fetches it, if its priority"); !e.Due || e.Leased || e.Host != nil || e.RobotsKnown {
			t.Errorf("%+v", e)
		}
		g, err := c.Generate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e := expect(base+"x", "On its way: segment "+g.Segments[0]); !e.Leased {
			t.Errorf("%+v", e)
		}
		if _, err := c.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e := expect(base+"x", "Not yet: it is due at "); e.Due || e.Record.Status != crawldb.Fetched {
			t.Errorf("%+v", e)
		}
		force(t, s.db.Crawl(), base+"x", s.now)
		force(t, s.db.Crawl(), base+"forbidden", s.now)
		if e := expect(base+"x", "Due: the next round fetches it, but its host is left alone until "); e.Host == nil || !e.RobotsKnown || !e.RobotsAllowed || e.CrawlDelay != 7*time.Second {
			t.Errorf("%+v", e)
		}
		if e := expect(base+"forbidden", "Due, but robots.txt forbids it"); e.RobotsAllowed {
			t.Errorf("%+v", e)
		}
		time.Sleep(time.Minute)
		expect(base+"x", "Due: the next round fetches it, if its priority")

		down = true
		const other = "http://b.example.test/"
		if _, err := c.Inject(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		force(t, s.db.Crawl(), other, s.now)
		if e := expect(other, "Due, but robots.txt of its host cannot be fetched"); !e.RobotsUnavailable {
			t.Errorf("%+v", e)
		}
	})
}

// A rule file that changes while a crawl runs counts from the next round on; one
// that got bad leaves the rules as they were, and is logged.
func TestRulesAreReadAgainBetweenRounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regex-urlfilter.txt")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("+.")
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 30, LinksPerPage: 4, Calm: true})
		file, err := urlfilter.OpenFilter(path, urlfilter.ParseRegex)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		var others counted
		var sweeping countedFilter
		s.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s.opts.Rules = &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{urlfilter.Basic{}}, Filters: []urlfilter.Filter{file}}
		s.opts.Reload = []urlfilter.Reloader{&others}
		s.opts.Update.Sweep.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{&sweeping}}
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		round := func() recrawl.Report {
			t.Helper()
			r, err := c.Round(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := round(); r.LinksRejected > 0 || r.Links == 0 || log.Len() > 0 {
			t.Errorf("%+v\n%s", r, &log)
		}
		write("+.\n[")
		if r := round(); r.LinksRejected > 0 || r.Links == 0 || !strings.Contains(log.String(), path+":2: ") {
			t.Errorf("a bad file: %+v\n%s", r, &log)
		}
		write("-.")
		if r := round(); r.Selected > 0 || !strings.Contains(log.String(), "rules were read again") {
			t.Errorf("a file that rejects everything: %+v\n%s", r, &log)
		}
		if others != 3 {
			t.Errorf("what else there is was reloaded %d times in 3 rounds", others)
		}
		if sweeping.counted != 3 {
			t.Errorf("the rules of the sweep were reloaded %d times in 3 rounds", sweeping.counted)
		}
	})
}

type counted int

func (c *counted) Reload() (bool, error) {
	*c++
	return false, nil
}

type countedFilter struct{ counted }

func (*countedFilter) Accept(string) bool { return true }

// What OnRound is told adds up to the report of Run, a round that failed included.
func TestOnRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true})
		s.opts.Generate.TopN = 20
		full := errors.New("the index is full")
		pages := 0
		s.opts.OnPage = func(context.Context, recrawl.PageEvent) error {
			if pages++; pages == 30 {
				return full
			}
			return nil
		}
		var rounds, visits, events int
		var names []string
		s.opts.OnRound = func(r recrawl.Report) {
			if r.Rounds != 1 || len(r.Segments) != 1 || r.Elapsed < 0 {
				t.Errorf("%+v", r)
			}
			rounds, visits, events, names = rounds+r.Rounds, visits+r.Visited(), events+r.Events, append(names, r.Segments...)
		}
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		first, err := c.Run(t.Context())
		if !errors.Is(err, full) {
			t.Fatalf("%+v, %v", first, err)
		}
		second, err := c.Run(t.Context())
		if err != nil || rounds != first.Rounds+second.Rounds || visits != first.Visited()+second.Visited() || visits != 60 || events != first.Events+second.Events || rounds < 4 {
			t.Errorf("%d rounds, %d visits, %d events, of two runs %+v and %+v, %v", rounds, visits, events, first, second, err)
		}
		if want := append(slices.Clone(first.Segments), second.Segments...); !slices.Equal(names, want) {
			t.Errorf("rounds on %v, want %v", names, want)
		}
	})
}

// A page that is asked for by GenerateFree is fetched at once by a Run that waits,
// although it is not due and the budget is spent.
func TestRunTakesUpWhatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true}
		s := newSetup(web)
		s.opts.Wait, s.opts.Schedule = true, schedule.Learned{Budget: 1}
		s.opts.Now, web.Now = nil, time.Now
		c := s.crawler(t)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { _, err := c.Run(ctx); ran <- err }()
		url := web.Seeds()[0]
		if _, err := c.Inject(ctx, url); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		r, err := c.GenerateFree(ctx, func(yield func(string, error) bool) { yield(url, nil) })
		if err != nil || len(r.Segments) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		time.Sleep(time.Second)
		if n := web.Count(url); n != 2 {
			t.Errorf("%d visits, a second after the second was asked for", n)
		}
		if r, err := c.GenerateFree(ctx, func(yield func(string, error) bool) { yield("ftp://example.com/", nil) }); err != nil || len(r.Segments) != 0 {
			t.Errorf("of what the rules reject: %+v, %v", r, err)
		}
		cancel()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		c.Close()
	})
}

// Seeds that cannot be used are no error, and so are told to the Logger.
func TestSeedsThatAreLeftOut(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1})
	var log strings.Builder
	s.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	c := s.crawler(t)
	defer c.Close()
	r, err := c.Inject(t.Context(), "example.com", "doc://guide/a", s.web.Seeds()[0])
	if err != nil || r.New != 1 || r.Invalid != 2 || len(r.Bad) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if !strings.Contains(log.String(), `seeds were left out`) || !strings.Contains(log.String(), "example.com") || !strings.Contains(log.String(), "invalid=2") {
		t.Errorf("the log has %q", &log)
	}
}

// The report of a run that ended for another reason than that nothing is due says
// nothing of when that will be: more is due now.
func TestNextDueIsAfterNothing(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 30, Calm: true})
	s.opts.Schedule = &schedule.Default{DefaultInterval: time.Hour}
	s.opts.Generate.TopN, s.opts.Rounds = 5, 3
	for range 2 {
		if r := s.run(t, s.web.Seeds()...); r.Rounds != 3 || !r.NextDue.IsZero() {
			t.Errorf("after %d rounds more is due at %v; it is %v", r.Rounds, r.NextDue, s.now)
		}
	}
	s.opts.Rounds = 0
	if r := s.run(t); !r.NextDue.Equal(s.now.Add(time.Hour)) {
		t.Errorf("nothing is due before %v; it is %v", r.NextDue, s.now)
	}
}

// A host that its rule closes is left alone, and Explain says why.
func TestExplainOfAClosedHost(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 2, Calm: true})
	closed := true
	s.opts.Fetch.HostRule = func(queue string) fetch.HostRule {
		return fetch.HostRule{Closed: closed && queue == s.web.Host(1)}
	}
	const want = "Left alone: the rule for its host says that it is closed."
	for _, skipped := range []bool{false, true} {
		if skipped {
			s.run(t, s.web.Seeds()...)
			if n := s.web.HostLog(s.web.Host(1)).Requests; n != 0 {
				t.Errorf("%d requests", n)
			}
		} else if c := s.crawler(t); true {
			if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		c := s.crawler(t)
		for i, url := range s.web.Seeds() {
			if e, err := c.Explain(t.Context(), url); err != nil || (e.Verdict == want) != (i == 1) || e.HostRule.Closed != (i == 1) {
				t.Errorf("%s: %q, %v", url, e.Verdict, err)
			}
		}
		c.Close()
	}
}

// What a rule allows on a day is all that a host is asked, and Explain says so.
func TestExplainOfASpentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // from midnight on
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
		s.opts.Fetch.HostRule = func(string) fetch.HostRule { return fetch.HostRule{Requests: 2} }
		s.opts.Rounds = 1
		s.run(t, s.web.Seeds()...) // robots.txt and a page
		c := s.crawler(t)
		defer c.Close()
		url := s.web.Seeds()[0]
		force(t, s.db.Crawl(), url, s.now)
		want := "Due, but the host has been sent its 2 requests of the day: it is asked from 2000-01-02T00:00:00Z on."
		if e, err := c.Explain(t.Context(), url); err != nil || e.Verdict != want {
			t.Errorf("%q, want %q, %v", e.Verdict, want, err)
		}
		time.Sleep(24 * time.Hour)
		if e, err := c.Explain(t.Context(), url); err != nil || !strings.HasPrefix(e.Verdict, "Due: the next round fetches it") {
			t.Errorf("the day after: %q, %v", e.Verdict, err)
		}
	})
}

// A schedule that embeds Learned is another, and whoever counts on its budget is told.
func TestEmbeddedLearned(t *testing.T) {
	for want, o := range map[bool]schedule.FetchSchedule{true: struct{ schedule.Learned }{schedule.Learned{Budget: 5}}, false: schedule.Learned{Budget: 5}} {
		s := newSetup(&webtest.Web{Hosts: 1})
		var log strings.Builder
		s.opts.Logger, s.opts.Schedule = slog.New(slog.NewTextHandler(&log, nil)), o
		s.crawler(t).Close()
		if got := strings.Contains(log.String(), "its Budget is no bound"); got != want {
			t.Errorf("%T: the log has %q", o, &log)
		}
	}
}

// A round selects no more of a host than there is time for, and what it leaves comes in the
// next rounds.
func TestRoundTime(t *testing.T) {
	for _, test := range []struct {
		name   string
		delay  time.Duration // that robots.txt asks for
		change func(*recrawl.Options)
		most   int           // visits to a host, or to all of its domain, in a round
		pause  time.Duration // between two
	}{
		{"Delay", 0, func(*recrawl.Options) {}, 12, 5 * time.Second},
		{"Crawl-delay", 15 * time.Second, func(*recrawl.Options) {}, 4, 15 * time.Second},
		{"two threads", 0, func(o *recrawl.Options) { o.Fetch.ThreadsPerHost, o.Fetch.MinDelay = 2, 3*time.Second }, 20, 3 * time.Second},
		{"by domain", 0, func(o *recrawl.Options) { o.Fetch.By = hostdb.ByDomain }, 12, 5 * time.Second},
		{"less time than a pause", 0, func(o *recrawl.Options) { o.RoundTime = time.Second }, 1, 5 * time.Second},
		{"no bound", 0, func(o *recrawl.Options) { o.RoundTime = -1 }, 0, 0},
		{"MaxPerHost", 0, func(o *recrawl.Options) { o.Generate.MaxPerHost = 30 }, 30, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 50, LinksPerPage: 40, CrawlDelay: test.delay})
				s.opts.Fetch.Delay, s.opts.RoundTime = 0, time.Minute
				s.opts.Fetch.Sitemaps.NoDiscovery = true
				test.change(&s.opts)
				visits, most := map[string]int{}, 0
				s.opts.Fetch.OnVisit = func(v segment.Visit, _ fetch.Progress) { visits[s.opts.Fetch.By.Key(v.URL)]++ }
				s.opts.OnRound = func(r recrawl.Report) {
					for host, n := range visits {
						if most = max(most, n); test.most > 0 && n > test.most {
							t.Errorf("%d visits of %s in a round", n, host)
						}
					}
					// And one of each kind more, for robots.txt and what was asked for before.
					if limit := time.Duration(test.most+3) * test.pause; test.most > 0 && r.Elapsed > limit {
						t.Errorf("a round took %v, and not %v", r.Elapsed, limit)
					}
					clear(visits)
				}
				r := s.run(t, s.web.Seeds()...)
				if pages := len(s.records(t)); pages < 90 || r.Visited() < pages {
					t.Errorf("%d visits to %d pages", r.Visited(), pages)
				}
				if test.most > 0 && most != test.most || test.most == 0 && most < 25 {
					t.Errorf("%d visits in a round at most, and not %d", most, test.most)
				}
			})
		})
	}
}

// A sweep leaves pages in the line of their schedule.
func TestSweepKeepsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 40, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 1000}
		s.run(t, s.web.Seeds()...)
		c := s.crawler(t)
		defer c.Close()
		before := s.dump(t)
		r, err := c.Sweep(t.Context(), update.SweepOptions{Orphans: true})
		if err != nil || r.Records < 40 || r.Changed > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if after := s.dump(t); after != before {
			t.Errorf("a sweep that finds no orphan has changed records:\n%s\nwas\n%s", after, before)
		}
	})
}

// Lists by address are made by the addresses that the protocol connects to, whatever the
// system says of the names.
func TestListsByTheAddressesOfTheProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 5, Calm: true})
		p := &mapped{Protocol: s.web.Protocol(), addrs: map[string]netip.Addr{}}
		for h := range 4 {
			p.addrs[s.web.Host(h)] = netip.AddrFrom4([4]byte{192, 0, 2, byte(h / 2)})
		}
		s.opts.Protocol = p
		s.opts.Generate.Lists, s.opts.Generate.Partition = 10, hostdb.ByIP
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		g, err := c.Generate(t.Context())
		if err != nil || g.Selected != 4 {
			t.Fatalf("%+v, %v", g, err)
		}
		lists := map[netip.Addr]map[int]bool{}
		for d, err := range segment.Records[crawldb.Datum](t.Context(), s.db.Segments(), g.Segments[0]) {
			if err != nil {
				t.Fatal(err)
			}
			turn, err := segment.Unmark(&d)
			if err != nil {
				t.Fatal(err)
			}
			addr := p.addrs[crawldb.Host(d.URL)]
			if lists[addr] == nil {
				lists[addr] = map[int]bool{}
			}
			lists[addr][turn.List] = true
		}
		if len(lists) != 2 || p.asked.Load() != 4 {
			t.Errorf("%d addresses, %d names were looked up", len(lists), p.asked.Load())
		}
		for addr, on := range lists {
			if len(on) != 1 {
				t.Errorf("hosts at %v are on %d lists", addr, len(on))
			}
		}
	})
}

// mapped is a protocol that knows where hosts are.
type mapped struct {
	protocol.Protocol
	addrs map[string]netip.Addr
	asked atomic.Int64
}

func (p *mapped) Lookup(_ context.Context, host string) ([]netip.Addr, error) {
	p.asked.Add(1)
	return []netip.Addr{p.addrs[host]}, nil
}

// What Explain says of robots.txt is what the fetch obeys: the rules of its own cache, or
// none.
func TestExplainAsTheFetchObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 60})
		s.run(t, s.web.Seeds()...)
		forbidden := ""
		for url := range s.web.URLs() {
			if truth, _ := s.web.Page(url); truth.Disallowed {
				forbidden = url
			}
		}
		explain := func() recrawl.Explanation {
			t.Helper()
			c := s.crawler(t)
			defer c.Close()
			e, err := c.Explain(t.Context(), forbidden)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		if e := explain(); forbidden == "" || !e.RobotsKnown || e.RobotsAllowed {
			t.Errorf("by robots.txt: %q, %+v", forbidden, e)
		}
		s.opts.Fetch.Robots = &robots.Cache{Protocol: s.opts.Protocol, Hosts: s.db.Hosts(), Now: s.opts.Now, Parse: func([]byte, ...string) *robots.Rules { return robots.AllowAll() }}
		if e := explain(); !e.RobotsKnown || !e.RobotsAllowed {
			t.Errorf("by a cache with a parser of its own: %+v", e)
		}
		s.opts.Fetch.Robots, s.opts.Fetch.NoRobots = nil, true
		if e := explain(); e.RobotsKnown {
			t.Errorf("without robots.txt: %+v", e)
		}
	})
}
