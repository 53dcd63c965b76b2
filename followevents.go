package recrawl

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/recrawl/recrawl/segment"
)

// ErrNotInFeed says that a position is not in the change feed, or that events behind it are not kept any more.
var ErrNotInFeed = errors.New("not in the change feed, or not any more")

// FollowEvents yields the events of the change feed behind a position, which is the Position of an event, and
// waits for more until its context ends. It is for readers that come and go: it keeps no cursor, and no
// segment is kept for it. If there was no such event, or the segments behind it were removed or are damaged, the
// error is [ErrNotInFeed]. An empty position begins as o.Start says, which cannot be StartWithSnapshot. Any
// number of loops may run at a time. A reader that must not miss an event uses a [Consumer].
func (c *Crawler) FollowEvents(ctx context.Context, position string, o ConsumerOptions) iter.Seq2[PageEvent, error] {
	return func(yield func(PageEvent, error) bool) {
		if err := c.followEvents(ctx, position, o, func(e PageEvent) bool { return yield(e, nil) }); err != nil && !errors.Is(err, errStopped) {
			yield(PageEvent{}, err)
		}
	}
}

func (c *Crawler) followEvents(ctx context.Context, position string, o ConsumerOptions, yield func(PageEvent) bool) error {
	b, err := c.feedBounds(ctx)
	if err != nil {
		return err
	}
	at, ok := parseFeedPosition(position)
	switch {
	case ok && at.number >= b.Next:
		return fmt.Errorf("recrawl: follow %s: %w: no event has been published there", position, ErrNotInFeed)
	case ok:
		at.index++
	case position != "":
		return fmt.Errorf("recrawl: follow: %w: %q is no position", ErrNotInFeed, position)
	case o.Start == StartNow:
		at.number = b.Next
	case o.Start == StartAtBeginning:
		at.number = b.First
	default:
		return errors.New("recrawl: follow: a reader without a cursor gets no snapshot")
	}
	for ; ; at = (feedPosition{number: at.number + 1}) {
		for {
			news := c.feedNews.wait()
			if b, err = c.feedBounds(ctx); err != nil {
				return err
			}
			if at.number < b.Next {
				break
			}
			select {
			case <-news:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s, err := c.feedSegment(ctx, at.number)
		if err != nil {
			return err
		}
		if s.Segment == "" {
			return fmt.Errorf("recrawl: follow %v: %w", at, ErrNotInFeed)
		}
		if err := c.followSegment(ctx, s.Segment, at, o.EveryVisit, yield); err != nil {
			return err
		}
	}
}

// followSegment yields the events of a segment from a position on.
func (c *Crawler) followSegment(ctx context.Context, name string, at feedPosition, everyVisit bool, yield func(PageEvent) bool) error {
	for block, err := range c.eventBlocks(ctx, name, at.number, at.block) {
		var damage *segment.CorruptError
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, segment.ErrNotFound) || errors.As(err, &damage):
			return fmt.Errorf("recrawl: follow %v: %w: %w", at, ErrNotInFeed, err)
		default:
			return err
		}
		for i := at.index; i < len(block); i++ {
			if (everyVisit || block[i].changed) && !yield(block[i].PageEvent) {
				return errStopped
			}
		}
		at = feedPosition{at.number, at.block + 1, 0}
	}
	return nil
}
