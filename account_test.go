package recrawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

// A budget is a bound, is used, and goes where pages change; what was planned is
// there again after a restart.
func TestLearnedKeepsToItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 40, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 15}
		s.opts.Generate.TopN = 10
		first := s.run(t, s.web.Seeds()...)
		total := first.Visited()
		if total > 15 {
			t.Errorf("%d visits on the first day", total)
		}
		again := s.run(t)
		if again.Visited() != 0 || !again.NextDue.Equal(s.now.Add(96*time.Minute+time.Second)) {
			t.Errorf("with nothing left: %d visits, next at %v", again.Visited(), again.NextDue)
		}
		left := 0
		for u, d := range s.records(t) {
			if d.LastFetch.IsZero() {
				left++
				s.explained(t, u, again.NextDue)
			}
		}
		if left == 0 {
			t.Error("everything was visited on the first day")
		}
		for day := range 60 {
			s.now = s.now.AddDate(0, 0, 1)
			r := s.run(t)
			n := r.Visited()
			if total += n; n > 16 { // what is less than a visit is left for the next day
				t.Errorf("day %d: %d visits", day, n)
			}
		}
		if total < 60*12 {
			t.Errorf("%d visits in 60 days: the budget is not used", total)
		}
		fast, slow := 0.0, 0.0
		for u, d := range s.records(t) {
			r, ok := schedule.RateOf(&d)
			truth, there := s.web.Page(u)
			if !ok || !there {
				continue
			}
			if truth.Period == 24*time.Hour {
				fast = max(fast, r.PerDay())
			} else if truth.Period == 0 {
				slow = max(slow, r.PerDay())
			}
		}
		if !(fast > 2*slow) || slow == 0 {
			t.Errorf("pages that change often are taken to change %.3g times a day, those that do not %.3g", fast, slow)
		}
		c := s.crawler(t)
		e, err := c.Explain(t.Context(), s.web.Seeds()[0])
		c.Close()
		if err != nil || e.Worth == nil || !e.Worth.Learned || !(e.Worth.Threshold > 0) {
			t.Fatalf("explained: %+v, %v", e.Worth, err)
		}
		mark, err := s.db.Crawl().Mark(t.Context(), "schedule/plan")
		if err != nil {
			t.Fatal(err)
		}
		p, err := schedule.DecodePlan(mark)
		if err != nil || p.Mu != e.Worth.Threshold || p.Budget != 15 || p.Visits == 0 {
			t.Errorf("the plan is %+v, %v; the threshold is %v", p, err, e.Worth.Threshold)
		}
	})
}

// Visits of segments that are finished at the same time are all counted.
func TestFinishAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 40, Calm: true})
		s.run(t, s.web.Seeds()...) // without a plan, and so without an account
		s.opts.Schedule = schedule.Learned{Budget: 1000}
		s.now = s.now.AddDate(1, 0, 0)
		s.opts.Generate.TopN, s.opts.Generate.Segments = 10, 2
		store := &meanwhile{Store: s.db.Crawl()}
		stores := s.stores()
		stores.Crawl = store
		c, err := recrawl.New(stores, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		g, err := c.Generate(t.Context())
		if err != nil || len(g.Segments) != 2 {
			t.Fatalf("%v, %v", g.Segments, err)
		}
		for _, name := range g.Segments {
			if _, err := c.Fetch(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		// The second is finished when the first has read the account.
		second := make(chan error, 1)
		store.account = func() {
			store.account = nil
			go func() { second <- c.Finish(t.Context(), g.Segments[1]) }()
			synctest.Wait()
		}
		if err := errors.Join(c.Finish(t.Context(), g.Segments[0]), <-second); err != nil {
			t.Fatal(err)
		}
		var account struct{ Visits int }
		text, err := s.db.Crawl().Mark(t.Context(), "schedule/account")
		if err = errors.Join(err, json.Unmarshal([]byte(text), &account)); err != nil || account.Visits != 20 {
			t.Errorf("%d visits were counted, want 20: %v", account.Visits, err)
		}
	})
}

// meanwhile calls account when that was read.
type meanwhile struct {
	crawldb.Store
	account func()
}

func (m *meanwhile) Mark(ctx context.Context, job string) (string, error) {
	cursor, err := m.Store.Mark(ctx, job)
	if m.account != nil && job == "schedule/account" {
		m.account()
	}
	return cursor, err
}

// A budget is a bound for a crawl that bounds its rounds by nothing else, too.
func TestBudgetWithoutTopN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 40, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 5}
		s.opts.Generate.TopN = -1
		if n := s.run(t, s.web.Seeds()...); n.Visited() != 5 {
			t.Errorf("%d visits on the first day, of a budget of 5", n.Visited())
		}
	})
}

// A budget of less than a visit a day is one all the same: a visit comes in with time.
func TestLearnedWithABudgetBelowOneADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 40, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 3. / 7}
		r := s.run(t, s.web.Seeds()...)
		if next := s.now.Add(56*time.Hour + time.Second); r.Visited() != 1 || !r.NextDue.Equal(next) {
			t.Fatalf("%d visits at once, next at %v, want 1 and %v", r.Visited(), r.NextDue, next)
		}
		total := r.Visited()
		for range 10 * 7 {
			s.now = s.now.AddDate(0, 0, 1)
			r := s.run(t)
			if total += r.Visited(); r.Visited() > 1 {
				t.Errorf("%d visits on one day", r.Visited())
			}
		}
		if total < 20 || total > 31 { // a visit may wait for the next look, a day later
			t.Errorf("%d visits in ten weeks of three each", total)
		}
	})
}

