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
	// Bound says that Budget is the one that the schedule was given. If it was given none,
	// Budget is what the plan comes to anyway: see [schedule.Learned].
	Bound     bool
	UsedSince time.Time
	// Greatest is how long a page may go unvisited, InForce the bound that the budget
	// allows: see [schedule.Learned.Greatest]. Both are zero if there is no plan.
	Greatest, InForce time.Duration
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
	s, err := c.NewSurvey(ctx)
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

// Survey computes a [Freshness] from the records it is shown, for callers that read all
// of them for another reason anyway. It is for use by one goroutine.
type Survey struct {
	c      *Crawler
	l      schedule.Learned
	census *schedule.Census
	sample *schedule.Sample
}

// NewSurvey starts a survey of the crawl db as it is now.
func (c *Crawler) NewSurvey(ctx context.Context) (*Survey, error) {
	s := &Survey{c: c}
	if l := c.learned(); l != nil {
		s.l = *l
	} else {
		p, err := ReadPlan(ctx, c.stores.Crawl)
		if err != nil && !errors.Is(err, schedule.ErrNotPlan) {
			return nil, fmt.Errorf("recrawl: freshness: %w", err)
		}
		if p != nil {
			s.l = schedule.Learned{Budget: p.Budget, Plan: p}
		}
	}
	now := c.opts.Now()
	s.census, s.sample = s.l.NewCensus(now), s.l.NewSample(now)
	return s, nil
}

// Add shows the survey a record, which it does not keep.
func (s *Survey) Add(d *crawldb.Datum) {
	s.census.Add(d)
	s.sample.Add(d)
}

// Freshness reports on the records shown so far.
func (s *Survey) Freshness(ctx context.Context, hosts int) (f Freshness, err error) {
	fail := func(err error) (Freshness, error) { return Freshness{}, fmt.Errorf("recrawl: freshness: %w", err) }
	a, err := s.c.readAccount(ctx)
	if err != nil {
		return fail(err)
	}
	p, o, err := s.c.planOfSample(ctx, &s.l, s.sample, a)
	if err != nil {
		return fail(err)
	}
	f.Outlook = s.sample.Outlook(p, o)
	f.Condition, f.Hosts = s.census.Condition(hosts)
	f.Sampled = 0
	if s.l.Plan == nil && s.c.learned() == nil { // nobody plans
		f.Forecast = nil
		return f, nil
	}
	if g := f.Forecast; g != nil {
		g.Worth = min(g.Worth, f.Never) // it comes from the sample, and that from all records
	}
	f.Budget, f.Bound = p.Budget, p.Asked > 0
	f.Used, f.UsedSince = a.usedPerDay(f.At)
	l := s.l
	if l.Plan == nil {
		l.Plan = p
	}
	f.Greatest, f.InForce = l.Greatest()
	return f, nil
}

// plannedFreshness returns what is known without reading records, as of the last plan; nil
// if there is no plan.
func (c *Crawler) plannedFreshness(ctx context.Context) (*Freshness, error) {
	l := c.learned()
	if l == nil || l.Plan == nil || l.Plan.Outlook == nil {
		return nil, nil
	}
	a, err := c.readAccount(ctx)
	if err != nil {
		return nil, fmt.Errorf("recrawl: %w", err)
	}
	f := &Freshness{Outlook: *l.Plan.Outlook, Budget: l.Plan.Budget, Bound: l.Plan.Asked > 0}
	f.Used, f.UsedSince = a.usedPerDay(c.opts.Now())
	f.Greatest, f.InForce = l.Greatest()
	return f, nil
}
