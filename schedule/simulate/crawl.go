package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/update"
)

// Policy is one way to spend a budget of fetches.
type Policy struct {
	Name string
	// Schedule says when a page is due. It may be nil if Plan or Allocation is not.
	Schedule schedule.FetchSchedule
	// Order says which of the pages that are due are fetched first.
	Order Order
	// Plan, if not nil, makes a new schedule from the last one, at the beginning and every
	// PlanEvery. Zero means every day at first, as a recrawl.Crawler does, and later up to
	// every five days, when a plan is much like the last one.
	Plan      func(old schedule.FetchSchedule, known PlanInput) (schedule.FetchSchedule, error)
	PlanEvery time.Duration
	// Allocation, if not nil, knows the true rates of change, and gives each page its own
	// interval, which the page keeps until others appear or are gone forever; then all get
	// new ones, once a month. No crawl can know that: it is what others are measured by.
	Allocation Allocation
	// Signals means that a policy that knows the rates also knows what signs of changes are
	// worth ([CrawlOptions].Signals): Allocation is then the optimum with signs.
	Signals bool
	// NutchCompat makes of each record what Nutch's updatedb would. The schedule has a
	// field of that name too.
	NutchCompat bool
}

// PlanInput is what a crawl knows of itself.
type PlanInput struct {
	Now     time.Time
	Records []crawldb.Datum // of the pages that have appeared so far; not to be changed
	Visits  int64           // since the beginning
	PerDay  float64         // the budget
	// Signals returns what signs of changes have proved to be worth for a host; ok is false
	// if that is unknown.
	Signals func(host string) (s schedule.SignalQuality, ok bool)
}

// Order is an order of the pages that are due.
type Order int

const (
	ByPriority  Order = iota // the priority of the record, as generate does; equal ones as they come
	OldestFirst              // those that have been due for longest
	AtRandom                 // anew at every cycle
	ByValue                  // what a visit is worth now, given the true rate: for policies that know it
)

// CrawlOptions describe a crawl of a population. The zero value is three years of 360 days
// without a budget; the last two years count.
type CrawlOptions struct {
	// Start is when it begins; zero means 1 January 2026 or, if there are histories,
	// their first event.
	Start time.Time
	// Duration is how long it takes, at most 146 years; zero means 1080 days or, if there are
	// histories with events at more than one time, until their last event.
	Duration time.Duration
	// Measure is the time from which on results count; zero means a third of Duration,
	// negative from the beginning. The time before that is reported separately.
	Measure time.Duration
	// Cycle is how often the crawler looks for what is due; zero means six hours.
	Cycle time.Duration
	// PerDay is the budget of fetches a day; zero means no limit. Each cycle has its
	// exact share, and loses what it does not use.
	PerDay float64
	// Cold begins with records that were never fetched, all due at once. Otherwise the
	// pages that exist at the beginning have just been fetched, and are due at times spread
	// over their first interval, or 30 days, as in a crawl that has run for a while. Nothing
	// is known of their rates in either case.
	Cold bool
	// LastModified makes servers say when the content last changed. Conditional makes them
	// answer "not modified" to a visit that knows the content.
	LastModified, Conditional bool
	// ShiftBy multiplies the rates of pages that change at random, from the time ShiftAfter
	// the beginning on. Zero means 1.
	ShiftAfter time.Duration
	ShiftBy    float64
	// Signals are signs of changes. Each applies to its own share of the hosts; the other
	// hosts have no signs.
	Signals []Signals
	// Seed determines the moments of random changes and of signs.
	Seed uint64
	// Points is the number of points in time of the course, at most one per cycle; zero
	// means 108.
	Points int
	// Update has the rules for records. Its Schedule, Now and NutchCompat are ignored.
	Update update.Options
}

// Outcome is the result of a policy. Figures are means over the measured time and all
// pages; figures called Weighted are means by importance.
//
// For a page that changes at random, freshness is the expectation given the times of
// fetches, not that of one course of events: chance affects only what the visits find.
type Outcome struct {
	Policy string
	// Freshness is the share of the time for which copies matched the pages. A page not
	// fetched yet has no fresh copy. Time during which a page is gone and known to be
	// gone does not count.
	Freshness, Weighted float64
	// Age is for how long copies were out of date.
	Age, WeightedAge time.Duration
	// Fetches counts the visits. Every is the mean time between two visits to a page, from
	// when it appeared.
	Fetches int
	Every   time.Duration
	// Starved is the share of pages without a visit in the measured time; pages that were
	// gone, or that appeared later, do not count.
	Starved float64
	// Longest is the longest time for which a page that answered at its last visit went unvisited,
	// or a page that had appeared waited for its first visit, up to a visit in the measured time or
	// the end.
	Longest time.Duration
	// Backlog is the mean number of pages that were due in a cycle and left for the next.
	Backlog float64
	// First is Weighted for the time before Measure.
	First float64
	// Timeline is the development over time, Pages what happened to each page.
	Timeline []TimelinePoint
	Pages    []PageOutcome
	// Records are the records of the pages at the end.
	Records []crawldb.Datum
}

