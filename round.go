package recrawl

import (
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/urlfilter"
)

// Round works on one segment, from fetch list to events: on the oldest that is
// not done, or else on a new one of what is due. A report with no rounds means
// that nothing is due. A round that is cancelled or fails leaves everything as
// the next one needs it, and returns an error that is ctx.Err() or says what
// failed.
func (c *Crawler) Round(ctx context.Context) (Report, error) {
	done, err := c.begin(ctx)
	if err != nil {
		return Report{}, err
	}
	defer done()
	return c.oneRound(ctx, c.generateOptions(), single)
}

// begin waits for the turn to make rounds, and returns the function that ends it.
func (c *Crawler) begin(ctx context.Context) (end func(), err error) {
	if err := c.round.take(ctx); err != nil {
		return nil, err
	}
	return func() {
		c.status.stage("", "")
		c.round.give()
	}, nil
}

// occasion is why a round is made.
type occasion int

const (
	single  occasion = iota // by Round
	running                 // by Run
	free                    // beside them, out of no budget
)

func (c *Crawler) oneRound(ctx context.Context, o generate.Options, why occasion) (Report, error) {
	began := time.Now()
	c.reload()
	var r Report
	err := c.work(ctx, o, why, &r)
	if err == nil {
		r.Freshness, err = c.freshness(ctx)
	}
	r.Elapsed = time.Since(began)
	c.status.round(&r)
	if r.Rounds > 0 && c.o.OnRound != nil {
		c.o.OnRound(r)
	}
	return r, err
}

// reload makes the rules read their files again, between rounds, so that each
// round has one set of rules. A bad file is no reason to stop: its former rules
// stay in force.
func (c *Crawler) reload() {
	all := []urlfilter.Reloader{c.o.Rules}
	for _, r := range []*urlfilter.Rules{c.o.Generate.Rules, c.o.Fetch.Rules, c.o.Update.Sweep.Rules} {
		if r != nil && r != c.o.Rules {
			all = append(all, r)
		}
	}
	for _, r := range append(all, c.o.Reload...) {
		switch changed, err := r.Reload(); {
		case err != nil:
			c.o.Logger.Warn("recrawl: rules could not be read again and stay as they were", "error", err)
		case changed:
			c.o.Logger.Info("recrawl: rules were read again")
		}
	}
}

func (c *Crawler) work(ctx context.Context, o generate.Options, why occasion, r *Report) error {
	name, damaged, err := c.unfinished(ctx)
	r.Damaged = damaged
	if err == nil && name == "" {
		name, err = c.selectDue(ctx, o, why, r)
	}
	if err != nil || name == "" {
		return err
	}
	if why == running {
		if err := c.beginRound(ctx, name); err != nil {
			return err
		}
	}
	r.Rounds, r.Segments = 1, []string{name}
	err = c.segment(ctx, name, r)
	if damages(err, name) && ctx.Err() == nil {
		// It would end each round from now on, for the sake of a list's worth of pages.
		c.setAside(name, err)
		r.Damaged, err = append(r.Damaged, name), nil
	}
	return err
}

// selectDue makes the segment of a round. It returns "" if there is nothing to select now,
// and sets NextDue if it is known when there will be.
func (c *Crawler) selectDue(ctx context.Context, o generate.Options, why occasion, r *Report) (name string, err error) {
	c.status.stage("generate", "")
	if why == running {
		if o, err = c.ahead(ctx, o); err != nil {
			return "", err
		}
	}
	if why != free {
		if err := c.replan(ctx); err != nil {
			return "", err
		}
		if o, r.NextDue, err = c.within(ctx, o); err != nil || !r.NextDue.IsZero() {
			return "", err
		}
		o = c.inTime(o)
	}
	g, err := generate.Run(ctx, c.s.Crawl, c.s.Segments, o)
	if err != nil {
		return "", err
	}
	if r.ahead = why == running && o.Ahead > 0; r.ahead {
		// If this mark is lost, the leases say the same.
		if err := c.mark(ctx, aheadJob, "selected"); err != nil {
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

// inTime limits a round to what there is time for: see Options.RoundTime.
func (c *Crawler) inTime(o generate.Options) generate.Options {
	t := c.o.RoundTime
	if t == 0 {
		t = time.Hour
	}
	if t < 0 || o.MaxPerHost != 0 || o.HostLimit != nil || o.Ahead > 0 || o.NutchCompat {
		return o
	}
	most := func(crawlDelay time.Duration) int {
		pause := c.o.Fetch.Pause(crawlDelay)
		if pause <= 0 {
			return -1
		}
		return int(max(t/pause, 1))
	}
	o.MaxPerHost = most(0)
	o.HostLimit = func(h *hostdb.Host) (float64, error) { return float64(most(h.CrawlDelay)), nil }
	if c.o.Fetch.Politeness.By == hostdb.ByDomain {
		o.By = hostdb.ByDomain
	}
	return o
}

// segment takes a segment through the stages that it has not been through.
func (c *Crawler) segment(ctx context.Context, name string, r *Report) error {
	c.status.stage("fetch", name)
	stage := c.Fetch
	if c.o.ParseLater {
		stage = c.FetchOnly
	}
	f, err := stage(ctx, name)
	r.Visits, r.Bytes, r.Links, r.LinksRejected = f.Visits, f.Bytes, f.Links, f.LinksRejected
	r.Redirects, r.Sitemaps = f.Redirects, f.Sitemaps
	if err != nil {
		return err
	}
	if c.o.ParseLater {
		c.status.stage("parse", name)
		p, err := c.Parse(ctx, name)
		r.Links, r.LinksRejected = r.Links+p.Links, r.LinksRejected+p.LinksRejected
		r.Sitemaps.Add(p.Sitemaps)
		if err != nil {
			return err
		}
	}
	c.status.stage("update", name)
	u, err := c.Update(ctx, name)
	r.Overgrown = u.Overgrown
	if r.SitemapEffects = u.Sitemaps; err != nil {
		return err
	}
	c.status.stage("invert", name)
	if _, err := c.InvertLinks(ctx, name); err != nil {
		return fmt.Errorf("recrawl: invert %s: %w", name, err)
	}
	if c.o.Dedup != nil {
		c.status.stage("dedup", name)
		if _, err := c.markDuplicates(ctx); err != nil {
			return err
		}
	}
	c.status.stage("pages", name)
	if r.Events, err = c.deliver(ctx, name); err != nil {
		return err
	}
	if err := c.sweepAsDedup(ctx); err != nil {
		return err
	}
	if err := c.done(ctx, name); err != nil {
		return err
	}
	return c.retire(ctx)
}
