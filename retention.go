package recrawl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/segment"
)

// Retention says how long done segments are kept. No segment is removed before all consumers have
// acknowledged its events, except by Bytes. The newest one is always kept. Segments are removed at the end of a
// round, the oldest first, and by [Crawler.DropConsumer].
type Retention struct {
	// Segments removes all but the newest so many. Zero means no limit.
	Segments int
	// Age removes segments whose round ended longer ago. Zero means no limit.
	Age time.Duration
	// Bytes removes segments while all of them take more, acknowledged or not: it bounds
	// the disk. A consumer that is behind lapses then; see [Consumer]. Zero means no limit.
	Bytes int64
}

// doneSegment is a segment that retention may remove.
type doneSegment struct {
	feedSegment
	number int64
}

// applyRetention removes the segments that are not to be kept any more, and then their marks.
func (c *Crawler) applyRetention(ctx context.Context) error {
	o := &c.opts.Retention
	if *o == (Retention{}) {
		return nil
	}
	if err := c.feedMutex.lock(ctx); err != nil {
		return err
	}
	defer c.feedMutex.unlock()
	if err := c.dropLostSegments(ctx); err != nil {
		return err
	}
	done, total, err := c.doneSegments(ctx)
	if err != nil {
		return err
	}
	consumers, err := c.consumerStates(ctx)
	if err != nil {
		return err
	}
	var remove []string
	for i, s := range done[:max(0, len(done)-1)] {
		old := o.Segments > 0 && len(done)-i > o.Segments || o.Age > 0 && c.opts.Now().Sub(s.Time) > o.Age
		large := o.Bytes > 0 && total > o.Bytes
		var behind []string
		if s.number > 0 {
			behind = consumersBehind(consumers, s.number)
		}
		if !large && (!old || len(behind) > 0) {
			continue
		}
		for _, name := range behind {
			if err := c.lapse(ctx, name, consumers[name], "segments take "+strconv.FormatInt(total, 10)+" bytes, and Retention.Bytes is "+strconv.FormatInt(o.Bytes, 10)); err != nil {
				return err
			}
		}
		total -= s.Bytes
		remove = append(remove, s.Segment)
	}
	if len(remove) == 0 {
		return nil
	}
	// If the machine dies, the acknowledgements must not be lost while the segments are.
	if err := c.stores.Crawl.Sync(ctx); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	for _, name := range remove {
		if err := c.removeSegment(ctx, name); err != nil && !errors.Is(err, segment.ErrBusy) {
			return err
		}
	}
	return nil
}

// doneSegments returns the segments that are done, oldest first, and the bytes of all of them.
func (c *Crawler) doneSegments(ctx context.Context) (done []doneSegment, total int64, err error) {
	rounds, err := c.doneRounds(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range rounds {
		s := doneSegment{number: r.number}
		if r.number > 0 {
			if s.feedSegment, err = c.feedSegment(ctx, r.number); err != nil {
				return nil, 0, err
			}
		}
		if s.Segment != r.name { // merged, or of a former version
			s = doneSegment{feedSegment: feedSegment{Segment: r.name, Time: segment.TimeOf(r.name)}}
			if s.Bytes, err = c.segmentBytes(ctx, r.name); err != nil {
				return nil, 0, err
			}
		}
		total += s.Bytes
		done = append(done, s)
	}
	for i := len(done) - 1; i > 0; i-- {
		// None is younger than the next: its time is later if the clock was ahead.
		if next := done[i].Time; next.Before(done[i-1].Time) {
			done[i-1].Time = next
		}
	}
	return done, total, nil
}

// dropLostSegments removes the marks of segments at the beginning of the feed that are not there any more:
// a process may have died between the removal of a segment and that of its marks.
func (c *Crawler) dropLostSegments(ctx context.Context) error {
	for {
		b, err := c.feedBounds(ctx)
		if err != nil || b.First >= b.Next {
			return err
		}
		s, err := c.feedSegment(ctx, b.First)
		if err != nil {
			return err
		}
		if _, err := c.stores.Segments.Stat(ctx, s.Segment, segment.EventPart); s.Segment != "" && !errors.Is(err, segment.ErrNotFound) {
			return ctx.Err() // it is there, whole or not
		}
		if err := c.removeNumberedMarks(ctx, s.Segment, b.First); err != nil {
			return err
		}
	}
}