// TimelinePoint is a mean over a part of the time.
type TimelinePoint struct {
	From, To            time.Time
	Freshness, Weighted float64
	Fetches             int
}

// PageOutcome is what happened to one page in the measured time.
type PageOutcome struct {
	PerDay, Weight float64
	Visits         int
	Freshness      float64
	// Every is the measured time divided by the visits; zero if there were
	// none.
	Every time.Duration
}

// Crawl crawls a population by a policy. It runs the code of a crawl: the schedule says
// what is due, and update.Next applies each visit to the record, as in a crawl db.
// Cancelling ctx ends it with an error. It changes none of its arguments.
func Crawl(ctx context.Context, pages Population, p Policy, o CrawlOptions) (Outcome, error) {
	c, err := newCrawl(pages, p, o)
	if err != nil {
		return Outcome{}, fmt.Errorf("simulate: %s: %w", p.Name, err)
	}
	for cycle := range c.cycles {
		if err := ctx.Err(); err != nil {
			return Outcome{}, fmt.Errorf("simulate: %s: %w", p.Name, err)
		}
		if err := c.round(cycle); err != nil {
			return Outcome{}, fmt.Errorf("simulate: %s: %w", p.Name, err)
		}
	}
	return c.outcome(), nil
}

func (o CrawlOptions) withDefaults(pages Population) (CrawlOptions, error) {
	var first, last time.Time
	for i := range pages {
		e := pages[i].Events
		if at := pages[i].Until; at.After(last) {
			last = at
		}
		if pages[i].PerDay > 0 || len(e) == 0 {
			continue
		}
		if at := e[0].Time; first.IsZero() || at.Before(first) {
			first = at
		}
		if at := e[len(e)-1].Time; at.After(last) {
			last = at
		}
	}
	if o.Start.IsZero() {
		if o.Start = first; first.IsZero() {
			o.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		}
	}
	if o.Duration <= 0 {
		if o.Duration = 1080 * 24 * time.Hour; last.After(o.Start) {
			o.Duration = last.Sub(o.Start)
		}
	}
	if o.Cycle <= 0 {
		o.Cycle = 6 * time.Hour
	}
	switch {
	case o.Measure == 0:
		o.Measure = (o.Duration / 3).Truncate(o.Cycle)
	case o.Measure < 0:
		o.Measure = 0
	}
	if o.ShiftBy == 0 {
		o.ShiftBy = 1
	}
	if o.Points <= 0 {
		o.Points = 108
	}
	switch {
	case len(pages) == 0:
		return o, errors.New("the population has no pages")
	case o.Duration > longest:
		return o, fmt.Errorf("more than %d years from %s on: is a date misspelled?", longest/(365*24*time.Hour), o.Start.UTC().Format(time.DateOnly))
	case o.Duration < o.Cycle || o.Duration/o.Cycle > 10_000_000:
		return o, fmt.Errorf("a duration of %v in cycles of %v", o.Duration, o.Cycle)
	case o.Measure >= o.Duration:
		return o, fmt.Errorf("nothing is left to measure after %v of %v", o.Measure, o.Duration)
	case !(o.PerDay >= 0) || math.IsInf(o.PerDay, 0):
		return o, fmt.Errorf("a budget of %v fetches a day", o.PerDay)
	case !(o.ShiftBy > 0):
		return o, fmt.Errorf("rates multiplied by %v", o.ShiftBy)
	}
	o.Points = min(o.Points, int(o.Duration/o.Cycle))
	for _, s := range o.Signals {
		if err := s.check(); err != nil {
			return o, err
		}
	}
	return o, nil
}

