package recrawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

// Freshness is how up to date the copies of a crawl are, and what its budget does for
// that. In a [Report] or [Status] it is the estimate made with the last plan, from its
// sample of up to 20,000 records, and costs nothing extra; [Crawler.Freshness] reads
// all records.
type Freshness struct {
	schedule.Outlook
	// Budget is the plan's number of visits a day, zero if there is no plan. Used is how many
	// were made in the last day, until now or the end of the round: those since UsedSince, or a
	// day's share of them if that is longer ago. It is zero if not known.
	Budget, Used float64
	// BudgetGiven says that Budget is the one that the schedule was given. If it was given none,
	// Budget is what the plan comes to anyway: see [schedule.Learned].
	BudgetGiven bool
	UsedSince   time.Time
	// MaxIntervalSet is how long a page may go unvisited, MaxIntervalInForce the bound that the budget
	// allows: see [schedule.Learned.MaxIntervals]. Both are zero if there is no plan.
	MaxIntervalSet, MaxIntervalInForce time.Duration
}

// Lacks returns how many visits a day the budget lacks to keep the given share of the
// importance fresh in the long run; it is negative if the budget is more than enough. ok
// is false if no budget keeps so much fresh, or nothing can be said yet.
func (f *Freshness) Lacks(freshness float64) (perDay float64, ok bool) {
	if f.Forecast == nil {
		return 0, false
	}
	needs, ok := f.Forecast.Needs(freshness)
	return needs - f.Budget, ok
}

// Freshness reports how up to date the copies are. It reads all records of the crawl db,
// and names up to hosts hosts, those with the most importance that is not fresh. What
// other budgets would reach is still estimated from a sample. A crawler whose schedule
// does not learn uses the plan of one that did, if the crawl has one; otherwise it
// reports only when pages were visited and are due.
func (c *Crawler) Freshness(ctx context.Context, hosts int) (Freshness, error) {
	s, err := c.NewCensus(ctx)
	if err != nil {
		return Freshness{}, err
	}
	for d, err := range c.stores.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return Freshness{}, fmt.Errorf("recrawl: freshness: %w", err)
		}
		s.Add(&d)
	}
	return s.Freshness(ctx, hosts)
}

// Census computes a [Freshness] from the records it is shown, for callers that read all of them
// for another reason anyway. It is for use by one goroutine.
type Census struct {
	c       *Crawler
	planner schedule.Planner // the schedule, or a Learned in its place
	planned bool             // the schedule plans, or another one of this crawl did
	census  *schedule.Census
	sample  schedule.Sample
}

// NewCensus starts a census of the crawl db as it is now.
func (c *Crawler) NewCensus(ctx context.Context) (*Census, error) {
	planner := c.planner()
	planned := planner != nil
	if planner == nil {
		p, err := ReadPlan(ctx, c.stores.Crawl)
		if err != nil && !errors.Is(err, schedule.ErrNotPlan) {
			return nil, fmt.Errorf("recrawl: freshness: %w", err)
		}
		l := schedule.Learned{}
		if p != nil && p.MadeBy(l) {
			l.Budget, l.Plan, planned = p.Budget, p, true
		}
		planner = l
	}
	estimator, ok := planner.(schedule.Estimator)
	if !ok {
		estimator = schedule.Learned{}
	}
	now := c.opts.Now()
	return &Census{c: c, planner: planner, planned: planned, census: estimator.NewCensus(now), sample: planner.NewSample(now)}, nil
}

// Add shows the census a record, which it does not keep.
func (s *Census) Add(d *crawldb.Datum) {
	s.census.Add(d)
	s.sample.Add(d)
}

// Freshness reports on the records shown so far.
func (s *Census) Freshness(ctx context.Context, hosts int) (f Freshness, err error) {
	fail := func(err error) (Freshness, error) { return Freshness{}, fmt.Errorf("recrawl: freshness: %w", err) }
	a, err := s.c.readAccount(ctx)
	if err != nil {
		return fail(err)
	}
	p, err := s.c.planOfSample(ctx, s.planner, s.sample, a)
	if err != nil {
		return fail(err)
	}
	f.At = s.c.opts.Now().UTC()
	if p.Outlook != nil {
		f.Outlook = *p.Outlook
	}
	f.Condition, f.Hosts = s.census.Condition(hosts)
	f.Sampled = 0
	if !s.planned {
		f.Forecast = nil
		return f, nil
	}
	if g := f.Forecast; g != nil {
		g.Worth = min(g.Worth, f.Never) // it comes from the sample, and that from all records
	}
	planner := s.planner
	if planner.CurrentPlan() == nil {
		if planner, err = schedule.ReplacePlan(planner, p); err != nil {
			return fail(err)
		}
	}
	f.setBudget(planner, p, a, f.At)
	return f, nil
}

// plannedFreshness returns what is known without reading records, as of the last plan; nil
// if there is no plan.
func (c *Crawler) plannedFreshness(ctx context.Context) (*Freshness, error) {
	planner := c.planner()
	if planner == nil || planner.CurrentPlan() == nil || planner.CurrentPlan().Outlook == nil {
		return nil, nil
	}
	a, err := c.readAccount(ctx)
	if err != nil {
		return nil, fmt.Errorf("recrawl: %w", err)
	}
	p := planner.CurrentPlan()
	f := &Freshness{Outlook: *p.Outlook}
	f.setBudget(planner, p, a, c.opts.Now())
	return f, nil
}

// setBudget sets what is known of the budget and of the greatest interval.
func (f *Freshness) setBudget(planner schedule.Planner, p *schedule.Plan, a account, now time.Time) {
	f.Budget, f.BudgetGiven = p.Budget, p.Asked > 0
	f.Used, f.UsedSince = a.usedPerDay(now)
	if e, ok := planner.(schedule.Estimator); ok {
		f.MaxIntervalSet, f.MaxIntervalInForce = e.MaxIntervals()
	}
}
