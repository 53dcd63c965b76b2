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
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/update"
)

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
				mark, err := s.db.Crawl().Mark(t.Context(), job)
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

// A budget that is no number is an error at once; for one of next to nothing Run waits.
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
			mark, err := s.db.Crawl().Mark(t.Context(), job)
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
				err = s.db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(job, string(text))})
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
			t.Errorf("logged: %s", text)
		}
		for url, want := range map[string]bool{urls[0]: true, urls[23]: false} {
			e, err := c.Explain(t.Context(), url)
			if err != nil || (e.Noisy != nil) != want || want && *e.Noisy != (schedule.NoisyHost{Host: "noisy.test", Checked: 12, Changed: 12}) {
				t.Errorf("%s: %+v, %v", url, e.Noisy, err)
			}
		}
	})
}

// A page that other pages have kept back for longer than the bound is selected first, once a plan was made; and it is
// a warning if the budget does not allow the bound.
func TestNoPageWaitsForLongerThanTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 1})
		s.opts.Schedule = schedule.Learned{Budget: 1}
		var log bytes.Buffer
		s.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		add := func(from, to int, d crawldb.Datum) (urls []string) {
			for i := range to - from {
				urls = append(urls, fmt.Sprintf("http://a.test/%03d", from+i))
			}
			err := s.db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
				e := d
				e.URL, e.Interval, e.Signature = urls[i], 30*24*time.Hour, []byte{1}
				return &e, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			return urls
		}
		waits := add(0, 1, crawldb.Datum{Status: crawldb.Fetched, Score: 0.001, LastFetch: s.now.AddDate(0, 0, -95), FetchTime: s.now.AddDate(0, 0, -65), Priority: 1 << 21})
		add(1, 50, crawldb.Datum{Status: crawldb.Fetched, Score: 100, LastFetch: s.now.AddDate(0, 0, -10), FetchTime: s.now.AddDate(0, 0, -5), Priority: 1 << 22})
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		for d, err := range crawldb.Due(t.Context(), s.db.Crawl(), crawldb.DueQuery{Now: s.now}) {
			if err != nil || d.URL != waits[0] {
				t.Errorf("the first that is due is %s, %v", d.URL, err)
			}
			break
		}
		if strings.Contains(log.String(), "level=WARN") {
			t.Errorf("the budget allows the bound: %s", log.String())
		}
		add(50, 150, crawldb.Datum{Status: crawldb.Fetched, Score: 1, LastFetch: s.now.AddDate(0, 0, -10), FetchTime: s.now.AddDate(0, 0, 20), Priority: 1 << 22})
		if _, err := c.Plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "greatest interval") {
			t.Errorf("the budget does not allow the bound: %s", text)
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
		s.opts.Fetch.Politeness.HostRule = func(queue string) fetch.HostRule {
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
		s.opts.Fetch.Politeness.By = hostdb.ByDomain
		s.run(t, s.web.Seeds()...)
		s.opts.Schedule, s.opts.Fetch.Politeness.Delay = schedule.Learned{Budget: -1}, 10*time.Second
		if p := s.plan(t); p.Budget < 8000 || p.Budget > 8640 {
			t.Errorf("%v visits a day are allowed, ten seconds apart", p.Budget)
		}
		s.opts.Schedule = schedule.Learned{Budget: 40}
		s.opts.Fetch.Politeness.HostRule = func(queue string) fetch.HostRule {
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

// halved is a Learned that halves all intervals, and keeps its plan.
type halved struct{ schedule.Learned }

func (s halved) WithPlan(p *schedule.Plan) schedule.Planner {
	s.Plan = p
	return s
}

func (s halved) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	d = s.Learned.Fetched(d, v)
	d.Interval = max(d.Interval/2, time.Second).Truncate(time.Second)
	d.FetchTime = v.Time.Add(d.Interval)
	return d
}

// byHost is a schedule that has nothing of Learned: the more pages a host has, the later each is
// due. Its plan is the number of pages of each host.
type byHost struct {
	schedule.Default
	plan *schedule.Plan
}

type hostPages struct {
	at    time.Time
	pages map[string]int
}

func (s byHost) VisitsPerDay() float64                        { return 12 }
func (s byHost) CurrentPlan() *schedule.Plan                  { return s.plan }
func (s byHost) Priority(_ *crawldb.Datum, p float32) float32 { return p }
func (s byHost) InLine(*crawldb.Datum, time.Time) bool        { return true }
func (s byHost) NewSample(now time.Time) schedule.Sample      { return &hostPages{now, map[string]int{}} }
func (s byHost) WithPlan(p *schedule.Plan) schedule.Planner   { s.plan = p; return s }
func (x *hostPages) Add(d *crawldb.Datum)                     { x.pages[crawldb.Host(d.URL)]++ }
func (x *hostPages) Plan(o schedule.PlanOptions) *schedule.Plan {
	extra, _ := json.Marshal(x.pages)
	return &schedule.Plan{Made: x.at, Visits: o.Visits, Asked: 12, Extra: extra}
}

func (s byHost) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	pages := map[string]int{}
	if s.plan != nil {
		_ = json.Unmarshal(s.plan.Extra, &pages)
	}
	d = s.Default.Fetched(d, v)
	d.Interval = time.Duration(1+pages[crawldb.Host(d.URL)]) * time.Hour
	d.FetchTime = v.Time.Add(d.Interval)
	return d
}

// A schedule that embeds Learned gets plans, keeps to its budget, and stays what it is; so does one
// that has nothing of Learned, and both have their plan after a restart.
func TestPlannerOfAnotherTypeKeepsItsPlan(t *testing.T) {
	for name, c := range map[string]struct {
		schedule schedule.FetchSchedule
		stays    func(s *setup, d crawldb.Datum) error
	}{
		"embeds Learned": {halved{schedule.Learned{Budget: 12}}, func(s *setup, d crawldb.Datum) error {
			p, err := recrawl.ReadPlan(t.Context(), s.db.Crawl())
			if err != nil || p == nil || p.Budget != 12 || p.Mu <= 0 || p.Outlook == nil || !p.MadeBy(&halved{}) || p.MadeBy(schedule.Learned{}) {
				return fmt.Errorf("the plan is %+v, %v", p, err)
			}
			return nil
		}},
		"a pointer": {&halved{schedule.Learned{Budget: 12}}, func(*setup, crawldb.Datum) error { return nil }},
		"of a third party": {byHost{}, func(_ *setup, d crawldb.Datum) error {
			if d.Interval <= time.Hour {
				return fmt.Errorf("%s has an interval of %v: its host has no pages in the plan", d.URL, d.Interval)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true})
				s.opts.Schedule = c.schedule
				for range 6 {
					s.run(t, s.web.Seeds()...)
					s.now = s.now.Add(12 * time.Hour)
				}
				if r := s.run(t); r.Visited() > 12 {
					t.Errorf("%d visits in half a day, with a budget of 12 a day", r.Visited())
				}
				checked := 0
				for _, d := range s.records(t) {
					if d.LastFetch.After(s.now.Add(-24 * time.Hour)) {
						checked++
						if err := c.stays(s, d); err != nil {
							t.Error(err)
						}
					}
				}
				if checked == 0 {
					t.Error("no page was visited in the last day")
				}
				if _, err := s.crawler(t).Freshness(t.Context(), 3); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A type that embeds Learned without a WithPlan of its own would lose what it adds.
func TestPlannerThatLosesItselfIsAnErrorOfNew(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1})
	s.opts.Schedule = struct{ schedule.Learned }{schedule.Learned{Budget: 5}}
	if _, err := recrawl.New(s.stores(), s.opts); err == nil || !strings.Contains(err.Error(), "needs a WithPlan of its own") {
		t.Errorf("New: %v", err)
	}
}

// Another planner makes another plan, and does not follow the one it finds.
func TestPlanOfAnotherPlannerIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 10, Calm: true})
		s.opts.Schedule = byHost{}
		s.run(t, s.web.Seeds()...)
		s.opts.Schedule = schedule.Learned{Budget: 12}
		s.now = s.now.Add(time.Hour * 12)
		s.run(t)
		if p, err := recrawl.ReadPlan(t.Context(), s.db.Crawl()); err != nil || !p.MadeBy(schedule.Learned{}) || p.Extra != nil {
			t.Errorf("the plan is %+v, %v", p, err)
		}
	})
}