// crawl is a crawl in progress. The crawler counts time in cycles, and measurements are in
// days.
type crawl struct {
	o       CrawlOptions
	p       Policy
	s       schedule.FetchSchedule
	ahead   time.Duration // see schedule.Horizon
	indexed bool
	cycles  int
	at      time.Time // of the cycle
	pages   []subject
	records []crawldb.Datum
	wheel   [][]int32 // by cycle, the pages that may be due
	ready   ready
	carry   float64
	nextPlan,
	measure int // cycles
	visits    int64
	fetches   int
	backlog   float64
	longest   time.Duration
	meter     meter
	intervals []time.Duration // set by an allocation
	weights   []float64       // known to it
	rates     []float64
	worths    []*signalWorth
	among     []int32    // the pages of the allocation
	signs     *signaller // nil if there are none
	again     int        // pages that are in ready twice
}

func newCrawl(pages Population, p Policy, o CrawlOptions) (*crawl, error) {
	o, err := o.withDefaults(pages)
	if err != nil {
		return nil, err
	}
	c := &crawl{o: o, p: p, s: p.Schedule, at: o.Start}
	c.cycles = int((o.Duration + o.Cycle - 1) / o.Cycle)
	c.measure = int((o.Measure + o.Cycle - 1) / o.Cycle)
	c.o.Update.NutchCompat = p.NutchCompat
	c.o.Update.Now = func() time.Time { return c.at }
	c.meter = newMeter(float64(c.cycles)*days(o.Cycle), float64(c.measure)*days(o.Cycle), o.Points)
	c.wheel = make([][]int32, c.cycles)
	c.records = make([]crawldb.Datum, len(pages))
	c.pages = make([]subject, len(pages))
	end := o.Start.Add(o.Duration)
	for i := range pages {
		s := &c.pages[i]
		*s = subject{Subject: &pages[i], number: i, o: &c.o, rateOf: pages[i].rate(o.Start, end)}
		c.records[i] = crawldb.Datum{URL: s.URL, Status: crawldb.Unfetched, Score: float32(s.Weight)}
		c.signed(s)
		born := 0
		if s.PerDay <= 0 && len(s.Events) > 0 && s.Events[0].Kind == Appears {
			born = max(0, int((min(s.Events[0].Time.Sub(o.Start), o.Duration)+o.Cycle-1)/o.Cycle))
		}
		s.born, s.slot = born, born
		s.since = float64(born) * days(o.Cycle)
		s.bucket = c.meter.bucket(s.since)
		if born < c.cycles {
			c.wheel[born] = append(c.wheel[born], int32(i))
		}
	}
	if p.Allocation != nil {
		if o.PerDay == 0 {
			return nil, errors.New("an allocation of an unbounded budget")
		}
		c.weights, c.rates = pages.known(o.Start, end)
		if p.Signals {
			c.worths = c.worth()
		}
		c.intervals = make([]time.Duration, len(pages))
		c.s = schedule.Default{MaxInterval: math.MaxInt64}
		c.allocate(0)
	}
	if err := c.plan(); err != nil {
		return nil, err
	}
	if c.s == nil {
		return nil, errors.New("no schedule")
	}
	return c, nil
}

// allocateEvery is how often an allocation is renewed if the pages have changed.
const allocateEvery = 30 * 24 * time.Hour

// allocate gives the existing pages the intervals of the allocation. Pages that were seen to be
// gone forever get none.
func (c *crawl) allocate(cycle int) {
	var among []int32
	var weights, perDay []float64
	var worths []*signalWorth
	for i := range c.pages {
		s := &c.pages[i]
		if s.born > cycle || s.fetched && !s.was && !s.random() && s.seen == len(s.Events) {
			continue
		}
		among = append(among, int32(i))
		weights, perDay = append(weights, c.weights[i]), append(perDay, c.rates[i])
		if c.p.Signals {
			worths = append(worths, c.worths[i])
		}
	}
	if slices.Equal(among, c.among) {
		return
	}
	c.among = among
	var every []float64
	if c.p.Signals {
		every, _ = optimalSignals(weights, perDay, worths, c.o.PerDay)
	} else {
		for _, f := range c.p.Allocation(weights, perDay, c.o.PerDay) {
			every = append(every, 1/f)
		}
	}
	for k, i := range among {
		// A visit comes at the end of a cycle, on average half a cycle late.
		c.intervals[i] = max(inDays(every[k])-c.o.Cycle/2, c.o.Cycle/2)
		s, d := &c.pages[i], &c.records[i]
		if !s.begun || !s.was || s.queued || schedule.SignalsOf(d) > 0 {
			continue
		}
		d.Interval = c.intervals[i]
		d.FetchTime = d.LastFetch.Add(d.Interval)
		c.wait(int(i), cycle)
	}
}

