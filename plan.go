package recrawl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
)

// A schedule that learns has a plan, which is made from the crawl db before a
// segment is, and kept in a mark of the crawl db. So a segment is handled under one
// plan, however often the process dies, and a plan never exists without the updates
// it was made from.
const planMark = "schedule/plan"

// currentPlanner is the schedule of a crawler with its latest plan.
type currentPlanner struct {
	mu      sync.Mutex
	planner schedule.Planner // nil if Options.Schedule is none
}

// schedule returns the schedule in force.
func (c *Crawler) schedule() schedule.FetchSchedule {
	if p := c.planner(); p != nil {
		return p
	}
	return c.opts.Schedule
}

// planner returns the schedule with its latest plan, nil if Options.Schedule is no schedule.Planner.
func (c *Crawler) planner() schedule.Planner {
	c.current.mu.Lock()
	defer c.current.mu.Unlock()
	return c.current.planner
}

func (c *Crawler) setPlan(p *schedule.Plan) error {
	c.current.mu.Lock()
	defer c.current.mu.Unlock()
	next, err := schedule.ReplacePlan(c.current.planner, p)
	if err == nil {
		c.current.planner = next
	}
	return err
}

// openPlan loads the latest plan. One that cannot be read, or was made for a schedule of another
// type, is left for ensurePlan to replace.
func (c *Crawler) openPlan(ctx context.Context) error {
	planner, ok := c.opts.Schedule.(schedule.Planner)
	if !ok {
		return nil
	}
	if b := planner.VisitsPerDay(); !(math.Abs(b) <= mostBudget) {
		return fmt.Errorf("Options.Schedule has a Budget of %v visits a day", b)
	}
	c.current.planner = planner
	if err := c.setPlan(planner.CurrentPlan()); err != nil {
		return fmt.Errorf("Options.Schedule: %w", err)
	}
	p, err := ReadPlan(ctx, c.stores.Crawl)
	switch {
	case errors.Is(err, schedule.ErrNotPlan):
		c.opts.Logger.Warn("recrawl: the plan of the schedule could not be read, and is made anew", "error", err)
	case err != nil:
		return err
	case p != nil && p.MadeBy(planner):
		return c.setPlan(p)
	}
	return nil
}

// ReadPlan returns the latest plan made for the schedule of a crawl, nil if the crawl db has
// none. If it cannot be read, the error matches [schedule.ErrNotPlan]; a Crawler that needs a
// plan then makes another.
func ReadPlan(ctx context.Context, crawl crawldb.Store) (*schedule.Plan, error) {
	mark, err := crawl.Mark(ctx, planMark)
	if err != nil || mark == "" {
		return nil, err
	}
	p, err := schedule.DecodePlan(mark)
	if err != nil {
		return nil, fmt.Errorf("recrawl: mark %s: %w", planMark, err)
	}
	return p, nil
}

// Plan makes a plan from the crawl db as it is now, for a schedule that learns, and stores
// it. It reads all records, and fixes the priority of those that another schedule has left
// where they would wait forever. A crawler does so itself before it selects pages, if the
// last plan is a day old or for another Budget, or the number of visits has doubled since;
// in a young crawl no plan gets older than the crawl was when it was made. Plan returns nil
// if the schedule has no plan.
func (c *Crawler) Plan(ctx context.Context) (*schedule.Plan, error) {
	planner := c.planner()
	if planner == nil {
		return nil, nil
	}
	p, err := c.makePlan(ctx, planner)
	if err != nil {
		return nil, fmt.Errorf("recrawl: plan: %w", err)
	}
	return p, nil
}

