package recrawl

import (
	"context"
	"errors"
	"fmt"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/merge"
	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// MergeSegments merges updated segments into one, or into several slices; the
// originals stay. A merged segment is done from the start: no round takes it up,
// and updating from it changes nothing, since what it holds was already applied.
// Accept is up to the caller; the clock and store are the crawler's.
func (c *Crawler) MergeSegments(ctx context.Context, o merge.SegmentOptions, names ...string) (merge.SegmentReport, error) {
	var srcs []merge.Source
	for _, name := range names {
		if done, err := c.Updated(ctx, name); err != nil {
			return merge.SegmentReport{}, err
		} else if !done {
			return merge.SegmentReport{}, fmt.Errorf("recrawl: merge segments: %s is not folded into the crawl db yet", name)
		}
		srcs = append(srcs, merge.Source{Store: c.s.Segments, Name: name})
	}
	if o.Now == nil {
		o.Now = c.o.Now
	}
	told := o.Complete
	var marked []string
	o.Complete = func(ctx context.Context, name string) error {
		marked = append(marked, name)
		if err := update.MarkDone(ctx, c.s.Crawl, name); err != nil {
			return err
		}
		// The visits in it were counted when the segments that it is made of were done.
		if err := c.s.Crawl.Update(ctx, crawldb.Batch{Job: segment.RoundJob(name), Cursor: segment.Round{Done: true}.String()}); err != nil {
			return err
		}
		if err := c.s.Crawl.Sync(ctx); err != nil || told == nil {
			return err
		}
		return told(ctx, name)
	}
	r, err := merge.Segments(ctx, c.s.Segments, srcs, o)
	if err != nil { // and nothing is there of what was to be marked
		clean, end := grace.Context(ctx)
		defer end()
		for _, name := range marked {
			if e := c.unmark(clean, name); e != nil {
				err = errors.Join(err, fmt.Errorf("recrawl: merge segments: %w", e))
			}
		}
	}
	return r, err
}

// RemoveSegment removes a segment and its marks. If it is in use, the error
// matches segment.ErrBusy. The results of a segment that is not done, see
// [Crawler.DoneSegments], are lost: its pages are due again when their leases
// end.
func (c *Crawler) RemoveSegment(ctx context.Context, name string) error {
	if err := c.s.Segments.Remove(ctx, name); err != nil {
		return fmt.Errorf("recrawl: remove %s: %w", name, err)
	}
	if err := c.unmark(ctx, name); err != nil {
		return fmt.Errorf("recrawl: remove %s: %w", name, err)
	}
	return nil
}

// unmark removes the marks of a segment that is not there any more.
func (c *Crawler) unmark(ctx context.Context, name string) error {
	marks := c.forgotten(ctx, name)
	for _, job := range []string{update.Job(name), rank.Job(name), segment.RoundJob(name)} {
		marks[job] = ""
	}
	return c.s.Crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }})
}

// DoneSegments returns the segments that are done, oldest first.
func (c *Crawler) DoneSegments(ctx context.Context) ([]string, error) {
	var names []string
	for name, err := range c.s.Segments.List(ctx) {
		if err != nil {
			return nil, fmt.Errorf("recrawl: %w", err)
		}
		r, err := c.roundOf(ctx, name)
		if err != nil {
			return nil, err
		}
		if r.Done {
			names = append(names, name)
		}
	}
	return names, nil
}
