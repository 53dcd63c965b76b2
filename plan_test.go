package recrawl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
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
		mark, err := s.db.Crawl().Progress(t.Context(), "schedule/plan")
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
		text, err := s.db.Crawl().Progress(t.Context(), "schedule/account")
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

func (m *meanwhile) Progress(ctx context.Context, job string) (string, error) {
	cursor, err := m.Store.Progress(ctx, job)
	if m.account != nil && job == "schedule/account" {
		m.account()
	}
	return cursor, err
}

// Wherever the crawler dies, the crawl db becomes the same: plan and account too.
func TestLearnedCrawlerThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := func() *setup {
			s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 6})
			s.opts.Schedule = &schedule.Learned{Budget: 1000}
			s.run(t, s.web.Seeds()...)
			s.now = s.now.AddDate(0, 0, 20)
			return s
		}
		dump := func(s *setup) string {
			text := s.dump(t)
			for _, job := range []string{"schedule/plan", "schedule/account"} {
				mark, err := s.db.Crawl().Progress(t.Context(), job)
				if err != nil || mark == "" {
					t.Fatalf("%s: %q, %v", job, mark, err)
				}
				text += job + " " + mark + "\n"
			}
			return text
		}
		calm := web()
		calm.run(t)
		want := dump(calm)
		died := true
		for n := 1; died; n += 1 + n/10 {
			for _, applies := range []bool{false, true} {
				s := web()
				left := n
				stores := s.stores()
				stores.Crawl, stores.Segments = dyingCrawl{stores.Crawl, &left, applies}, dyingSegments{stores.Segments, &left}
				c, err := recrawl.New(stores, s.opts)
				if err == nil {
					_, err = c.Run(t.Context())
					c.Close()
				}
				if died = err != nil; died && !errors.Is(err, errDied) {
					t.Fatal(err)
				}
				s.run(t)
				if got := dump(s); got != want {
					t.Fatalf("died at write %d (applied: %v): %s", n, applies, firstDifference(got, want))
				}
			}
		}
	})
}

// A budget that is no number is told at once; one of next to nothing is waited for.
func TestInvalidBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, budget := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
			s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 2, Calm: true})
			s.opts.Schedule = schedule.Learned{Budget: budget}
			c, err := recrawl.New(s.stores(), s.opts)
			if err == nil {
				c.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "Budget") {
				t.Errorf("a budget of %v: %v", budget, err)
			}
		}
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 2, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 1e-300}
		if r := s.run(t, s.web.Seeds()...); r.Visited() != 1 || r.NextDue.Before(s.now.AddDate(50, 0, 0)) {
			t.Errorf("with no budget to speak of: %d visits, next at %v", r.Visited(), r.NextDue)
		}
	})
}

// Another budget is in force at once, and not when the plan is a day old.
func TestAnotherBudgetIsAnotherPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 10, Calm: true})
		budgets := []float64{15, 15, 15, 15, 200, 200, -1, 0}
		var made []time.Time
		for i, budget := range budgets {
			s.opts.Schedule = schedule.Learned{Budget: budget}
			s.run(t, s.web.Seeds()...)
			p, err := recrawl.ReadPlan(t.Context(), s.db.Crawl())
			if err != nil || p.Asked != budget || budget > 0 && p.Budget != budget {
				t.Fatalf("a budget of %v: the plan is for %v, %v", budget, p.Asked, err)
			}
			made = append(made, p.Made)
			if s.now = s.now.AddDate(0, 0, 1); i >= 3 {
				s.now = s.now.AddDate(0, 0, -1).Add(time.Hour)
			}
		}
		if !made[5].Equal(made[4]) {
			t.Errorf("a plan that is an hour old, for the same budget, was made anew")
		}
	})
}

