package recrawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// A schedule that learns has a plan, which is made from the crawl db before a
// segment is, and kept in a mark of the crawl db. So a segment is handled under one
// plan, however often the process dies, and a plan never exists without the updates
// it was made from. Beside it is the account of the visits.
const (
	planJob    = "schedule/plan"
	accountJob = "schedule/account"
)

// mostBudget is more than any budget, and keeps the account finite.
const mostBudget = 1e15

// account is the tally of the visits of a crawl.
type account struct {
	// Visits counts those of the segments that are done.
	Visits int64
	// Left is how many visits the budget had left at At. Both are zero without a
	// budget that is a limit: visits made without one are not charged to the first.
	Left float64
	At   time.Time
	// Read has the values of Visits at times of the last day: see read.
	Read []reading `json:",omitempty"`
}

// on returns the account at a later time. The budget accrues evenly, and what is
// not used within a day is lost, or within the time in which one visit accrues,
// if that is longer: so a budget of five visits a week yields one every 34 hours.
func (a account) on(now time.Time, budget float64) account {
	most := max(budget, 1)
	switch passed := now.Sub(a.At); {
	case a.At.IsZero(), passed < -24*time.Hour: // then the clock was ahead, and may have been by years
		a.Left = most
	case passed > 0:
		a.Left = min(a.Left+passed.Hours()/24*budget, most)
	}
	a.At = now.UTC()
	return a
}

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
	return c.o.Schedule
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
	switch s := c.o.Schedule.(type) {
	case schedule.Learned:
		c.planned.learned = &s
	case *schedule.Learned:
		l := *s
		c.planned.learned = &l
	case interface {
		NewSample(now time.Time) *schedule.Sample
	}:
		c.o.Logger.Warn("recrawl: no plan is made for a schedule that embeds schedule.Learned, and its Budget is no bound", "schedule", fmt.Sprintf("%T", s))
		return nil
	default:
		return nil
	}
	if b := c.planned.learned.Budget; !(math.Abs(b) <= mostBudget) {
		return fmt.Errorf("Options.Schedule has a Budget of %v visits a day", b)
	}
	p, err := ReadPlan(ctx, c.s.Crawl)
	switch {
	case errors.Is(err, schedule.ErrNotPlan):
		c.o.Logger.Warn("recrawl: the plan of the schedule could not be read, and is made anew", "error", err)
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
	mark, err := crawl.Progress(ctx, planJob)
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
	p, err := c.plan(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("recrawl: plan: %w", err)
	}
	return p, nil
}

func (c *Crawler) plan(ctx context.Context, l *schedule.Learned) (*schedule.Plan, error) {
	a, err := c.account(ctx)
	if err != nil {
		return nil, err
	}
	sample, strays := l.NewSample(c.o.Now()), false
	for d, err := range c.s.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, err
		}
		sample.Add(&d)
		strays = strays || !l.InLine(&d)
	}
	p, o, err := c.planOf(ctx, l, sample, a)
	if err != nil {
		return nil, err
	}
	if strays { // before the plan counts, for who dies in between
		next := *l
		next.Plan = p
		if err := c.line(ctx, next); err != nil {
			return nil, err
		}
	}
	out := sample.Outlook(p, o)
	p.Outlook = &out
	text, err := p.Encode()
	if err != nil {
		return nil, err
	}
	if err := c.s.Crawl.Update(ctx, crawldb.Batch{Job: planJob, Cursor: text}); err != nil {
		return nil, err
	}
	c.follow(p)
	used, _ := a.used(c.o.Now())
	c.o.Logger.Info("recrawl: a plan was made", "pages", out.Pages, "fresh", part(out.Freshness), "important fresh", part(out.Weighted),
		"never visited", out.Never, "overdue", out.Overdue, "budget a day", math.Round(p.Budget), "used", math.Round(used), "needed", math.Round(p.Needed))
	for _, n := range out.Noisy {
		c.o.Logger.Warn("recrawl: nearly every visit finds a change, however soon: the signature may see what no reader does, and TextProfile may not",
			"host", n.Host, "pages", n.Changed, "of", n.Checked, "signature", c.o.Signature.Name())
	}
	return p, nil
}