// plan takes the schedule from the policy.
func (c *crawl) plan() error {
	if c.p.Plan != nil {
		s, err := c.p.Plan(c.s, PlanInput{c.at, c.known(), c.visits, c.o.PerDay, c.signalsOf})
		if err != nil {
			return err
		}
		every := c.p.PlanEvery
		if every <= 0 {
			const day = 24 * time.Hour
			every = max(day, min(c.at.Sub(c.o.Start)/20, 5*day))
			if e, ok := s.(schedule.Estimator); ok { // so that pages are owed a visit in time
				most, _ := e.MaxIntervals()
				every = max(day, min(every, most/30))
			}
		}
		c.s = s
		c.nextPlan += max(1, int(every/c.o.Cycle))
	}
	c.o.Update.Schedule = c.s
	c.ahead, c.indexed = schedule.Horizon(c.s)
	if planner, ok := c.s.(schedule.Planner); ok {
		c.repairPriorities(planner)
	}
	return nil
}

// repairPriorities does what a recrawl.Crawler does behind a new plan.
func (c *crawl) repairPriorities(planner schedule.Planner) {
	for i := range c.pages {
		s, d := &c.pages[i], &c.records[i]
		if !s.begun || planner.InLine(d, c.at) {
			continue
		}
		if d.Priority = planner.Priority(d, d.Score); s.queued {
			c.ready.push(i, c.key(d))
			c.again++
		}
	}
}

// known returns the records of the pages that have appeared: no crawl can plan for others.
func (c *crawl) known() []crawldb.Datum {
	cycle := int(c.at.Sub(c.o.Start) / c.o.Cycle)
	unborn := func(s subject) bool { return s.born > cycle }
	if !slices.ContainsFunc(c.pages, unborn) {
		return c.records
	}
	var some []crawldb.Datum
	for i := range c.pages {
		if !unborn(c.pages[i]) {
			some = append(some, c.records[i])
		}
	}
	return some
}

// round is one cycle.
func (c *crawl) round(cycle int) error {
	c.at = c.o.Start.Add(time.Duration(cycle) * c.o.Cycle)
	if c.p.Plan != nil && cycle >= c.nextPlan {
		if err := c.plan(); err != nil {
			return err
		}
	}
	if c.intervals != nil && cycle > 0 && cycle%max(1, int(allocateEvery/c.o.Cycle)) == 0 {
		c.allocate(cycle)
	}
	c.signalled(cycle)
	for _, i := range c.wheel[cycle] {
		s, d := &c.pages[i], &c.records[i]
		switch {
		case s.slot != cycle || s.queued: // a sign has moved it
		case !s.begun:
			c.begin(s, d, cycle)
		case !c.s.Due(d, c.at):
			c.wait(int(i), cycle)
		default:
			s.queued = true
			c.ready.push(int(i), c.key(d))
		}
	}
	c.wheel[cycle] = nil
	allowed := math.MaxInt
	if c.o.PerDay > 0 {
		c.carry += c.o.PerDay * days(c.o.Cycle)
		allowed = int(c.carry + 1e-9)
		c.carry -= float64(allowed)
	}
	switch c.p.Order {
	case ByValue:
		now := float64(cycle) * days(c.o.Cycle)
		c.ready.sort(func(i int) float64 { return -c.pages[i].value(now) })
	case AtRandom:
		c.ready.sort(func(i int) float64 { return c.pages[i].chance(math.MaxUint64 - uint64(cycle)) })
	}
	for ; allowed > 0 && c.ready.len() > 0; allowed-- {
		i := c.ready.pop()
		if !c.pages[i].queued { // it was ready twice
			c.again--
			allowed++
			continue
		}
		c.pages[i].queued = false
		c.visit(&c.pages[i], &c.records[i], cycle)
		c.wait(i, cycle)
	}
	if cycle >= c.measure {
		c.backlog += float64(c.ready.len() - c.again)
	}
	c.counted(cycle)
	return nil
}

// begin makes a page known.
func (c *crawl) begin(s *subject, d *crawldb.Datum, cycle int) {
	s.begun = true
	if c.intervals != nil {
		d.Interval = c.intervals[s.number]
	}
	*d = c.s.Init(*d, c.at)
	if s.signs != nil && !c.p.NutchCompat { // as from a sitemap
		crawldb.SitemapEntry{Modified: c.at, Span: time.Second}.Set(&d.Meta)
	}
	d.Priority = schedule.Priority(c.s, d, d.Score)
	if c.o.Cold || cycle > 0 || !s.there(c.at) {
		if c.s.Due(d, c.at) {
			s.queued = true
			c.ready.push(s.number, c.key(d))
			return
		}
		c.wait(s.number, cycle)
		return
	}
	c.look(s, d, cycle)
	if gap := min(d.FetchTime.Sub(c.at), 30*24*time.Hour); gap > 0 {
		d.FetchTime = c.at.Add(time.Duration(s.chance(math.MaxUint32)*float64(gap)).Truncate(time.Second) + time.Second)
	}
	c.wait(s.number, cycle)
}

