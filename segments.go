package recrawl

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
		srcs = append(srcs, merge.Source{Store: c.stores.Segments, Name: name})
	}
	if o.Now == nil {
		o.Now = c.opts.Now
	}
	complete := o.Complete
	var marked []string
	o.Complete = func(ctx context.Context, name string) error {
		marked = append(marked, name)
		if err := update.MarkDone(ctx, c.stores.Crawl, name); err != nil {
			return err
		}
		// The visits in it were counted when the segments that it is made of were done.
		if err := c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(segment.RoundMark(name), segment.Round{Done: true}.String())}); err != nil {
			return err
		}
		if err := c.stores.Crawl.Sync(ctx); err != nil || complete == nil {
			return err
		}
		return complete(ctx, name)
	}
	r, err := merge.Segments(ctx, c.stores.Segments, srcs, o)
	if err != nil { // and nothing is there of what was to be marked
		clean, end := grace.Context(ctx)
		defer end()
		for _, name := range marked {
			if e := c.removeMarks(clean, name); e != nil {
				err = errors.Join(err, fmt.Errorf("recrawl: merge segments: %w", e))
			}
		}
	}
	return r, err
}

// RemoveSegment removes a segment and its marks. If it is in use, the error
// matches segment.ErrBusy; if a consumer has not acknowledged its events,
// [ErrUnacknowledged]. The results of a segment that is not done, see
// [Crawler.DoneSegments], are lost: its pages are due again when their leases
// end.
func (c *Crawler) RemoveSegment(ctx context.Context, name string) error {
	if err := c.feedMutex.lock(ctx); err != nil {
		return err
	}
	defer c.feedMutex.unlock()
	round, err := c.roundState(ctx, name)
	if err != nil {
		return err
	}
	if round.Number > 0 {
		consumers, err := c.consumerStates(ctx)
		if err != nil {
			return err
		}
		if behind := consumersBehind(consumers, round.Number); len(behind) > 0 {
			return fmt.Errorf("recrawl: remove %s: %w: %s", name, ErrUnacknowledged, strings.Join(behind, ", "))
		}
		// The acknowledgements must not be lost after the segment is.
		if err := c.stores.Crawl.Sync(ctx); err != nil {
			return fmt.Errorf("recrawl: remove %s: %w", name, err)
		}
	}
	return c.removeSegment(ctx, name)
}

// removeSegment removes a segment and its marks, while feedMutex is held.
func (c *Crawler) removeSegment(ctx context.Context, name string) error {
	if err := c.stores.Segments.Remove(ctx, name); err != nil {
		return fmt.Errorf("recrawl: remove %s: %w", name, err)
	}
	if err := c.removeMarks(ctx, name); err != nil {
		return fmt.Errorf("recrawl: remove %s: %w", name, err)
	}
	return nil
}

// removeMarks removes the marks of a segment that is not there any more.
func (c *Crawler) removeMarks(ctx context.Context, name string) error {
	round, err := c.roundState(ctx, name)
	if err != nil {
		return err
	}
	return c.removeNumberedMarks(ctx, name, round.Number)
}

// removeNumberedMarks is removeMarks for a segment with that number in the feed, zero if it
// is not there.
func (c *Crawler) removeNumberedMarks(ctx context.Context, name string, number int64) error {
	marks := c.clearedStateMarks(ctx, name)
	if number > 0 {
		if err := c.unpublish(ctx, number, marks); err != nil {
			return err
		}
	}
	for _, mark := range []string{update.SegmentMark(name), rank.SegmentMark(name), segment.RoundMark(name), invertMark(name)} {
		marks[mark] = ""
	}
	return c.setMarks(ctx, marks)
}

// DoneSegments returns the segments that are done, oldest first.
func (c *Crawler) DoneSegments(ctx context.Context) ([]string, error) {
	done, err := c.doneRounds(ctx)
	var names []string
	for _, d := range done {
		names = append(names, d.name)
	}
	return names, err
}

// doneRound is a segment that is done, and its number in the feed, zero if it is not there.
type doneRound struct {
	name   string
	number int64
}

// doneRounds returns the segments that are done, oldest first.
func (c *Crawler) doneRounds(ctx context.Context) (done []doneRound, err error) {
	for name, err := range c.stores.Segments.List(ctx) {
		if err != nil {
			return nil, fmt.Errorf("recrawl: %w", err)
		}
		r, err := c.roundState(ctx, name)
		if err != nil {
			return nil, err
		}
		if r.Done {
			done = append(done, doneRound{name, r.Number})
		}
	}
	return done, nil
}

