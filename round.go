package recrawl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// Report says what one round did, or several.
type Report struct {
	// Rounds counts the rounds that worked on a segment; Segments names the segments,
	// at most the last thousand of a Run.
	Rounds   int
	Segments []string
	// Selected counts the URLs that were selected, Visits the outcomes of the
	// visits.
	Selected int
	Visits   map[protocol.Code]int
	// Bytes counts the bytes of bodies as sent over the wire.
	Bytes int64
	// Links counts the outlinks that the crawl follows, LinksRejected those that
	// the rules keep out.
	Links, LinksRejected int
	// Redirects counts the outcomes of redirects: see
	// fetch.Options.MaxRedirects.
	Redirects fetch.Redirects
	// Overgrown counts pages that were linked to but not added, because their domains
	// had as many as Options.Update.MaxGrowth allows.
	Overgrown int
	// Sitemaps says what was read in sitemaps, SitemapEffects what it did to the crawl db.
	Sitemaps       fetch.SitemapReport
	SitemapEffects update.SitemapReport
	// Damaged are the segments that were found damaged and set aside, of a Run the last
	// thousand: see [Crawler.Damaged].
	Damaged []string
	// Events counts the calls of OnPage.
	Events int
	// NextDue is when the next page is due, if the last round found none; zero
	// if that is not known.
	NextDue time.Time
	// Elapsed is how long the rounds took, not counting the time Run waited for pages to
	// become due.
	Elapsed time.Duration
	// Freshness is how up to date the copies are according to the plan of a schedule that
	// learns, and how much of its budget is used; nil for other schedules.
	Freshness *Freshness

	ahead bool // the selection looked ahead: see Crawler.ahead
}

// Visited adds up the visits.
func (r *Report) Visited() int {
	f := fetch.Report{Visits: r.Visits}
	return f.Visited()
}

// mostSegments is how many segments a Report names: it must not grow in a Run of
// years.
const mostSegments = 1000

func (r *Report) add(o Report) {
	r.Rounds += o.Rounds
	r.Segments = append(r.Segments, o.Segments...)
	r.Segments = slices.Delete(r.Segments, 0, max(0, len(r.Segments)-mostSegments))
	r.Damaged = append(r.Damaged, o.Damaged...)
	r.Damaged = slices.Delete(r.Damaged, 0, max(0, len(r.Damaged)-mostSegments))
	r.Selected += o.Selected
	for code, n := range o.Visits {
		if r.Visits == nil {
			r.Visits = map[protocol.Code]int{}
		}
		r.Visits[code] += n
	}
	r.Bytes += o.Bytes
	r.Links += o.Links
	r.LinksRejected += o.LinksRejected
	r.Redirects.Add(o.Redirects)
	r.Overgrown += o.Overgrown
	r.Sitemaps.Add(o.Sitemaps)
	r.SitemapEffects.Add(o.SitemapEffects)
	r.Events += o.Events
	r.NextDue = o.NextDue
	r.Elapsed += o.Elapsed
	if o.Freshness != nil {
		r.Freshness = o.Freshness
	}
}

// aheadJob is the mark that says that an unfinished run has already selected
// what is due within Generate.Ahead.
const aheadJob = "run/ahead"

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

// damages reports whether an error says that a segment is damaged. So do those of the
// crawl db, of which the files have no names of segments.
func damages(err error, name string) bool {
	var damage *segment.CorruptError
	return errors.As(err, &damage) && slices.Contains(strings.Split(filepath.ToSlash(damage.File), "/"), name)
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
	if c.o.Fetch.By == hostdb.ByDomain {
		o.By = hostdb.ByDomain
	}
	return o
}