// What was visited while there was no budget is no debt of one that is given later.
func TestLearnedIsGivenABudget(t *testing.T) {
	for _, before := range []float64{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 300, Calm: true})
			s.opts.Generate.TopN, s.opts.Run.Rounds = 50, 4
			s.opts.Schedule = schedule.Learned{Budget: before}
			first := s.run(t, s.web.Seeds()...)
			if first.Visited() < 90 {
				t.Fatalf("%d visits without a budget", first.Visited())
			}
			s.opts.Schedule, s.opts.Run.Rounds = schedule.Learned{Budget: 10}, 0
			if r := s.run(t); r.Visited() == 0 || r.Visited() > 10 {
				t.Errorf("%d visits on the first day of a budget of 10, next at %v; it is %v", r.Visited(), r.NextDue, s.now)
			}
		})
	}
}

// What a rule keeps from one host is spent on the others.
func TestBudgetBesideAHostRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 3, PagesPerHost: 60, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 60}
		s.opts.Fetch.Politeness.HostRule = func(queue string) fetch.HostRule {
			if queue == s.web.Host(0) {
				return fetch.HostRule{Requests: 3}
			}
			return fetch.HostRule{}
		}
		s.run(t, s.web.Seeds()...)
		const days = 40
		made := 0
		for at := range 2 * days {
			s.now = s.now.Add(12 * time.Hour)
			time.Sleep(12 * time.Hour) // a day of a rule is one of the real clock
			for code, n := range s.run(t).Visits {
				if code.Asked() && at >= days {
					made += n
				}
			}
		}
		if made < 57*days/2 {
			t.Errorf("%d visits in %d days, of a budget of 60 a day", made, days/2)
		}
	})
}

// A visit that a rule of ours forbids is not made, and costs nothing of the budget.
func TestRefusedVisitsAreNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 40, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 1000}
		web := s.web.Protocol()
		s.opts.Protocol = protocolFunc(func(ctx context.Context, r protocol.Request) (protocol.Response, error) {
			if len(r.URL)%2 == 0 && !strings.HasSuffix(r.URL, "/robots.txt") {
				return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Refused, Reason: "it is odd"}}, nil
			}
			return web.Fetch(ctx, r)
		})
		r := s.run(t, s.web.Seeds()...)
		var account struct{ Visits int }
		text, err := s.db.Crawl().Mark(t.Context(), "schedule/account")
		if err = errors.Join(err, json.Unmarshal([]byte(text), &account)); err != nil {
			t.Fatal(err)
		}
		if refused := r.Visits[protocol.Refused]; refused == 0 || account.Visits != r.Visited()-refused {
			t.Errorf("%d visits were charged, of %v", account.Visits, r.Visits)
		}
	})
}

// A clock that was ahead for some days leaves no gap in what is used of the budget.
func TestUsedAfterAClockThatWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 40, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 15}
		s.run(t, s.web.Seeds()...)
		right := s.now
		s.now = s.now.AddDate(1, 0, 0)
		for range 4 {
			s.now = s.now.AddDate(0, 0, 1)
			s.run(t)
		}
		s.now = right
		var r recrawl.Report
		for range 3 {
			s.now = s.now.AddDate(0, 0, 1)
			r = s.run(t)
		}
		if f := r.Freshness; f == nil || !(f.Used > 1) || s.now.Sub(f.UsedSince) > 49*time.Hour || f.UsedSince.After(s.now) {
			t.Errorf("%v visits a day are used since %v; it is %v", f.Used, f.UsedSince, s.now)
		}
	})
}

// What a crawl of an hour has made of a day's budget is what it has made, not what it would
// make in a day.
func TestBudgetUsedIsNotProjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 20})
		s.opts.Schedule = schedule.Learned{Budget: 1000}
		began := s.now
		first := s.run(t, s.web.Seeds()...)
		s.now = s.now.Add(90 * time.Minute)
		r := s.run(t)
		made := float64(first.Visited() + r.Visited()) // one may be of what robots.txt forbids
		if f := r.Freshness; f == nil || first.Visited() == 0 || math.Abs(f.Used-made) > 2 || f.UsedSince.Before(began) || f.UsedSince.After(s.now) {
			t.Errorf("%v visits since %v, and not %v", f.Used, f.UsedSince, made)
		}
	})
}

// explained looks whether what Explain says of a page that is due agrees with when the
// budget has something left.
func (s *setup) explained(t *testing.T, url string, spent time.Time) {
	t.Helper()
	now := s.now
	defer func() { s.now = now }()
	for _, s.now = range []time.Time{now, spent} {
		c := s.crawler(t)
		e, err := c.Explain(t.Context(), url)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		until, begin := spent, "Due, but the budget of visits is spent: nothing is selected until "+spent.Format(time.RFC3339)+"."
		if s.now.Equal(spent) {
			until, begin = time.Time{}, "Due: the next round fetches it, "
		}
		if !e.BudgetSpentUntil.Equal(until) || !strings.HasPrefix(e.Verdict, begin) {
			t.Errorf("%s at %v: %q, spent until %v", url, e.Now, e.Verdict, e.BudgetSpentUntil)
		}
	}
}
