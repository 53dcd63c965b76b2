package recrawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

func TestRunEndsAfterItsRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 30, LinksPerPage: 4, Calm: true})
		s.opts.Generate.TopN = 5
		s.opts.Run.Rounds = 2
		if r := s.run(t, s.web.Seeds()...); r.Rounds != 2 {
			t.Errorf("%+v", r)
		}
		s.opts.Run.Rounds = 0
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
			s.opts.Run.Rounds = 3
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

func TestRunWaitsForWhatBecomesDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 3, Calm: true})
		s.opts.Run.Wait, s.opts.Now, s.web.Now = true, nil, nil
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

// A round that is over is no stage, and a crawler may be closed by either caller.
func TestStatusAfterARound(t *testing.T) {
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

// A page that is asked for by GenerateFree is fetched at once by a Run that waits,
// although it is not due and the budget is spent.
func TestRunFetchesWhatGenerateFreeNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true}
		s := newSetup(web)
		s.opts.Run.Wait, s.opts.Schedule = true, schedule.Learned{Budget: 1}
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

// The report of a run that ended for another reason than that nothing is due says
// nothing of when that will be: more is due now.
func TestNextDueIsAfterNothing(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 30, Calm: true})
	s.opts.Schedule = &schedule.Default{DefaultInterval: time.Hour}
	s.opts.Generate.TopN, s.opts.Run.Rounds = 5, 3
	for range 2 {
		if r := s.run(t, s.web.Seeds()...); r.Rounds != 3 || !r.NextDue.IsZero() {
			t.Errorf("after %d rounds more is due at %v; it is %v", r.Rounds, r.NextDue, s.now)
		}
	}
	s.opts.Run.Rounds = 0
	if r := s.run(t); !r.NextDue.Equal(s.now.Add(time.Hour)) {
		t.Errorf("nothing is due before %v; it is %v", r.NextDue, s.now)
	}
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