// unfinished returns the oldest segment that is neither done nor damaged, "" if there is
// none, and the damaged ones that were found on the way.
func (c *Crawler) unfinished(ctx context.Context) (oldest string, damaged []string, err error) {
	for name, err := range c.stores.Segments.List(ctx) {
		if err != nil {
			return "", damaged, fmt.Errorf("recrawl: %w", err)
		}
		if c.isSetAside(name) {
			continue
		}
		r, err := c.roundState(ctx, name)
		if err != nil {
			return "", damaged, err
		}
		if r.Done {
			continue
		}
		// A segment that another crawler is making is not ours.
		switch ok, err := segment.Has[crawldb.Datum](ctx, c.stores.Segments, name); {
		case isDamageOf(err, name):
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

// roundState returns how far a segment has come after its update.
func (c *Crawler) roundState(ctx context.Context, name string) (segment.Round, error) {
	mark, err := c.readMark(ctx, segment.RoundMark(name))
	if err != nil {
		return segment.Round{}, err
	}
	r, err := segment.ParseRound(mark)
	if err != nil {
		err = fmt.Errorf("recrawl: mark of %s: %w", name, err)
	}
	return r, err
}

// readMark reads a mark, "" if there is none.
func (c *Crawler) readMark(ctx context.Context, name string) (string, error) {
	mark, err := c.stores.Crawl.Mark(ctx, name)
	if err != nil {
		return "", fmt.Errorf("recrawl: %w", err)
	}
	return mark, nil
}

// setMark writes a mark; an empty value removes it.
func (c *Crawler) setMark(ctx context.Context, name, value string) error {
	if err := c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(name, value)}); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	return nil
}

// Updated reports whether a segment was folded into the crawl db.
func (c *Crawler) Updated(ctx context.Context, name string) (bool, error) {
	done, err := update.Done(ctx, c.stores.Crawl, name)
	if err != nil {
		err = fmt.Errorf("recrawl: %w", err)
	}
	return done, err
}

// Finish marks a segment as done, so that no round takes it up again. It is for
// callers that run the stages one by one; a round calls it itself. If there is no such
// segment, the error is segment.ErrNotFound.
func (c *Crawler) Finish(ctx context.Context, name string) error {
	for there, err := range c.stores.Segments.List(ctx) {
		if err != nil {
			return fmt.Errorf("recrawl: finish %s: %w", name, err)
		}
		if there != name {
			continue
		}
		if updated, err := c.Updated(ctx, name); err != nil {
			return err
		} else if updated { // otherwise it has no events
			if err := c.publish(ctx, name); err != nil {
				return err
			}
		}
		return c.finishSegment(ctx, name)
	}
	return fmt.Errorf("recrawl: finish %s: %w", name, segment.ErrNotFound)
}

// finishSegment marks a segment as done, and in the same step counts its visits, once. If two are
// done at the same time, by Finish or a round, they are counted one after the other.
func (c *Crawler) finishSegment(ctx context.Context, name string) error {
	marks := c.clearedStateMarks(ctx, name)
	if err := c.accountMutex.lock(ctx); err != nil {
		return err
	}
	defer c.accountMutex.unlock()
	round, err := c.roundState(ctx, name)
	if err != nil || round.Done {
		return err
	}
	if p := c.planner(); p != nil {
		if marks[accountMark], err = c.countVisits(ctx, name, p.VisitsPerDay()); err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
	}
	written, err := c.addHistory(ctx, marks)
	if err != nil {
		return err
	}
	marks[segment.RoundMark(name)] = segment.Round{Done: true, Number: round.Number}.String()
	if err := c.setMarks(ctx, marks); err != nil {
		return err
	}
	written()
	return nil
}

// hasMarks reports whether a segment has left a mark.
func (c *Crawler) hasMarks(ctx context.Context, name string) (bool, error) {
	for _, mark := range []string{update.SegmentMark(name), rank.SegmentMark(name), segment.RoundMark(name)} {
		if value, err := c.stores.Crawl.Mark(ctx, mark); err != nil || value != "" {
			return value != "", err
		}
	}
	return false, nil
}
