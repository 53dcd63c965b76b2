package recrawl

import (
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/internal/grace"
)

// Run runs rounds until its context ends, Options.Run.Rounds are done, or nothing is
// due and Options.Run.Wait is not set. If the context ended, the error is ctx.Err().
// An error of a stage, of a store or of OnPage ends it, too: a service that is to go
// on calls Run again after a pause. Either way everything is left as a later Run
// needs it. The report covers all rounds.
//
// A Run that waits visits pages a little before they are due, so that they share a round with
// others: see Options.Run.Gather.
//
// Generate.Ahead applies to what is due when a run begins: a page that the run
// has fetched is not selected again because it is due within that time. A Run that
// resumes an interrupted one keeps to that, and with the same Options.Run.Rounds runs
// only as many rounds as that one had left.
func (c *Crawler) Run(ctx context.Context) (Report, error) {
	var total Report
	end, err := c.lockRounds(ctx)
	if err != nil {
		return total, err
	}
	defer end()
	err = c.run(ctx, &total)
	keep, done := grace.Context(ctx)
	defer done()
	if e := c.stores.Crawl.Sync(keep); err == nil && e != nil {
		err = fmt.Errorf("recrawl: %w", e)
	}
	// The mark that the run is unfinished is removed last: if the process dies
	// before that, the next run finds nothing left to do.
	if err == nil {
		err = c.setMark(ctx, aheadMark, "")
	}
	if err == nil && c.opts.Run.Rounds > 0 {
		err = c.setMark(ctx, roundsMark, "")
	}
	return total, err
}

func (c *Crawler) run(ctx context.Context, total *Report) error {
	left, err := c.roundsLeft(ctx)
	if err != nil {
		return err
	}
	if err := c.applyRetention(ctx); err != nil { // a consumer may have been dropped since
		return err
	}
	for c.opts.Run.Rounds <= 0 || left > 0 {
		r, err := c.oneRound(ctx, c.generateOptions(), calledByRun)
		total.add(r)
		switch {
		case err != nil:
			return err
		case r.Rounds > 0:
			left--
		case r.ahead:
			// Nothing was due ahead; now for what is due at all.
		case !c.opts.Run.Wait:
			return nil
		default:
			if err := c.wait(ctx, r.NextDue); err != nil {
				return err
			}
		}
	}
	return nil
}

// aheadMark is the mark that says that an unfinished run has already selected
// what is due within Generate.Ahead.
const aheadMark = "run/ahead"

// roundsMark is the mark of an unfinished run limited to Options.Run.Rounds rounds:
// that number, how many it has begun, and the segment of the last one begun.
const roundsMark = "run/rounds"

// roundsBegun returns how many rounds an unfinished run with the same
// Options.Run.Rounds has begun, and the segment of the last. A run with another number
// is unrelated.
func (c *Crawler) roundsBegun(ctx context.Context) (n int, last string, err error) {
	mark, err := c.readMark(ctx, roundsMark)
	if err != nil {
		return 0, "", err
	}
	var of int
	if _, err := fmt.Sscanf(mark, "%d of %d: %s", &n, &of, &last); err != nil || of != c.opts.Run.Rounds {
		return 0, "", nil
	}
	return n, last, nil
}

// beginRound counts a round of a run, unless it is a resumed one.
func (c *Crawler) beginRound(ctx context.Context, name string) error {
	if c.opts.Run.Rounds <= 0 {
		return nil
	}
	n, last, err := c.roundsBegun(ctx)
	if err != nil || last == name {
		return err
	}
	return c.setMark(ctx, roundsMark, fmt.Sprintf("%d of %d: %s", n+1, c.opts.Run.Rounds, name))
}

// roundsLeft returns how many rounds a run has left, including one to be resumed.
func (c *Crawler) roundsLeft(ctx context.Context) (int, error) {
	n, last, err := c.roundsBegun(ctx)
	if err != nil || n == 0 {
		return c.opts.Run.Rounds, err
	}
	r, err := c.roundState(ctx, last)
	if err != nil {
		return 0, err
	}
	if !r.Done {
		n--
	}
	return c.opts.Run.Rounds - n, nil
}

// lookAhead changes the options for a selection of a run: the first one of the run selects all
// that is due within Generate.Ahead, in as many segments as it takes; the mark that it sets
// says to later ones that they select only what is due.
func (c *Crawler) lookAhead(ctx context.Context, o generate.Options) (generate.Options, error) {
	if o.Ahead <= 0 {
		return o, nil
	}
	mark, err := c.readMark(ctx, aheadMark)
	switch {
	case err != nil:
	case mark != "":
		o.Ahead = 0
	case c.opts.Run.Rounds <= 0:
		o.Segments = maxSegments
	default:
		o.Segments = max(o.Segments, c.opts.Run.Rounds)
	}
	return o, err
}

const maxSegments = 1_000

// wait sleeps until something is due or is injected. It looks at least once a
// minute: others may write to the store.
func (c *Crawler) wait(ctx context.Context, due time.Time) error {
	pause := time.Minute
	if !due.IsZero() {
		pause = min(pause, max(due.Sub(c.opts.Now()), time.Second))
	}
	c.status.setStage("wait", "")
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
	case <-c.wakeup:
	}
	return nil
}
