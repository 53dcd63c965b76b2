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
const planJob = "schedule/plan"

// planned is the schedule of a crawler that has a plan.
type planned struct {
	mu      sync.Mutex
	learned *schedule.Learned // nil if the schedule is another; replaced, never changed
}

// schedule returns the schedule in force.
func (c *Crawler) schedule() schedule.FetchSchedule {
	if l := c.learned(); l != nil {
		return *l
	}
	return c.opts.Schedule
}

func (c *Crawler) learned() *schedule.Learned {
	c.planned.mu.Lock()
	defer c.planned.mu.Unlock()
	return c.planned.learned
}

func (c *Crawler) follow(p *schedule.Plan) {
	c.planned.mu.Lock()
	defer c.planned.mu.Unlock()
	l := *c.planned.learned
	l.Plan = p
	c.planned.learned = &l
}

// openPlan loads the latest plan. One that cannot be read is made anew.
func (c *Crawler) openPlan(ctx context.Context) error {
	switch s := c.opts.Schedule.(type) {
	case schedule.Learned:
		c.planned.learned = &s
	case *schedule.Learned:
		l := *s
		c.planned.learned = &l
	case interface {
		NewSample(now time.Time) *schedule.Sample
	}:
		c.opts.Logger.Warn("recrawl: no plan is made for a schedule that embeds schedule.Learned, and its Budget is no bound", "schedule", fmt.Sprintf("%T", s))
		return nil
	default:
		return nil
	}
	if b := c.planned.learned.Budget; !(math.Abs(b) <= mostBudget) {
		return fmt.Errorf("Options.Schedule has a Budget of %v visits a day", b)
	}
	p, err := ReadPlan(ctx, c.stores.Crawl)
	switch {
	case errors.Is(err, schedule.ErrNotPlan):
		c.opts.Logger.Warn("recrawl: the plan of the schedule could not be read, and is made anew", "error", err)
	case err != nil:
		return err
	case p != nil:
		c.follow(p)
	}
	return nil
}

// ReadPlan returns the latest plan made for the schedule of a crawl, nil if the crawl db has
// none. If it cannot be read, the error matches [schedule.ErrNotPlan]; a Crawler that needs a
// plan then makes another.
func ReadPlan(ctx context.Context, crawl crawldb.Store) (*schedule.Plan, error) {
	mark, err := crawl.Mark(ctx, planJob)
	if err != nil || mark == "" {
		return nil, err
	}
	p, err := schedule.DecodePlan(mark)
	if err != nil {
		return nil, fmt.Errorf("recrawl: mark %s: %w", planJob, err)
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
	l := c.learned()
	if l == nil {
		return nil, nil
	}
	p, err := c.makePlan(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("recrawl: plan: %w", err)
	}
	return p, nil
}

func (c *Crawler) makePlan(ctx context.Context, l *schedule.Learned) (*schedule.Plan, error) {
	a, err := c.readAccount(ctx)
	if err != nil {
		return nil, err
	}
	sample, strays := l.NewSample(c.opts.Now()), false
	for d, err := range c.stores.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, err
		}
		sample.Add(&d)
		strays = strays || !l.InLine(&d)
	}
	p, o, err := c.planOfSample(ctx, l, sample, a)
	if err != nil {
		return nil, err
	}
	if strays { // before the plan counts, for who dies in between
		next := *l
		next.Plan = p
		if err := c.repairPriorities(ctx, next); err != nil {
			return nil, err
		}
	}
	out := sample.Outlook(p, o)
	p.Outlook = &out
	text, err := p.Encode()
	if err != nil {
		return nil, err
	}
	if err := c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(planJob, text)}); err != nil {
		return nil, err
	}
	c.follow(p)
	used, _ := a.usedPerDay(c.opts.Now())
	c.opts.Logger.Info("recrawl: a plan was made", "pages", out.Pages, "fresh", roundShare(out.Freshness), "important fresh", roundShare(out.Weighted),
		"never visited", out.Never, "overdue", out.Overdue, "budget a day", math.Round(p.Budget), "used", math.Round(used), "needed", math.Round(p.Needed))
	for _, n := range out.Noisy {
		c.opts.Logger.Warn("recrawl: nearly every visit finds a change, however soon: the signature may see what no reader does, and TextProfile may not",
			"host", n.Host, "pages", n.Changed, "of", n.Checked, "signature", c.opts.Signature.Name())
	}
	return p, nil
}

