package recrawl

import (
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// Round works on one segment, from fetch list to events: on the oldest that is
// not done, or else on a new one of what is due. A report with no rounds means
// that nothing is due. A round that is cancelled or fails leaves everything as
// the next one needs it, and returns an error that is ctx.Err() or says what
// failed.
func (c *Crawler) Round(ctx context.Context) (Report, error) {
	done, err := c.lockRounds(ctx)
	if err != nil {
		return Report{}, err
	}
	defer done()
	return c.oneRound(ctx, c.generateOptions(), calledByRound)
}

// lockRounds waits for the turn to make rounds, and returns the function that ends it.
func (c *Crawler) lockRounds(ctx context.Context) (end func(), err error) {
	if err := c.roundMutex.lock(ctx); err != nil {
		return nil, err
	}
	return func() {
		c.status.setStage("", "")
		c.roundMutex.unlock()
	}, nil
}

// roundCaller is why a round is made.
type roundCaller int

const (
	calledByRound    roundCaller = iota // by Round
	calledByRun                         // by Run
	calledBySitemaps                    // beside them, out of no budget
)

func (c *Crawler) oneRound(ctx context.Context, o generate.Options, why roundCaller) (Report, error) {
	began := time.Now()
	c.reload()
	var r Report
	err := c.inStage(ctx, roundStage, "", func(ctx context.Context) (did []any, err error) {
		if err = c.processNext(ctx, o, why, &r); err == nil {
			r.Freshness, err = c.plannedFreshness(ctx)
		}
		if err == nil && r.Rounds > 0 && c.opts.Hooks.Round != nil {
			r.NextDue, err = c.nextDue(ctx)
		}
		if r.Rounds > 0 {
			did = []any{"segment", r.Segments[0], "pages", r.Visited(), "bytes", r.Bytes, "links", r.Links, "events", r.Events}
		}
		return did, err
	})
	r.Elapsed = time.Since(began)
	c.status.addRound(&r)
	if r.Rounds > 0 && c.opts.Hooks.Round != nil {
		c.opts.Hooks.Round(r)
	}
	return r, err
}

// reload makes the rules read their files again, between rounds, so that each
// round has one set of rules. A bad file is no reason to stop: its former rules
// stay in force.
func (c *Crawler) reload() {
	for _, r := range c.reloaders() {
		switch changed, err := r.Reload(); {
		case err != nil:
			c.opts.Logger.Warn("recrawl: rules could not be read again and stay as they were", "error", err)
		case changed:
			c.opts.Logger.Info("recrawl: rules were read again")
		}
	}
}

func (c *Crawler) reloaders() []urlfilter.Reloader {
	return append([]urlfilter.Reloader{c.opts.Rules}, c.opts.Reload...)
}

func (c *Crawler) processNext(ctx context.Context, o generate.Options, why roundCaller, r *Report) error {
	c.forgetUrgent()
	name, damaged, err := c.unfinished(ctx)
	r.Damaged = damaged
	var end <-chan struct{}
	if err == nil && name == "" {
		began := time.Now()
		name, err = c.selectDue(ctx, o, why, r)
		// What a list has that is not due would be lost, if it is not visited now.
		if why == calledByRun && c.opts.Run.Wait && !r.ahead && name != "" {
			var stop func()
			end, stop = c.endForUrgent(ctx, time.Since(began))
			defer stop()
		}
	}
	if err != nil || name == "" {
		return err
	}
	if why == calledByRun {
		if err := c.beginRound(ctx, name); err != nil {
			return err
		}
	}
	r.Rounds, r.Segments = 1, []string{name}
	err = c.processSegment(ctx, name, end, r)
	if isDamageOf(err, name) && ctx.Err() == nil {
		// It would end each round from now on, for the sake of a list's worth of pages.
		c.setAside(name, err)
		r.Damaged, err = append(r.Damaged, name), nil
	}
	return err
}

// selectDue makes the segment of a round. It returns "" if there is nothing to select now,
// and sets NextDue if it is known when there will be.
func (c *Crawler) selectDue(ctx context.Context, o generate.Options, why roundCaller, r *Report) (name string, err error) {
	c.status.setStage("generate", "")
	if why == calledByRun {
		if o, err = c.lookAhead(ctx, o); err != nil {
			return "", err
		}
	}
	if why != calledBySitemaps {
		if err := c.ensurePlan(ctx); err != nil {
			return "", err
		}
		if o, r.NextDue, err = c.limitToBudget(ctx, o); err != nil || !r.NextDue.IsZero() {
			return "", err
		}
		o = c.limitToRoundTime(o)
	}
	run := generate.Run
	if why == calledByRun && c.gathers() {
		run = c.gatherer.Run
	}
	g, err := c.generate(ctx, run, o)
	for _, url := range g.RejectedSeeds {
		r.RefusedSeeds = append(r.RefusedSeeds, segment.Visit{URL: url, Outcome: protocol.Outcome{Code: protocol.Refused, Reason: "the rules reject it"}})
	}
	if err != nil {
		return "", err
	}
	if r.ahead = why == calledByRun && o.Ahead > 0; r.ahead {
		// If this mark is lost, the leases say the same.
		if err := c.setMark(ctx, aheadMark, "selected"); err != nil {
			return "", err
		}
	}
	if len(g.Segments) == 0 {
		r.NextDue = g.NextDue
		return "", nil
	}
	r.Selected = g.Selected
	return g.Segments[0], nil
}

// limitToRoundTime limits a round to what there is time for: see Options.Run.RoundTime.
func (c *Crawler) limitToRoundTime(o generate.Options) generate.Options {
	t := c.opts.Run.RoundTime
	if t == 0 {
		t = time.Hour
	}
	if t < 0 || o.MaxPerHost != 0 || o.HostLimit != nil || o.Ahead > 0 || o.NutchCompat {
		return o
	}
	most := func(crawlDelay time.Duration) int {
		pause := c.opts.Fetch.Politeness.Pause(crawlDelay)
		if pause <= 0 {
			return -1
		}
		return int(max(t/pause, 1))
	}
	o.MaxPerHost = most(0)
	o.HostLimit = func(h *hostdb.Host) (float64, error) { return float64(most(h.CrawlDelay)), nil }
	if c.opts.Fetch.Politeness.By == hostdb.ByDomain {
		o.By = hostdb.ByDomain
	}
	return o
}

// processSegment takes a segment through the stages that it has not been through. If end is closed, the
// pages that are not visited yet are left to other rounds.
func (c *Crawler) processSegment(ctx context.Context, name string, end <-chan struct{}, r *Report) error {
	c.status.setStage("fetch", name)
	o := c.fetchOptions(!c.opts.ParseLater)
	if end != nil {
		o.Limits.End = end
	}
	f, err := c.fetchSegment(ctx, name, o)
	r.Visits, r.Bytes, r.Links, r.LinksRejected = f.Visits, f.Bytes, f.Links, f.LinksRejected
	r.RefusedSeeds = append(r.RefusedSeeds, f.RefusedSeeds...)
	r.Redirects, r.Sitemaps, r.refused = f.Redirects, f.Sitemaps, c.status.takeRefused()
	if err != nil {
		return err
	}
	if c.opts.ParseLater {
		c.status.setStage("parse", name)
		p, err := c.Parse(ctx, name)
		r.Links, r.LinksRejected = r.Links+p.Links, r.LinksRejected+p.LinksRejected
		r.Sitemaps.Add(p.Sitemaps)
		if err != nil {
			return err
		}
	}
	c.status.setStage("update", name)
	u, err := c.Update(ctx, name)
	r.Overgrown = u.Overgrown
	if r.SitemapEffects = u.Sitemaps; err != nil {
		return err
	}
	c.status.setStage("invert", name)
	if _, err := c.InvertLinks(ctx, name); err != nil {
		return fmt.Errorf("recrawl: invert %s: %w", name, err)
	}
	if c.opts.Dedup != nil {
		c.status.setStage("dedup", name)
		if _, err := c.markDuplicates(ctx); err != nil {
			return err
		}
	}
	c.status.setStage("pages", name)
	if r.Events, err = c.publishAndDeliver(ctx, name); err != nil {
		return err
	}
	if err := c.sweepAsDedup(ctx); err != nil {
		return err
	}
	if err := c.finishSegment(ctx, name); err != nil {
		return err
	}
	return c.applyRetention(ctx)
}

// publishAndDeliver appends the events of a segment to the change feed, and calls OnPage with them.
func (c *Crawler) publishAndDeliver(ctx context.Context, name string) (events int, err error) {
	err = c.inStage(ctx, "pages", name, func(ctx context.Context) (did []any, err error) {
		if err = c.publish(ctx, name); err == nil {
			events, err = c.deliver(ctx, name)
		}
		return []any{"events", events}, err
	})
	return events, err
}

// nextDue returns when the next page is due: zero if one is due already, or if only a scan of all
// records could tell.
func (c *Crawler) nextDue(ctx context.Context) (time.Time, error) {
	store, indexed := crawldb.AsDueStore(c.stores.Crawl)
	ahead, indexable := schedule.Horizon(c.schedule())
	if !indexed || !indexable {
		return time.Time{}, nil
	}
	var next time.Time
	q := crawldb.DueQuery{Now: c.opts.Now(), Limit: 1, MinPriority: c.opts.Generate.MinScore, NotDue: func(d *crawldb.Datum) {
		at := d.FetchTime
		if d.LeasedUntil.After(at) {
			at = d.LeasedUntil
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}}
	if ahead > 0 {
		q.DueBeyond = q.Now.Add(ahead)
	}
	for _, err := range store.Due(ctx, q) {
		if err != nil {
			err = fmt.Errorf("recrawl: %w", err)
		}
		return time.Time{}, err
	}
	_, until, err := c.limitToBudget(ctx, generate.Options{})
	if !next.IsZero() && until.After(next) {
		next = until
	}
	return next, err
}