// A plan of few visits is made anew before it is a day old when there are twice as many.
func TestPlanOfManyMoreVisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 10, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 15}
		for range 4 {
			s.run(t, s.web.Seeds()...)
			s.now = s.now.AddDate(0, 0, 1)
		}
		made := func(visits int64) bool {
			const job = "schedule/account"
			s.now = s.now.Add(time.Hour)
			before, err := recrawl.ReadPlan(t.Context(), s.db.Crawl())
			if err != nil {
				t.Fatal(err)
			}
			mark, err := s.db.Crawl().Progress(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			account := map[string]any{}
			if err := json.Unmarshal([]byte(mark), &account); err != nil {
				t.Fatal(err)
			}
			account["Visits"] = before.Visits + visits
			text, err := json.Marshal(account)
			if err == nil {
				err = s.db.Crawl().Update(t.Context(), crawldb.Batch{Job: job, Cursor: string(text)})
			}
			if err != nil {
				t.Fatal(err)
			}
			s.run(t)
			after, err := recrawl.ReadPlan(t.Context(), s.db.Crawl())
			if err != nil {
				t.Fatal(err)
			}
			return after.Made.After(before.Made)
		}
		s.run(t)
		if made(500) {
			t.Error("a new plan after 500 visits")
		}
		if !made(1000) {
			t.Error("no new plan after 1,000 visits")
		}
		if made(500) {
			t.Error("a new plan after 500 visits more")
		}
		if !made(2000) {
			t.Error("no new plan after twice as many")
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
		if !e.Spent.Equal(until) || !strings.HasPrefix(e.Verdict, begin) {
			t.Errorf("%s at %v: %q, spent until %v", url, e.Now, e.Verdict, e.Spent)
		}
	}
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

func TestSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, f := range map[string]schedule.FetchSchedule{"learned": schedule.Learned{}, "adaptive": schedule.Adaptive{}} {
			s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
			s.opts.Schedule = f
			seed := s.web.Seeds()[0]
			s.run(t, seed)
			s.now = s.now.AddDate(0, 0, 2)
			before := s.records(t)[seed]
			c := s.crawler(t)
			defer c.Close()
			if err := c.Signal(t.Context(), seed, before.LastFetch.Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			if d := s.records(t)[seed]; !d.FetchTime.Equal(before.FetchTime) {
				t.Errorf("%s: a change before the visit: due at %v, was %v", name, d.FetchTime, before.FetchTime)
			}
			if err := c.Signal(t.Context(), seed, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if d := s.records(t)[seed]; d.FetchTime.After(s.now) {
				t.Errorf("%s: due at %v, was %v", name, d.FetchTime, before.FetchTime)
			} else if name == "learned" && d.Priority <= before.Priority {
				t.Errorf("priority %v, was %v", d.Priority, before.Priority)
			}
			if r, err := c.Run(t.Context()); err != nil || r.Visited() == 0 {
				t.Errorf("%s: %d visits, %v", name, r.Visited(), err)
			}
			if err := c.Signal(t.Context(), "http://nowhere.test/", s.now); !errors.Is(err, crawldb.ErrNotFound) {
				t.Errorf("%s: a page that is not known: %v", name, err)
			}
		}
	})
}

