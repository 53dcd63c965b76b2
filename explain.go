package recrawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// Explanation says why a URL is or is not fetched next.
type Explanation struct {
	// URL is what was asked about, Normal its normal form; Rejected is the error
	// of the rule that keeps it out of the crawl, or nil.
	URL, Normal string
	Rejected    error
	// Record is the record of Normal; nil if there is none.
	Record *crawldb.Datum
	// Now is the time of the answer. Due says whether the record is due then,
	// Leased whether a segment has leased it.
	Now         time.Time
	Due, Leased bool
	// Host is what is known of the host; nil if it was never asked.
	Host *hostdb.Host
	// RobotsKnown says that robots.txt was fetched and is still valid, and counts; if so,
	// RobotsAllowed and RobotsUnavailable hold its answer.
	RobotsKnown, RobotsAllowed, RobotsUnavailable bool
	// Visit is the last visit, if its segment still exists and is fully written; it
	// says where a redirect leads, and which redirect led here.
	Visit *segment.Visit
	// Sitemap is the mark of a sitemap, nil if the record is of a page; SitemapEntry is what
	// sitemaps say of the page, nil if nothing; SignalVerdict says what follows.
	Sitemap       *crawldb.Sitemap
	SitemapEntry  *crawldb.SitemapEntry
	SignalVerdict string
	// Worth explains how a schedule that learns arrived at the interval of the page;
	// nil for other schedules.
	Worth *schedule.Worth
	// Noisy is what the plan says of the host if nearly every visit to its pages finds a
	// change, however soon, which no schedule can follow: see [schedule.NoisyHost]. nil otherwise.
	Noisy *schedule.NoisyHost
	// Fresh is the probability, according to such a schedule, that the copy still matches
	// the page, and Elapsed how long ago it was made; both are zero if there is none.
	Fresh   float64
	Elapsed time.Duration
	// If the budget of a schedule that learns is used up, Spent is when it will again
	// have something left for what is due; otherwise it is zero.
	BudgetSpentUntil time.Time
	// CrawlDelay is the pause that robots.txt asks for.
	CrawlDelay time.Duration
	// HostRule is what Options.Fetch.Politeness.HostRule says about the host.
	HostRule fetch.HostRule
	// Verdict is the answer in one sentence.
	Verdict string

	hostRuleWait string        // why and until when HostRule keeps requests from the host
	early        time.Duration // how much sooner a round of other pages may visit it
}

// Explain says why a URL is or is not fetched next. It makes no request.
func (c *Crawler) Explain(ctx context.Context, url string) (Explanation, error) {
	e := Explanation{URL: url, Normal: url, Now: c.opts.Now()}
	if n, err := c.opts.Rules.Apply(urlfilter.Inject, url); err != nil {
		e.Rejected = err
	} else {
		e.Normal = n
	}
	for _, part := range []func(context.Context, *Explanation) error{c.explainRecord, c.explainHost, c.explainRobots} {
		if err := part(ctx, &e); err != nil {
			return e, fmt.Errorf("recrawl: explain %s: %w", url, err)
		}
	}
	var err error
	if _, e.BudgetSpentUntil, err = c.limitToBudget(ctx, generate.Options{}); err != nil {
		return e, err
	}
	e.Verdict = e.verdict(c.opts.Generate.MinScore)
	return e, nil
}

