package recrawl

import (
	"context"
	"log/slog"
	"time"
)

// Hooks are functions that a crawler calls as it works; any of them may be nil. Packages
// metrics/prom and metrics/otel provide them. The work waits for each call. Visits have a hook of
// their own: see fetch.Options.OnVisit.
type Hooks struct {
	// Round is called with the report of each round that worked on a segment, when it is over, so
	// that the figures of a Run that lasts for years can be shown. A round that failed or was
	// cancelled is reported too, and again when the next one resumes it, each time with what was
	// done then, so that the reports add up to that of Run. It is called by one goroutine at a time.
	Round func(r Report)
	// Stage is called when a stage begins, in a round or by a method of the crawler: inject,
	// generate, fetch, parse, update, invert, dedup, sweep or pages. It is called with "round" when
	// a round begins; the stages of the round get contexts that descend from the one that this call
	// returns. segment is empty for round, inject, generate, dedup and sweep. end is called once when
	// the stage has ended, with its error. Stages may overlap, and calls come from any goroutine.
	Stage func(ctx context.Context, stage, segment string) (_ context.Context, end func(error))
}

// inStage runs a stage, calls the hook, and logs it. run returns what it did as key and value
// pairs for the log.
func (c *Crawler) inStage(ctx context.Context, stage, segment string, run func(context.Context) ([]any, error)) error {
	end := func(error) {}
	if c.opts.Hooks.Stage != nil {
		ctx, end = c.opts.Hooks.Stage(ctx, stage, segment)
	}
	began := time.Now()
	did, err := run(ctx)
	end(err)
	level := slog.LevelDebug
	if stage == roundStage {
		level = slog.LevelInfo
	}
	if c.opts.Logger.Enabled(ctx, level) && (stage != roundStage || len(did) > 0) {
		args := []any{"stage", stage}
		if segment != "" {
			args = append(args, "segment", segment)
		}
		args = append(args, did...)
		args = append(args, "elapsed", time.Since(began).Round(time.Microsecond))
		if err != nil {
			args = append(args, "error", err)
		}
		c.opts.Logger.Log(ctx, level, "recrawl: stage ended", args...)
	}
	return err
}

// roundStage is the name of a whole round among the stages.
const roundStage = "round"