// line puts pages in the line of the schedule that are not in it, because another
// schedule visited them, or because they come from another crawl.
func (c *Crawler) line(ctx context.Context, l schedule.Learned) error {
	const chunk = 10_000
	urls := make([]string, 0, chunk)
	flush := func() error {
		err := c.s.Crawl.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
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
	for d, err := range c.s.Crawl.Scan(ctx, crawldb.Range{}) {
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

// part rounds a share to the digits worth keeping.
func part(share float64) float64 { return math.Round(1000*share) / 1000 }

// planOf makes a plan from a sample, and returns the options it used, which know all
// hosts of the sample.
func (c *Crawler) planOf(ctx context.Context, l *schedule.Learned, sample *schedule.Sample, a account) (p *schedule.Plan, o schedule.PlanOptions, err error) {
	o.Visits = a.Visits
	var failed error
	o.Hosts = c.capacities(ctx, &failed)
	o.Signals = c.signals(ctx, &failed)
	if l.Budget < 0 {
		if o.Allowed, err = c.capacity(ctx); err != nil {
			return nil, o, err
		}
	}
	p = sample.Plan(o)
	return p, o, failed
}

// capacities returns a function that says how many visits a day a host allows: as many as
// its queue, which by domain is that of its domain. It keeps the first error.
func (c *Crawler) capacities(ctx context.Context, failed *error) func(host string) float64 {
	known := map[string]float64{}
	return func(host string) float64 {
		n, ok := known[host]
		if !ok {
			queue := host
			if c.o.Fetch.By == hostdb.ByDomain {
				queue = hostdb.ByDomain.HostKey(host)
			}
			h := c.knownHost(ctx, queue, failed)
			n = c.o.Fetch.PerDay(&h)
			known[host] = n
		}
		return n
	}
}

// signals returns a function that says what the claims of the sitemaps of a host are worth,
// and other signs. It keeps the first error.
func (c *Crawler) signals(ctx context.Context, failed *error) func(host string) (schedule.Signals, bool) {
	return func(host string) (schedule.Signals, bool) {
		h := c.knownHost(ctx, host, failed)
		return schedule.Signals{Precision: h.Lastmod.Precision(), Recall: h.Lastmod.Recall()}, h.Lastmod.Known()
	}
}

// knownHost returns a host, one that has only a name if it is not known. It keeps the first
// error.
func (c *Crawler) knownHost(ctx context.Context, host string, failed *error) hostdb.Host {
	h, err := c.s.Hosts.Get(ctx, host)
	if err != nil {
		if !errors.Is(err, hostdb.ErrNotFound) && *failed == nil {
			*failed = err
		}
		return hostdb.Host{Name: host}
	}
	return h
}

// capacity is how many visits a day the known hosts allow together, and the threads
// of the fetch.
func (c *Crawler) capacity(ctx context.Context) (float64, error) {
	sum, slow, n := 0.0, 0.0, 0.0
	for h, err := range c.s.Hosts.Scan(ctx) {
		if err != nil {
			return 0, err
		}
		if c.o.Fetch.By != hostdb.ByHost && h.LastFetch.IsZero() {
			continue // a host that has a robots.txt, and its queue elsewhere
		}
		if h.Elapsed > 0 {
			slow += h.Elapsed.Seconds()
			n++
		}
		sum += c.o.Fetch.PerDay(&h)
	}
	threads := c.o.Fetch.Threads
	if threads <= 0 {
		threads = 50
	}
	each := 1.0
	if n > 0 {
		each = max(slow/n, 0.01)
	}
	return min(sum, float64(threads)*24*3600/each), nil
}

// replan makes a plan if there is none that is still valid.
func (c *Crawler) replan(ctx context.Context) error {
	l := c.learned()
	if l == nil {
		return nil
	}
	if p := l.Plan; p != nil && p.For(l.Budget) {
		a, err := c.account(ctx)
		if err != nil {
			return fmt.Errorf("recrawl: plan: %w", err)
		}
		const day = 24 * time.Hour
		age, holds := c.o.Now().Sub(p.Made), max(time.Minute, min(p.Made.Sub(p.Begun), day))
		if age >= 0 && age < holds && a.Visits < max(2*p.Visits, 1000) {
			return nil
		}
	}
	_, err := c.Plan(ctx)
	return err
}

// account reads the tally of the visits. If it cannot be read, counting starts
// over.
func (c *Crawler) account(ctx context.Context) (a account, err error) {
	mark, err := c.s.Crawl.Progress(ctx, accountJob)
	if err != nil || mark == "" {
		return a, err
	}
	if e := json.Unmarshal([]byte(mark), &a); e != nil {
		c.o.Logger.Warn("recrawl: the account of the visits could not be read, and begins anew", "error", e)
		a = account{}
	}
	return a, nil
}

// within limits a selection to what the budget has left, if it is a limit. If that
// is less than an hour's worth, nothing is selected until there is as much.
func (c *Crawler) within(ctx context.Context, o generate.Options) (_ generate.Options, until time.Time, err error) {
	l := c.learned()
	if l == nil || !(l.Budget > 0) {
		return o, until, nil
	}
	a, err := c.account(ctx)
	if err != nil {
		return o, until, fmt.Errorf("recrawl: %w", err)
	}
	now := c.o.Now()
	a = a.on(now, l.Budget)
	if least := max(1, l.Budget/24); a.Left < least {
		const longest = 100 * 365 // days: a Duration has an end
		days := min((least-a.Left)/l.Budget, longest)
		return o, now.Add(time.Duration(days * 24 * float64(time.Hour))).Truncate(time.Second).Add(time.Second), nil
	}
	left := int(min(a.Left, 1<<40, math.MaxInt))
	if o.TopN <= 0 || o.TopN > left { // without a limit of its own, too
		o.TopN = left
	}
	if o.Segments > 1 {
		o.Segments = max(1, min(o.Segments, left/o.TopN))
	}
	return o, until, nil
}

// done marks a segment as done, and in the same step counts its visits, once. If two are
// done at the same time, by Finish or a round, they are counted one after the other.
func (c *Crawler) done(ctx context.Context, name string) error {
	marks := c.forgotten(ctx, name)
	if l := c.learned(); l != nil {
		if err := c.counting.take(ctx); err != nil {
			return err
		}
		defer c.counting.give()
		was, err := c.roundOf(ctx, name)
		if err != nil || was.Done {
			return err
		}
		if marks[accountJob], err = c.charge(ctx, name, l.Budget); err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
	}
	err := c.s.Crawl.Update(ctx, crawldb.Batch{Job: segment.RoundJob(name), Cursor: segment.Round{Done: true}.String(), Marks: func() map[string]string { return marks }})
	if err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	return nil
}

// charge returns the account with the visits of a segment, as its mark.
func (c *Crawler) charge(ctx context.Context, name string, budget float64) (mark string, err error) {
	a, err := c.account(ctx)
	if err != nil {
		return "", err
	}
	a = a.on(c.o.Now(), max(budget, 0))
	before, began := a.Visits, time.Time{}
	for v, err := range segment.Records[segment.Visit](ctx, c.s.Segments, name) {
		if errors.Is(err, segment.ErrNotFound) {
			break
		}
		if err != nil {
			return "", err
		}
		if v.Outcome.Code.Asked() {
			a.Visits++
			a.Left--
			if began.IsZero() || v.Time.Before(began) {
				began = v.Time
			}
		}
	}
	a.read(began, before)
	if !(budget > 0) {
		a.Left, a.At = 0, time.Time{}
	}
	text, err := json.Marshal(a)
	return string(text), err
}

// Signal says that a page changed at the given time, or now if that is zero:
// somebody has heard so from a feed, a sitemap, or the page's author. A schedule
// that learns has the page visited sooner, by as much as such signs of its host have
// proved true, those of its sitemaps included; any other makes it due at once if
// they mostly have. What the resulting visit finds is counted. For a page without a
// record the error matches crawldb.ErrNotFound, for a URL that does not belong to the
// crawl urlfilter.ErrRejected or ErrInvalid. A signal is durable once a round has
// ended after it, or Stores.Crawl was synced.
func (c *Crawler) Signal(ctx context.Context, url string, at time.Time) error {
	fail := func(err error) error { return fmt.Errorf("recrawl: signal %s: %w", url, err) }
	normal, err := c.o.Rules.Apply(urlfilter.Inject, url)
	if err != nil {
		return fail(err)
	}
	h, err := c.s.Hosts.Get(ctx, hostdb.ByHost.Key(normal))
	if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
		return fail(err)
	}
	o := c.updateOptions()
	if now := o.Now(); at.IsZero() || at.After(now) {
		at = now
	}
	found := false
	err = c.s.Crawl.Update(ctx, crawldb.Batch{URLs: []string{normal}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
		if found = old != nil; !found {
			return nil, nil
		}
		return update.Signal(old, at, h.Lastmod, o), nil
	}})
	if err == nil && !found {
		err = crawldb.ErrNotFound
	}
	if err != nil {
		return fail(err)
	}
	c.wake()
	return nil
}