// A host whose signature sees what no reader does is a warning, once a plan, and told by
// Explain of its pages alone.
func TestNoisyHostIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 1})
		l := schedule.Learned{Budget: 10}
		s.opts.Schedule = l
		var told bytes.Buffer
		s.opts.Logger = slog.New(slog.NewTextHandler(&told, nil))
		var urls []string
		records := map[string]*crawldb.Datum{}
		for i := range 24 {
			change := schedule.Changed
			url := fmt.Sprintf("http://noisy.test/%02d", i)
			if i >= 12 {
				url, change = fmt.Sprintf("http://quiet.test/%02d", i), schedule.Unchanged
			}
			at := s.now.AddDate(0, 0, -6)
			d := l.Init(crawldb.Datum{URL: url, Status: crawldb.Fetched, Score: 1, Signature: []byte{1}}, at)
			d = l.Fetched(d, schedule.Visit{Time: at})
			for range 3 {
				d.LastFetch, at = at, at.AddDate(0, 0, 2)
				d = l.Fetched(d, schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: change})
			}
			d.LastFetch = at
			urls, records[url] = append(urls, url), &d
		}
		err := s.db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return records[urls[i]], nil }})
		if err != nil {
			t.Fatal(err)
		}
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := told.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "host=noisy.test pages=12 of=12 signature=") {
			t.Errorf("told: %s", text)
		}
		for url, want := range map[string]bool{urls[0]: true, urls[23]: false} {
			e, err := c.Explain(t.Context(), url)
			if err != nil || (e.Noisy != nil) != want || want && *e.Noisy != (schedule.Noisy{Host: "noisy.test", Checked: 12, Changed: 12}) {
				t.Errorf("%s: %+v, %v", url, e.Noisy, err)
			}
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
			s.opts.Generate.TopN, s.opts.Rounds = 50, 4
			s.opts.Schedule = schedule.Learned{Budget: before}
			first := s.run(t, s.web.Seeds()...)
			if first.Visited() < 90 {
				t.Fatalf("%d visits without a budget", first.Visited())
			}
			s.opts.Schedule, s.opts.Rounds = schedule.Learned{Budget: 10}, 0
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
		s.opts.Fetch.HostRule = func(queue string) fetch.HostRule {
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
		text, err := s.db.Crawl().Progress(t.Context(), "schedule/account")
		if err = errors.Join(err, json.Unmarshal([]byte(text), &account)); err != nil {
			t.Fatal(err)
		}
		if refused := r.Visits[protocol.Refused]; refused == 0 || account.Visits != r.Visited()-refused {
			t.Errorf("%d visits were charged, of %v", account.Visits, r.Visits)
		}
	})
}

// plan is the plan of a crawler that has just begun.
func (s *setup) plan(t *testing.T) *schedule.Plan {
	t.Helper()
	c := s.crawler(t)
	defer c.Close()
	p, err := c.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What a rule allows a host is known to the plan, which spends the rest elsewhere.
func TestPlanKnowsHostRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 40, Calm: true})
		s.run(t, s.web.Seeds()...)
		s.opts.Schedule = schedule.Learned{Budget: 40}
		if p := s.plan(t); len(p.HostMu) > 0 {
			t.Fatalf("without rules: %v", p.HostMu)
		}
		s.opts.Fetch.HostRule = func(queue string) fetch.HostRule {
			if queue == s.web.Host(0) {
				return fetch.HostRule{Requests: 5}
			}
			return fetch.HostRule{}
		}
		if p := s.plan(t); len(p.HostMu) != 1 || !(p.HostMu[s.web.Host(0)] > p.Mu) {
			t.Errorf("thresholds %v beside %v", p.HostMu, p.Mu)
		}
	})
}

// Hosts that share a queue have its visits together.
func TestPlanOfHostsThatShareAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 20, Calm: true})
		s.opts.Fetch.By = hostdb.ByDomain
		s.run(t, s.web.Seeds()...)
		s.opts.Schedule, s.opts.Fetch.Delay = schedule.Learned{Budget: -1}, 10*time.Second
		if p := s.plan(t); p.Budget < 8000 || p.Budget > 8640 {
			t.Errorf("%v visits a day are allowed, ten seconds apart", p.Budget)
		}
		s.opts.Schedule = schedule.Learned{Budget: 40}
		s.opts.Fetch.HostRule = func(queue string) fetch.HostRule {
			if queue != "example.test" {
				t.Errorf("there is no queue %s", queue)
			}
			return fetch.HostRule{Requests: 5}
		}
		if p := s.plan(t); len(p.HostMu) != 4 {
			t.Errorf("thresholds %v", p.HostMu)
		}
	})
}