// explainRecord says what the crawl db has, and what follows from that.
func (c *Crawler) explainRecord(ctx context.Context, e *Explanation) error {
	d, err := c.stores.Crawl.Get(ctx, e.Normal)
	if errors.Is(err, crawldb.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	e.Record = &d
	e.Leased = d.Leased(e.Now)
	e.Due = c.schedule().Due(&d, e.Now)
	if _, indexable := schedule.Horizon(c.schedule()); indexable && c.gathers() {
		e.early = c.earlyVisit(&d).Truncate(time.Second)
	}
	if s, ok := c.schedule().(schedule.Estimator); ok {
		w := s.Explain(&d)
		e.Worth = &w
		e.Fresh, e.Elapsed = s.Fresh(&d, e.Now)
		e.Noisy = s.CurrentPlan().NoisyHost(d.URL)
	}
	if e.Visit, err = c.lastVisit(ctx, &d); err != nil {
		return err
	}
	return c.explainSitemap(ctx, e)
}

// explainHost says what keeps requests from the host, robots.txt aside.
func (c *Crawler) explainHost(ctx context.Context, e *Explanation) error {
	name := c.opts.Fetch.Politeness.By.Key(e.Normal)
	if name == "" {
		return nil
	}
	if rule := c.opts.Fetch.Politeness.HostRule; rule != nil {
		e.HostRule = rule(name)
	}
	h, err := c.stores.Hosts.Get(ctx, name)
	if err == nil {
		e.Host = &h
	} else if !errors.Is(err, hostdb.ErrNotFound) {
		return err
	}
	now := time.Now() // by which rules hold
	if at, why := e.HostRule.Next(h.Spent, now); at.After(now) {
		e.hostRuleWait = fmt.Sprintf("%s: it is asked from %s on", why, at.Format(time.RFC3339))
	}
	return nil
}

// explainRobots says what robots.txt allows, as far as it is known.
func (c *Crawler) explainRobots(ctx context.Context, e *Explanation) error {
	if c.opts.Fetch.Politeness.NoRobots {
		return nil
	}
	rules, known, err := c.robots.Cached(ctx, e.Normal)
	if err != nil || !known {
		return err
	}
	e.RobotsKnown = true
	e.RobotsAllowed, e.RobotsUnavailable, e.CrawlDelay = rules.Allowed(e.Normal), rules.Unavailable, rules.CrawlDelay
	return nil
}

// lastVisit looks for the last visit in the segments that may have made it: the last
// ones begun before it, all that were begun together, and those of the time before.
func (c *Crawler) lastVisit(ctx context.Context, d *crawldb.Datum) (*segment.Visit, error) {
	const digits = "20060102150405"
	if d.LastFetch.IsZero() {
		return nil, nil
	}
	at := d.LastFetch.UTC().Format(digits)
	var last, before []string
	for name, err := range c.stores.Segments.List(ctx) {
		if err != nil {
			return nil, err
		}
		if len(name) < len(digits) || name[:len(digits)] > at {
			continue
		}
		if len(last) > 0 && last[0][:len(digits)] != name[:len(digits)] {
			last, before = nil, last
		}
		last = append(last, name)
	}
	for _, name := range slices.Backward(append(before, last...)) {
		for v, err := range segment.Records[segment.Visit](ctx, c.stores.Segments, name) {
			if errors.Is(err, segment.ErrNotFound) || isDamageOf(err, name) {
				break
			}
			if err != nil {
				return nil, err
			}
			if v.URL == d.URL && v.Time.Equal(d.LastFetch) {
				return &v, nil
			}
		}
	}
	return nil, nil
}

// explainSitemap says what sitemaps have to do with a record.
func (c *Crawler) explainSitemap(ctx context.Context, e *Explanation) error {
	if m, ok := crawldb.SitemapOf(e.Record.Meta); ok {
		e.Sitemap = &m
	}
	entry, ok := crawldb.SitemapEntryOf(e.Record.Meta)
	if !ok {
		return nil
	}
	e.SitemapEntry = &entry
	h, err := c.stores.Hosts.Get(ctx, hostdb.ByHost.Key(e.Record.URL))
	if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
		return err
	}
	l := h.Signals
	e.SignalVerdict = fmt.Sprintf("%d of %d signals of the host were true", l.Hits, l.Hits+l.False)
	if l.Hits+l.False == 0 {
		e.SignalVerdict = "no signal of the host was checked yet"
	}
	switch {
	case !entry.Modified.Add(entry.Span).After(e.Record.LastFetch):
		e.SignalVerdict = "not changed since the last visit; " + e.SignalVerdict
	case l.Trusted():
		e.SignalVerdict = "changed since the last visit, which is believed; " + e.SignalVerdict
	default:
		e.SignalVerdict = "changed since the last visit, which is not believed; " + e.SignalVerdict
	}
	return nil
}

func (e *Explanation) verdict(minScore float32) string {
	d := e.Record
	switch {
	case errors.Is(e.Rejected, urlfilter.ErrRejected):
		return "Never fetched: the rules of the crawl reject it (" + e.Rejected.Error() + ")."
	case e.Rejected != nil:
		return "Never fetched: it is not a URL to crawl (" + e.Rejected.Error() + ")."
	case d == nil:
		return "Not fetched: the crawl has not heard of it; inject it, or wait for a page that links to it."
	case e.HostRule.Closed:
		return "Left alone: the rule for its host says that it is closed."
	case e.Leased:
		return fmt.Sprintf("On its way: segment %s has it until %s.", d.LeasedBy, d.LeasedUntil.Format(time.RFC3339))
	case e.Host != nil && e.Host.Stats.Failures > 0 && e.Host.NextFetch.After(time.Now().Add(time.Hour)):
		return fmt.Sprintf("Not yet: its host has failed %d times in a row, and is left alone until %s.", e.Host.Stats.Failures, e.Host.NextFetch.Format(time.RFC3339))
	case !e.Due && e.RobotsKnown && e.RobotsUnavailable:
		return fmt.Sprintf("Not yet: robots.txt of its host cannot be fetched; until it can, nothing there is visited. The next visit is due at %s.", d.FetchTime.Format(time.RFC3339))
	case !e.Due && e.RobotsKnown && !e.RobotsAllowed:
		return fmt.Sprintf("Not fetched: robots.txt forbids it; the rules are looked at again at %s.", d.FetchTime.Format(time.RFC3339))
	case !e.Due && e.early > 0:
		return fmt.Sprintf("Not yet: the next visit is due at %s, or up to %v sooner in a round of other pages.", d.FetchTime.Format(time.RFC3339), e.early)
	case !e.Due:
		return fmt.Sprintf("Not yet: the next visit is due at %s.", d.FetchTime.Format(time.RFC3339))
	case minScore > 0 && d.Priority < minScore:
		return fmt.Sprintf("Due, but its priority of %g is below %g, the least that is selected.", d.Priority, minScore)
	case e.RobotsKnown && e.RobotsUnavailable:
		return "Due, but robots.txt of its host cannot be fetched; until it can, nothing there is visited."
	case e.RobotsKnown && !e.RobotsAllowed:
		return "Due, but robots.txt forbids it; the next round records that and looks again later."
	case !e.BudgetSpentUntil.IsZero():
		return fmt.Sprintf("Due, but the budget of visits is spent: nothing is selected until %s.", e.BudgetSpentUntil.Format(time.RFC3339))
	case e.hostRuleWait != "":
		return "Due, but " + e.hostRuleWait + "."
	case e.Host != nil && e.Host.NextFetch.After(time.Now()):
		return fmt.Sprintf("Due: the next round fetches it, but its host is left alone until %s.", e.Host.NextFetch.Format(time.RFC3339))
	default:
		return fmt.Sprintf("Due: the next round fetches it, if its priority of %g is among the best.", d.Priority)
	}
}
