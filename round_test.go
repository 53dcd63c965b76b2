package recrawl_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

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
		file, err := urlfilter.OpenFilter(path, urlfilter.ParseRegex, urlfilter.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		var others counted
		s.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s.opts.Rules = &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{urlfilter.Basic{}}, Filters: []urlfilter.Filter{file}}
		s.opts.Reload = []urlfilter.Reloader{&others}
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
		if r := round(); r.LinksRejected > 0 || r.Links == 0 || strings.Contains(log.String(), "rules") {
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
	})
}

type counted int

func (c *counted) Reload() (bool, error) {
	*c++
	return false, nil
}

// The reports that Hooks.Round receives add up to the report of Run, a failed round included.
func TestReportsOfRounds(t *testing.T) {
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
		s.dueIndex = true
		var rounds, visits, events int
		var next time.Time
		var names []string
		s.opts.Hooks.Round = func(r recrawl.Report) {
			if r.Rounds != 1 || len(r.Segments) != 1 || r.Elapsed < 0 {
				t.Errorf("%+v", r)
			}
			next = r.NextDue
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
		// More is due after every round but the last.
		if next.IsZero() || !next.Equal(second.NextDue) {
			t.Errorf("after the last round the next page is due at %v, and after the run at %v", next, second.NextDue)
		}
		if want := append(slices.Clone(first.Segments), second.Segments...); !slices.Equal(names, want) {
			t.Errorf("rounds on %v, want %v", names, want)
		}
	})
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
		{"two threads", 0, func(o *recrawl.Options) {
			o.Fetch.Politeness.ThreadsPerHost, o.Fetch.Politeness.MinDelay = 2, 3*time.Second
		}, 20, 3 * time.Second},
		{"by domain", 0, func(o *recrawl.Options) { o.Fetch.Politeness.By = hostdb.ByDomain }, 12, 5 * time.Second},
		{"less time than a pause", 0, func(o *recrawl.Options) { o.Run.RoundTime = time.Second }, 1, 5 * time.Second},
		{"no bound", 0, func(o *recrawl.Options) { o.Run.RoundTime = -1 }, 0, 0},
		{"MaxPerHost", 0, func(o *recrawl.Options) { o.Generate.MaxPerHost = 30 }, 30, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 50, LinksPerPage: 40, CrawlDelay: test.delay})
				s.opts.Fetch.Politeness.Delay, s.opts.Run.RoundTime = 0, time.Minute
				s.opts.Fetch.Sitemaps.NoDiscovery = true
				test.change(&s.opts)
				visits, most := map[string]int{}, 0
				s.opts.Fetch.OnVisit = func(v segment.Visit, _ fetch.Progress) { visits[s.opts.Fetch.Politeness.By.Key(v.URL)]++ }
				s.opts.Hooks.Round = func(r recrawl.Report) {
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

// No bubble: a goroutine that waits for a mutex does not count as waiting there.
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