// Intervals that were learned are not those of a schedule that learns nothing, for
// longer than until the next visit; one that was injected since is.
func TestDefaultAfterLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 20, Calm: true})
		s.opts.Schedule = schedule.Learned{Budget: 40}
		s.run(t, s.web.Seeds()...)
		for range 40 {
			s.now = s.now.Add(day)
			s.run(t)
		}
		own, before := 30*day, 0
		for _, d := range s.records(t) {
			if d.Interval != own && !d.LastFetch.IsZero() {
				before++
			}
		}
		if before == 0 {
			t.Fatal("nothing was learned")
		}
		left := s.now.Add(time.Hour)
		for _, o := range []schedule.FetchSchedule{schedule.Default{}, &schedule.Default{}} {
			s.now = s.now.Add(100 * day) // beyond all intervals
			s.opts.Schedule = o
			r := s.run(t)
			if n := r.Visited(); n < 40 {
				t.Fatalf("%d visits", n)
			}
			for u, d := range s.records(t) {
				if d.LastFetch.After(left) && d.Interval != own && d.Status == crawldb.Fetched {
					t.Errorf("%s has the interval %v", u, d.Interval)
				}
			}
		}
		mark, err := s.db.Crawl().Mark(t.Context(), "schedule/left")
		if since, e := time.Parse(time.RFC3339, mark); err != nil || e != nil || since.Before(left) || since.After(left.Add(101*day)) {
			t.Errorf("left %q, %v, %v", mark, err, e)
		}
		s.now = s.now.Add(100 * day)
		s.opts.Schedule = schedule.Learned{Budget: 40}
		s.run(t)
		if mark, err = s.db.Crawl().Mark(t.Context(), "schedule/left"); mark != "" || err != nil {
			t.Errorf("a crawl that learns has left at %q, %v", mark, err)
		}
	})
}

