package recrawl

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// Inject adds URLs to start from, durably. Unusable ones are named in the report
// and logged, and the others are injected; that is not an error.
func (c *Crawler) Inject(ctx context.Context, urls ...string) (inject.Report, error) {
	return c.InjectSeeds(ctx, inject.URLs(urls...), inject.Options{})
}

// InjectSeeds adds seeds, for example those of inject.Read. Policies and the
// clock default to those of the crawler.
func (c *Crawler) InjectSeeds(ctx context.Context, seeds iter.Seq2[inject.Seed, error], o inject.Options) (inject.Report, error) {
	setNil(&o.Rules, c.opts.Rules)
	setDefault(&o.Schedule, c.schedule())
	setDefault(&o.Scoring, c.opts.Scoring)
	if o.Now == nil {
		o.Now = c.opts.Now
	}
	var r inject.Report
	err := c.inStage(ctx, "inject", "", func(ctx context.Context) (did []any, err error) {
		r, err = inject.Run(ctx, c.stores.Crawl, seeds, o)
		return []any{"seeds", r.Seeds, "new", r.New}, err
	})
	if len(r.Bad) > 0 {
		c.opts.Logger.Warn("recrawl: seeds were left out", "filtered", r.Filtered, "invalid", r.Invalid, "first", r.Bad[0].Error())
	}
	if r.New > 0 {
		c.urge()
	} else {
		c.wake()
	}
	return r, err
}