// unfinished returns the oldest segment that is neither done nor damaged, "" if there is
// none, and the damaged ones that were found on the way.
func (c *Crawler) unfinished(ctx context.Context) (oldest string, damaged []string, err error) {
	for name, err := range c.s.Segments.List(ctx) {
		if err != nil {
			return "", damaged, fmt.Errorf("recrawl: %w", err)
		}
		if c.isAside(name) {
			continue
		}
		r, err := c.roundOf(ctx, name)
		if err != nil {
			return "", damaged, err
		}
		if r.Done {
			continue
		}
		// A segment that another crawler is making is not ours.
		switch ok, err := segment.Has[crawldb.Datum](ctx, c.s.Segments, name); {
		case damages(err, name):
			c.setAside(name, fmt.Errorf("recrawl: %w", err))
			damaged = append(damaged, name)
		case err != nil:
			return "", damaged, fmt.Errorf("recrawl: %w", err)
		case ok:
			return name, damaged, nil
		}
	}
	return "", damaged, nil
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

// progress reads the mark of a job, "" if there is none.
func (c *Crawler) progress(ctx context.Context, job string) (string, error) {
	mark, err := c.s.Crawl.Progress(ctx, job)
	if err != nil {
		return "", fmt.Errorf("recrawl: %w", err)
	}
	return mark, nil
}

// roundOf returns how far a segment has come after its update.
func (c *Crawler) roundOf(ctx context.Context, name string) (segment.Round, error) {
	mark, err := c.progress(ctx, segment.RoundJob(name))
	if err != nil {
		return segment.Round{}, err
	}
	r, err := segment.ParseRound(mark)
	if err != nil {
		err = fmt.Errorf("recrawl: mark of %s: %w", name, err)
	}
	return r, err
}

// mark writes the mark of a job; an empty cursor removes it.
func (c *Crawler) mark(ctx context.Context, job, cursor string) error {
	if err := c.s.Crawl.Update(ctx, crawldb.Batch{Job: job, Cursor: cursor}); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	return nil
}

// marked reports whether a segment has left a mark.
func (c *Crawler) marked(ctx context.Context, name string) (bool, error) {
	for _, job := range []string{update.Job(name), rank.Job(name), segment.RoundJob(name)} {
		if mark, err := c.s.Crawl.Progress(ctx, job); err != nil || mark != "" {
			return mark != "", err
		}
	}
	return false, nil
}

// Updated reports whether a segment was folded into the crawl db.
func (c *Crawler) Updated(ctx context.Context, segment string) (bool, error) {
	done, err := update.Done(ctx, c.s.Crawl, segment)
	if err != nil {
		err = fmt.Errorf("recrawl: %w", err)
	}
	return done, err
}

// Finish marks a segment as done, so that no round takes it up again. It is for
// callers that run the stages one by one; a round calls it itself. If there is no such
// segment, the error is segment.ErrNotFound.
func (c *Crawler) Finish(ctx context.Context, name string) error {
	for there, err := range c.s.Segments.List(ctx) {
		if err != nil {
			return fmt.Errorf("recrawl: finish %s: %w", name, err)
		}
		if there == name {
			return c.done(ctx, name)
		}
	}
	return fmt.Errorf("recrawl: finish %s: %w", name, segment.ErrNotFound)
}

// retire removes all but the newest KeepSegments done segments, and then their
// marks.
func (c *Crawler) retire(ctx context.Context) error {
	if c.o.KeepSegments <= 0 {
		return nil
	}
	done, err := c.DoneSegments(ctx)
	if err != nil {
		return err
	}
	for _, name := range done[:max(0, len(done)-c.o.KeepSegments)] {
		if err := c.RemoveSegment(ctx, name); err != nil && !errors.Is(err, segment.ErrBusy) {
			return err
		}
	}
	return nil
}

// Run runs rounds until its context ends, Options.Rounds are done, or nothing is
// due and Options.Wait is not set. If the context ended, the error is ctx.Err().
// An error of a stage, of a store or of OnPage ends it, too: a service that is to go
// on calls Run again after a pause. Either way everything is left as a later Run
// needs it. The report covers all rounds.
//
// Generate.Ahead applies to what is due when a run begins: a page that the run
// has fetched is not selected again because it is due within that time. A Run that
// resumes an interrupted one keeps to that, and with the same Options.Rounds runs
// only as many rounds as that one had left.
func (c *Crawler) Run(ctx context.Context) (Report, error) {
	var total Report
	end, err := c.begin(ctx)
	if err != nil {
		return total, err
	}
	defer end()
	err = c.run(ctx, &total)
	keep, done := grace.Context(ctx)
	defer done()
	if e := c.s.Crawl.Sync(keep); err == nil && e != nil {
		err = fmt.Errorf("recrawl: %w", e)
	}
	// The mark that the run is unfinished is removed last: if the process dies
	// before that, the next run finds nothing left to do.
	if err == nil {
		err = c.mark(ctx, aheadJob, "")
	}
	if err == nil && c.o.Rounds > 0 {
		err = c.mark(ctx, roundsJob, "")
	}
	return total, err
}

func (c *Crawler) run(ctx context.Context, total *Report) error {
	left, err := c.roundsLeft(ctx)
	if err != nil {
		return err
	}
	for c.o.Rounds <= 0 || left > 0 {
		r, err := c.oneRound(ctx, c.generateOptions(), running)
		total.add(r)
		switch {
		case err != nil:
			return err
		case r.Rounds > 0:
			left--
		case r.ahead:
			// Nothing was due ahead; now for what is due at all.
		case !c.o.Wait:
			return nil
		default:
			if err := c.wait(ctx, r.NextDue); err != nil {
				return err
			}
		}
	}
	return nil
}

// roundsJob is the mark of an unfinished run limited to Options.Rounds rounds:
// that number, how many it has begun, and the segment of the last one begun.
const roundsJob = "run/rounds"

// roundsBegun returns how many rounds an unfinished run with the same
// Options.Rounds has begun, and the segment of the last. A run with another number
// is unrelated.
func (c *Crawler) roundsBegun(ctx context.Context) (n int, last string, err error) {
	mark, err := c.progress(ctx, roundsJob)
	if err != nil {
		return 0, "", err
	}
	var of int
	if _, err := fmt.Sscanf(mark, "%d of %d: %s", &n, &of, &last); err != nil || of != c.o.Rounds {
		return 0, "", nil
	}
	return n, last, nil
}

// beginRound counts a round of a run, unless it is a resumed one.
func (c *Crawler) beginRound(ctx context.Context, segment string) error {
	if c.o.Rounds <= 0 {
		return nil
	}
	n, last, err := c.roundsBegun(ctx)
	if err != nil || last == segment {
		return err
	}
	return c.mark(ctx, roundsJob, fmt.Sprintf("%d of %d: %s", n+1, c.o.Rounds, segment))
}

// roundsLeft returns how many rounds a run has left, including one to be resumed.
func (c *Crawler) roundsLeft(ctx context.Context) (int, error) {
	n, last, err := c.roundsBegun(ctx)
	if err != nil || n == 0 {
		return c.o.Rounds, err
	}
	r, err := c.roundOf(ctx, last)
	if err != nil {
		return 0, err
	}
	if !r.Done {
		n--
	}
	return c.o.Rounds - n, nil
}

// ahead changes the options for a selection of a run: the first one of the run selects all
// that is due within Generate.Ahead, in as many segments as it takes; the mark that it sets
// says to later ones that they select only what is due.
func (c *Crawler) ahead(ctx context.Context, o generate.Options) (generate.Options, error) {
	if o.Ahead <= 0 {
		return o, nil
	}
	mark, err := c.progress(ctx, aheadJob)
	switch {
	case err != nil:
	case mark != "":
		o.Ahead = 0
	case c.o.Rounds <= 0:
		o.Segments = maxSegments
	default:
		o.Segments = max(o.Segments, c.o.Rounds)
	}
	return o, err
}

const maxSegments = 1_000

// wait sleeps until something is due or is injected. It looks at least once a
// minute: others may write to the store.
func (c *Crawler) wait(ctx context.Context, due time.Time) error {
	pause := time.Minute
	if !due.IsZero() {
		pause = min(pause, max(due.Sub(c.o.Now()), time.Second))
	}
	c.status.stage("wait", "")
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
	case <-c.injected:
	}
	return nil
}