// A schedule that learns has pages wait in one line; those that another schedule visited
// before stand in it, too, or with a budget that is too small they would wait for ever.
func TestLearnedAfterAdaptive(t *testing.T) {
	const day = 24 * time.Hour
	const pages = 40
	longest := func(t *testing.T, first schedule.FetchSchedule) (wait time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(&webtest.Web{})
			s.opts.Protocol = lonely{}
			s.opts.Schedule = first
			var seeds []string
			for i := range pages {
				seeds = append(seeds, fmt.Sprintf("http://h%d.example.test/", i))
			}
			s.run(t, seeds...)
			s.opts.Schedule = schedule.Learned{Budget: pages / 20, Default: schedule.Default{MaxInterval: 10 * day, DefaultInterval: 5 * day}}
			for range 100 {
				s.now = s.now.Add(day)
				s.run(t)
			}
			for _, d := range s.records(t) {
				wait = max(wait, s.now.Sub(d.LastFetch))
			}
		})
		return wait
	}
	learned := longest(t, schedule.Learned{Budget: 10 * pages})
	if learned > 40*day {
		t.Fatalf("one page was left alone for %v", learned)
	}
	if adaptive := longest(t, schedule.Adaptive{Default: schedule.Default{DefaultInterval: 5 * day}}); adaptive > learned+10*day {
		t.Errorf("of pages that Adaptive visited first one was left alone for %v, of others %v", adaptive, learned)
	}
}

// lonely is a web of pages that link to nothing.
type lonely struct{}

func (lonely) Fetch(_ context.Context, req protocol.Request) (protocol.Response, error) {
	if strings.HasSuffix(req.URL, "/robots.txt") {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
	}
	c := page.Content{URL: req.URL, Type: "text/html", Body: []byte("<p>" + req.URL)}
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Content: c}, nil
}

// A sweep leaves pages in the line of their schedule.
func TestSweepKeepsPriorities(t *testing.T) {
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