// wake ends the wait of a Run.
func (c *Crawler) wake() {
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// Generate selects what is due and writes it to new segments: the first stage
// of a round.
func (c *Crawler) Generate(ctx context.Context) (generate.Report, error) {
	if err := c.ensurePlan(ctx); err != nil {
		return generate.Report{}, err
	}
	o, until, err := c.limitToBudget(ctx, c.generateOptions())
	if err != nil || !until.IsZero() {
		return generate.Report{NextDue: until}, err
	}
	return c.generate(ctx, generate.Run, o)
}

// generate selects with a function that has the signature of generate.Run.
func (c *Crawler) generate(ctx context.Context, run func(context.Context, crawldb.Store, segment.Store, generate.Options) (generate.Report, error), o generate.Options) (r generate.Report, err error) {
	end, err := c.takeTurn(ctx)
	if err != nil {
		return r, err
	}
	defer end()
	err = c.inStage(ctx, "generate", "", func(ctx context.Context) (did []any, err error) {
		r, err = run(ctx, c.stores.Crawl, c.stores.Segments, o)
		return []any{"segments", len(r.Segments), "pages", r.Selected}, err
	})
	return r, err
}

// GenerateFree fetches the given URLs now: it makes a segment of them, due or not, which the next
// round takes up, whatever schedule and budget say. A Run that waits ends the round under way for it: see
// RunOptions.Wait. The URLs need not be in the crawl db.
// Politeness still holds, and the requests carry no validators. See generate.Free. No segment in
// the report means that the rules reject all of the URLs. All others are on the list, so
// many of one host make the round longer than RoundTime.
func (c *Crawler) GenerateFree(ctx context.Context, urls iter.Seq2[string, error]) (generate.Report, error) {
	o := c.generateOptions()
	o.Known = c.stores.Crawl
	defer c.urge()
	return c.generate(ctx, func(ctx context.Context, _ crawldb.Store, s segment.Store, o generate.Options) (generate.Report, error) {
		return generate.Free(ctx, s, urls, o)
	}, o)
}

func (c *Crawler) generateOptions() generate.Options {
	o := c.opts.Generate
	o.Hosts, o.Taken, o.Lists.Lookup = c.stores.Hosts, c.hasMarks, c.lookup()
	o.Rules, o.Schedule, o.Scoring, o.Now = c.opts.Rules, c.schedule(), c.opts.Scoring, c.opts.Now
	if o.TopN == 0 {
		o.TopN = defaultTopN
	}
	return o
}

// defaultTopN bounds a segment, whose fetch list is held in memory while it is
// made. It is the number that Nutch's crawl script uses.
const defaultTopN = 50_000

// Fetch visits and parses the pages of a segment: the second stage.
func (c *Crawler) Fetch(ctx context.Context, name string) (fetch.Report, error) {
	return c.fetchSegment(ctx, name, c.fetchOptions(true))
}

// FetchOnly visits the pages of a segment and leaves their parsing to Parse.
func (c *Crawler) FetchOnly(ctx context.Context, name string) (fetch.Report, error) {
	return c.fetchSegment(ctx, name, c.fetchOptions(false))
}

func (c *Crawler) fetchSegment(ctx context.Context, name string, o fetch.Options) (r fetch.Report, err error) {
	err = c.inStage(ctx, "fetch", name, func(ctx context.Context) (did []any, err error) {
		r, err = fetch.Run(ctx, c.stores.Segments, name, o)
		return []any{"pages", r.Visited(), "bytes", r.Bytes, "links", r.Links, "robots", r.Robots}, err
	})
	return r, err
}

// Parse parses a segment that was fetched by FetchOnly.
func (c *Crawler) Parse(ctx context.Context, name string) (r fetch.Report, err error) {
	err = c.inStage(ctx, "parse", name, func(ctx context.Context) (did []any, err error) {
		r, err = fetch.Parse(ctx, c.stores.Segments, name, c.fetchOptions(true))
		return []any{"pages", r.Parsed, "links", r.Links}, err
	})
	return r, err
}

func (c *Crawler) fetchOptions(parsing bool) fetch.Options {
	o := c.opts.Fetch
	o.Protocol, o.Hosts, o.Robots = c.opts.Protocol, c.stores.Hosts, c.robots
	o.Rules, o.Signature, o.Scoring = c.opts.Rules, c.opts.Signature, c.opts.Scoring
	o.Now, o.Logger = c.opts.Now, c.opts.Logger
	o.Politeness.Lookup = c.lookup()
	if c.share != nil {
		o.Following.Within = c.group().Owns
		o.Threads = c.share.threads(o.Threads)
	}
	if parsing {
		o.Parser = c.opts.Parser
	}
	onVisit := o.OnVisit
	o.OnVisit = func(v segment.Visit, p fetch.Progress) {
		c.status.addVisit(&v, p)
		if onVisit != nil {
			onVisit(v, p)
		}
	}
	return o
}

// lookup is how a round finds the addresses of hosts: as the protocol does, or nil if that
// does not say. Lists that are made by address are then made by those of the queues.
func (c *Crawler) lookup() func(ctx context.Context, host string) ([]netip.Addr, error) {
	if c.opts.Fetch.Politeness.Lookup != nil {
		return c.opts.Fetch.Politeness.Lookup
	}
	if r, ok := c.opts.Protocol.(protocol.LookupProtocol); ok {
		return r.Lookup
	}
	return nil
}

// Update folds a fetched segment into the crawl db: the third stage. If there is a
// scoring.PageRank in Options.Scoring, it then updates the ranks: see package rank.
// Updates run one at a time: of two of the same segment, the second finds it done.
func (c *Crawler) Update(ctx context.Context, name string) (r update.Report, err error) {
	if err := c.updateMutex.lock(ctx); err != nil {
		return update.Report{}, err
	}
	defer c.updateMutex.unlock()
	end, err := c.takeTurn(ctx)
	if err != nil {
		return update.Report{}, err
	}
	defer end()
	err = c.inStage(ctx, "update", name, func(ctx context.Context) (did []any, err error) {
		r, err = c.updateSegment(ctx, name)
		return []any{"pages", r.Visits, "links", r.Links, "overgrown", r.Overgrown}, err
	})
	return r, err
}

// updateSegment folds a segment in while updateMutex is held.
func (c *Crawler) updateSegment(ctx context.Context, name string) (update.Report, error) {
	o := c.updateOptions()
	var err error
	if o.Schedule, err = c.scheduleOfUpdate(ctx, o.Schedule); err != nil {
		return update.Report{}, fmt.Errorf("recrawl: %w", err)
	}
	if err := c.savePriorStates(ctx, name); err != nil {
		return update.Report{}, fmt.Errorf("recrawl: note what is known of %s: %w", name, err)
	}
	r, err := update.Run(ctx, c.stores.Crawl, c.stores.Segments, name, o)
	if r.Damaged > 0 {
		c.opts.Logger.Warn("recrawl: what domains have brought could not be read, and is counted anew", "segment", name, "domains", r.Damaged)
	}
	if err != nil {
		return r, err
	}
	return r, c.updateRanks(ctx, name)
}

// updateRanks counts the links of a segment and brings the scores up to date.
func (c *Crawler) updateRanks(ctx context.Context, name string) error {
	o := c.opts.Rank
	o.Scoring, o.Schedule = c.opts.Scoring, c.schedule()
	r, err := c.ranker.Run(ctx, c.stores.Crawl, c.stores.Segments, name, o)
	if r.Damage != nil {
		c.opts.Logger.Warn("recrawl: the known graph could not be read, and is made anew of the segments that are kept", "error", r.Damage)
	}
	if r.Full {
		c.opts.Logger.Warn("recrawl: there is no room for more pages in the known graph: those that are found now keep the score that they begin with", "pages", r.Pages)
	}
	return err
}

func (c *Crawler) updateOptions() update.Options {
	o := c.opts.Update
	o.Schedule, o.Scoring, o.Hosts, o.Now = c.schedule(), c.opts.Scoring, c.stores.Hosts, c.opts.Now
	o.Sweep.Rules, o.Group = c.opts.Rules, c.group()
	return o
}

// Sweep goes over all records of the crawl db. An update also does so if
// Options.Update.Sweep asks for something. Policies and the clock default to those of
// the crawler. Rules from files are as the last round read them: see
// urlfilter.Rules.Reload. Records on a fetch list are left alone, and OnPage is not told
// of dropped ones.
func (c *Crawler) Sweep(ctx context.Context, o update.SweepOptions) (update.SweepReport, error) {
	setNil(&o.Rules, c.opts.Rules)
	setDefault(&o.Schedule, c.schedule())
	setDefault(&o.Scoring, c.opts.Scoring)
	if o.Now == nil {
		o.Now = c.opts.Now
	}
	var r update.SweepReport
	err := c.inStage(ctx, "sweep", "", func(ctx context.Context) (did []any, err error) {
		r, err = update.Sweep(ctx, c.stores.Crawl, o)
		return nil, err
	})
	return r, err
}

// InvertLinks adds the links of parsed segments to the link db: the fourth
// stage. Without Stores.Links it does nothing.
func (c *Crawler) InvertLinks(ctx context.Context, segments ...string) (linkdb.InvertReport, error) {
	if c.stores.Links == nil {
		return linkdb.InvertReport{}, nil
	}
	var r linkdb.InvertReport
	end, err := c.takeTurn(ctx)
	if err != nil {
		return r, err
	}
	defer end()
	err = c.inStage(ctx, "invert", strings.Join(segments, " "), func(ctx context.Context) (did []any, err error) {
		if len(segments) == 1 && !c.group().Alone() {
			r, err = c.invertForAll(ctx, segments[0])
		} else {
			r, err = linkdb.Invert(ctx, c.stores.Links, c.stores.Segments, segments, c.opts.Invert)
		}
		return []any{"links", r.Links}, err
	})
	return r, err
}

// Dedup marks the duplicates in the crawl db: the fifth stage, which rounds
// include if Options.Dedup is set. Called directly, it uses the defaults of
// package dedup if that is nil. With NutchCompat in Options.Dedup it then does
// what Options.Update.Sweep asks for, which in Nutch is part of the same job; a
// round does so after OnPage has seen the pages.
func (c *Crawler) Dedup(ctx context.Context) (dedup.Report, error) {
	r, err := c.markDuplicates(ctx)
	if err == nil {
		err = c.sweepAsDedup(ctx)
	}
	return r, err
}

func (c *Crawler) markDuplicates(ctx context.Context) (dedup.Report, error) {
	var o dedup.Options
	if c.opts.Dedup != nil {
		o = *c.opts.Dedup
	}
	var r dedup.Report
	err := c.inStage(ctx, "dedup", "", func(ctx context.Context) (did []any, err error) {
		r, err = dedup.Run(ctx, c.stores.Crawl, o)
		return []any{"pages", r.Candidates, "duplicates", r.Duplicates}, err
	})
	return r, err
}

// sweepAsDedup does what Nutch's dedup does to all records besides. (Nutch:
// CrawlDbFilter is the mapper of its second job.)
func (c *Crawler) sweepAsDedup(ctx context.Context) error {
	o := c.opts.Update.Sweep
	if c.opts.Dedup == nil || !c.opts.Dedup.NutchCompat || !o.PurgeGone && !o.PurgeOrphans && !o.Normalize && !o.Filter {
		return nil
	}
	o.NutchCompat = true
	_, err := c.Sweep(ctx, o)
	return err
}