// wait puts a page into the cycle in which it is looked at again: when it is due, or the
// next one if only the schedule can say.
func (c *crawl) wait(i, cycle int) {
	next := cycle + 1
	if wait := min(c.records[i].FetchTime.Sub(c.at), c.o.Duration); c.indexed && wait > c.o.Cycle && !(c.ahead > 0 && wait > c.ahead) {
		next = cycle + int((wait+c.o.Cycle-1)/c.o.Cycle)
	}
	c.pages[i].slot = next
	if next < c.cycles {
		c.wheel[next] = append(c.wheel[next], int32(i))
	}
}

// key orders the due pages, the least first, unless the order changes with every cycle.
func (c *crawl) key(d *crawldb.Datum) float64 {
	if c.p.Order == OldestFirst {
		return float64(d.FetchTime.UnixMilli())
	}
	return -float64(d.Priority)
}

// visit visits a page within the budget.
func (c *crawl) visit(s *subject, d *crawldb.Datum, cycle int) {
	now := float64(cycle) * days(c.o.Cycle)
	c.meter.credit(s, now)
	if cycle >= c.measure {
		c.longest = max(c.longest, c.alone(s, d, c.at))
	}
	c.look(s, d, cycle)
	s.visits++
	c.visits++
	if cycle >= c.measure {
		s.counted++
		c.fetches++
	}
	c.meter.visits[s.bucket]++
}

// alone returns for how long a page has gone unvisited; zero if it was gone at the last visit.
func (c *crawl) alone(s *subject, d *crawldb.Datum, at time.Time) time.Duration {
	switch {
	case !s.fetched:
		return at.Sub(c.o.Start.Add(time.Duration(s.born) * c.o.Cycle))
	case !s.was:
		return 0
	}
	return at.Sub(d.LastFetch)
}

// look applies a visit to a record, as a crawl would.
func (c *crawl) look(s *subject, d *crawldb.Datum, cycle int) {
	now := float64(cycle) * days(c.o.Cycle)
	listed := schedule.Selected(c.s, *d, c.at)
	found := s.look(c.at, now)
	in := update.Input{URL: s.URL, Segment: segmentName, Listed: &listed}
	in.Visit, in.Parse = found.answer(s.URL, s.ContentType, c.at, &listed, c.o.LastModified, c.o.Conditional)
	before := *d
	*d = *update.Next(&before, in, c.o.Update)
	if s.signs != nil && found.there {
		c.checked(s, &listed, d.Status != crawldb.NotModified && string(listed.Signature) != string(d.Signature))
	}
}

func (c *crawl) outcome() Outcome {
	span := float64(c.cycles) * days(c.o.Cycle)
	counted := time.Duration(c.cycles-c.measure) * c.o.Cycle
	end := c.o.Start.Add(time.Duration(c.cycles) * c.o.Cycle)
	out := Outcome{Policy: c.p.Name, Fetches: c.fetches, Longest: c.longest, Records: c.records, Backlog: c.backlog / float64(c.cycles-c.measure)}
	starved, living, lived := 0, 0, 0.0
	for i := range c.pages {
		s := &c.pages[i]
		lived += float64(max(0, c.cycles-max(s.born, c.measure))) * days(c.o.Cycle)
		if s.begun {
			c.meter.credit(s, span)
		}
		if s.born <= c.measure && s.there(end) {
			living++
			if s.counted == 0 {
				starved++
			}
		}
		if s.begun && s.there(end) {
			out.Longest = max(out.Longest, c.alone(s, &c.records[i], end))
		}
		f := PageOutcome{PerDay: s.rateOf, Weight: s.Weight, Visits: s.counted}
		if s.counted > 0 {
			f.Every = counted / time.Duration(s.counted)
		}
		if s.time > 0 {
			f.Freshness = s.fresh / s.time
		}
		out.Pages = append(out.Pages, f)
	}
	if living > 0 {
		out.Starved = float64(starved) / float64(living)
	}
	if c.fetches > 0 {
		out.Every = inDays(lived / float64(c.fetches))
	}
	c.meter.fill(&out, c.o.Start)
	return out
}