// repairPriorities puts pages in the line of the schedule that are not in it, because another
// schedule visited them, or because they come from another crawl.
func (c *Crawler) repairPriorities(ctx context.Context, l schedule.Learned) error {
	const chunk = 10_000
	urls := make([]string, 0, chunk)
	flush := func() error {
		err := c.stores.Crawl.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old == nil || l.InLine(old) {
				return old, nil
			}
			d := *old
			d.Priority = l.Priority(old, old.Priority)
			return &d, nil
		}})
		urls = urls[:0]
		return err
	}
	for d, err := range c.stores.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if l.InLine(&d) {
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

// planOfSample makes a plan from a sample, and returns the options it used, which know all
// hosts of the sample.
func (c *Crawler) planOfSample(ctx context.Context, l *schedule.Learned, sample *schedule.Sample, a account) (p *schedule.Plan, o schedule.PlanOptions, err error) {
	o.Visits = a.Visits
	var failed error
	o.Hosts = c.hostLimits(ctx, &failed)
	o.Signals = c.hostSignals(ctx, &failed)
	if l.Budget < 0 {
		if o.Allowed, err = c.totalCapacity(ctx); err != nil {
			return nil, o, err
		}
	}
	p = sample.Plan(o)
	return p, o, failed
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

// hostSignals returns a function that says what the claims of the sitemaps of a host are worth,
// and other signs. It keeps the first error.
func (c *Crawler) hostSignals(ctx context.Context, failed *error) func(host string) (schedule.Signals, bool) {
	return func(host string) (schedule.Signals, bool) {
		h := c.hostOrEmpty(ctx, host, failed)
		return schedule.Signals{Precision: h.Lastmod.Precision(), Recall: h.Lastmod.Recall()}, h.Lastmod.Known()
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
	l := c.learned()
	if l == nil {
		return nil
	}
	if p := l.Plan; p != nil && p.For(l.Budget) {
		a, err := c.readAccount(ctx)
		if err != nil {
			return fmt.Errorf("recrawl: plan: %w", err)
		}
		const day = 24 * time.Hour
		age, holds := c.opts.Now().Sub(p.Made), max(time.Minute, min(p.Made.Sub(p.Begun), day))
		if age >= 0 && age < holds && a.Visits < max(2*p.Visits, 1000) {
			return nil
		}
	}
	_, err := c.Plan(ctx)
	return err
}

// leftJob is the mark that says when a crawl left a schedule that learns: until then
// intervals were learned, and schedule.Default would keep them forever. It is removed
// when the crawl learns again.
const leftJob = "schedule/left"

// scheduleOfUpdate tells a schedule.Default when the crawl switched to it from one that learns.
// The first update that finds an unused plan notes the time.
func (c *Crawler) scheduleOfUpdate(ctx context.Context, s schedule.FetchSchedule) (schedule.FetchSchedule, error) {
	var d schedule.Default
	switch s := s.(type) {
	case schedule.Learned, *schedule.Learned:
		mark, err := c.stores.Crawl.Mark(ctx, leftJob)
		if err == nil && mark != "" {
			err = c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(leftJob, "")})
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
	plan, err := c.stores.Crawl.Mark(ctx, planJob)
	if err != nil || plan == "" {
		return s, err
	}
	mark, err := c.stores.Crawl.Mark(ctx, leftJob)
	if err != nil {
		return s, err
	}
	if d.Since, err = time.Parse(time.RFC3339, mark); err != nil {
		// None yet, or none that can be read. Pages visited this second are among those
		// whose interval was learned.
		d.Since = c.opts.Now().Truncate(time.Second).Add(time.Second).UTC()
		err = c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(leftJob, d.Since.Format(time.RFC3339))})
	}
	return d, err
}