func (c *Crawler) makePlan(ctx context.Context, planner schedule.Planner) (*schedule.Plan, error) {
	a, err := c.readAccount(ctx)
	if err != nil {
		return nil, err
	}
	now := c.opts.Now()
	sample, strays := planner.NewSample(now), false
	for d, err := range c.stores.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, err
		}
		sample.Add(&d)
		strays = strays || !planner.InLine(&d, now)
	}
	p, err := c.planOfSample(ctx, planner, sample, a)
	if err != nil {
		return nil, err
	}
	p.Planner = schedule.PlannerName(planner)
	if strays { // first, so that a process that dies here does so again when it is restarted
		next, err := schedule.ReplacePlan(planner, p)
		if err != nil {
			return nil, err
		}
		if err := c.repairPriorities(ctx, next, now); err != nil {
			return nil, err
		}
	}
	text, err := p.Encode()
	if err != nil {
		return nil, err
	}
	if err := c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(planMark, text)}); err != nil {
		return nil, err
	}
	if err := c.setPlan(p); err != nil {
		return nil, err
	}
	used, _ := a.usedPerDay(c.opts.Now())
	out := p.Outlook
	if out == nil {
		out = &schedule.Outlook{}
	}
	c.opts.Logger.Info("recrawl: a plan was made", "pages", out.Pages, "fresh", roundShare(out.Freshness), "fresh_weighted", roundShare(out.Weighted),
		"never_visited", out.Never, "overdue", out.Overdue, "budget", math.Round(p.Budget), "used", math.Round(used), "needed", math.Round(p.Needed))
	if e, ok := c.planner().(schedule.Estimator); ok {
		if set, inForce := e.MaxIntervals(); inForce > set {
			c.opts.Logger.Warn("recrawl: the budget is too small to visit each page within the greatest interval", "interval", set, "interval_in_force", inForce.Round(time.Hour))
		}
	}
	for _, n := range out.Noisy {
		c.opts.Logger.Warn("recrawl: nearly every visit finds a change, however soon: the signature may see what no reader does, and TextProfile may not",
			"host", n.Host, "pages", n.Changed, "of", n.Checked, "signature", c.opts.Signature.Name())
	}
	return p, nil
}

// repairPriorities replaces the priorities that are not the schedule's at the time of a plan: those of
// pages that another schedule visited, or that come from another crawl, and those of pages that would
// otherwise wait for longer than the bound. See [schedule.Planner].
func (c *Crawler) repairPriorities(ctx context.Context, planner schedule.Planner, now time.Time) error {
	const chunk = 10_000
	urls := make([]string, 0, chunk)
	flush := func() error {
		err := c.stores.Crawl.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old == nil || planner.InLine(old, now) {
				return old, nil
			}
			d := *old
			d.Priority = planner.Priority(old, old.Priority)
			return &d, nil
		}})
		urls = urls[:0]
		return err
	}
	for d, err := range c.stores.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if planner.InLine(&d, now) {
			continue
		}
		if urls = append(urls, d.URL); len(urls) == chunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// roundShare rounds a share to the digits worth keeping.
func roundShare(share float64) float64 { return math.Round(1000*share) / 1000 }

// planOfSample makes a plan from a sample, with its Outlook.
func (c *Crawler) planOfSample(ctx context.Context, planner schedule.Planner, sample schedule.Sample, a account) (*schedule.Plan, error) {
	var failed error
	o := schedule.PlanOptions{Visits: a.Visits, Outlook: true}
	o.Hosts = c.hostLimits(ctx, &failed)
	o.Signals = c.hostSignals(ctx, &failed)
	if planner.VisitsPerDay() < 0 {
		var err error
		if o.Allowed, err = c.totalCapacity(ctx); err != nil {
			return nil, err
		}
	}
	return sample.Plan(o), failed
}

// hostLimits returns a function that says how many visits a day a host allows: as many as
// its queue, which by domain is that of its domain. It keeps the first error.
func (c *Crawler) hostLimits(ctx context.Context, failed *error) func(host string) float64 {
	known := map[string]float64{}
	return func(host string) float64 {
		n, ok := known[host]
		if !ok {
			queue := host
			if c.opts.Fetch.Politeness.By == hostdb.ByDomain {
				queue = hostdb.ByDomain.HostKey(host)
			}
			h := c.hostOrEmpty(ctx, queue, failed)
			n = c.opts.Fetch.Politeness.PerDay(&h)
			known[host] = n
		}
		return n
	}
}

// hostSignals returns a function that says what the signals of the sitemaps of a host are worth,
// and other signals. It keeps the first error.
func (c *Crawler) hostSignals(ctx context.Context, failed *error) func(host string) (schedule.SignalQuality, bool) {
	return func(host string) (schedule.SignalQuality, bool) {
		h := c.hostOrEmpty(ctx, host, failed)
		return schedule.SignalQuality{Precision: h.Signals.Precision(), Recall: h.Signals.Recall()}, h.Signals.Known()
	}
}

// hostOrEmpty returns a host, one that has only a name if it is not known. It keeps the first
// error.
func (c *Crawler) hostOrEmpty(ctx context.Context, host string, failed *error) hostdb.Host {
	h, err := c.stores.Hosts.Get(ctx, host)
	if err != nil {
		if !errors.Is(err, hostdb.ErrNotFound) && *failed == nil {
			*failed = err
		}
		return hostdb.Host{Name: host}
	}
	return h
}

// totalCapacity is how many visits a day the known hosts allow together, and the threads
// of the fetch.
func (c *Crawler) totalCapacity(ctx context.Context) (float64, error) {
	sum, slow, n := 0.0, 0.0, 0.0
	for h, err := range c.stores.Hosts.Scan(ctx) {
		if err != nil {
			return 0, err
		}
		if c.opts.Fetch.Politeness.By != hostdb.ByHost && h.LastFetch.IsZero() {
			continue // a host that has a robots.txt, and its queue elsewhere
		}
		if h.Elapsed > 0 {
			slow += h.Elapsed.Seconds()
			n++
		}
		sum += c.opts.Fetch.Politeness.PerDay(&h)
	}
	threads := c.opts.Fetch.Threads
	if threads <= 0 {
		threads = 50
	}
	each := 1.0
	if n > 0 {
		each = max(slow/n, 0.01)
	}
	return min(sum, float64(threads)*24*3600/each), nil
}

// ensurePlan makes a plan if there is none that is still valid.
func (c *Crawler) ensurePlan(ctx context.Context) error {
	planner := c.planner()
	if planner == nil {
		return nil
	}
	if p := planner.CurrentPlan(); p != nil && p.For(planner.VisitsPerDay()) {
		a, err := c.readAccount(ctx)
		if err != nil {
			return fmt.Errorf("recrawl: plan: %w", err)
		}
		if age := c.opts.Now().Sub(p.Made); age >= 0 && age < p.Holds() && a.Visits < max(2*p.Visits, 1000) {
			return nil
		}
	}
	_, err := c.Plan(ctx)
	return err
}

// leftMark is the mark that says when a crawl left a schedule that learns: until then
// intervals were learned, and schedule.Default would keep them forever. It is removed
// when the crawl learns again.
const leftMark = "schedule/left"

// scheduleOfUpdate tells a schedule.Default when the crawl switched to it from one that learns.
// The first update that finds an unused plan notes the time.
func (c *Crawler) scheduleOfUpdate(ctx context.Context, s schedule.FetchSchedule) (schedule.FetchSchedule, error) {
	var d schedule.Default
	switch s := s.(type) {
	case schedule.Planner:
		mark, err := c.stores.Crawl.Mark(ctx, leftMark)
		if err == nil && mark != "" {
			err = c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(leftMark, "")})
		}
		return s, err
	case schedule.Default:
		d = s
	case *schedule.Default:
		d = *s
	default:
		return s, nil
	}
	if !d.Since.IsZero() {
		return s, nil
	}
	plan, err := c.stores.Crawl.Mark(ctx, planMark)
	if err != nil || plan == "" {
		return s, err
	}
	mark, err := c.stores.Crawl.Mark(ctx, leftMark)
	if err != nil {
		return s, err
	}
	if d.Since, err = time.Parse(time.RFC3339, mark); err != nil {
		// None yet, or none that can be read. Pages visited this second are among those
		// whose interval was learned.
		d.Since = c.opts.Now().Truncate(time.Second).Add(time.Second).UTC()
		err = c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(leftMark, d.Since.Format(time.RFC3339))})
	}
	return d, err
}
