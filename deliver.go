package recrawl

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/recrawl/recrawl/segment"
)

// delivered counts the events of a block for which OnPage has returned, so that this process
// does not report them again. Without it, an OnPage that fails once in a hundred calls would
// never get to the end of a block.
type delivered struct {
	segment       string
	block, events int
}

// deliver hands the events of a segment to OnPage, from the block its mark has reached.
func (c *Crawler) deliver(ctx context.Context, name string) (events int, err error) {
	if c.opts.OnPage == nil {
		return 0, nil
	}
	round, err := c.roundState(ctx, name)
	if err != nil {
		return 0, err
	}
	for block, err := range c.eventBlocks(ctx, name, round.Number, round.Delivered) {
		if err != nil {
			return events, err
		}
		n, err := c.deliverBlock(ctx, name, round.Delivered, block)
		if events += n; err != nil {
			return events, err
		}
		round.Delivered++
		if err := c.setMark(ctx, segment.RoundMark(name), round.String()); err != nil {
			return events, err
		}
	}
	return events, nil
}

// deliverBlock hands the events of one block to OnPage.
func (c *Crawler) deliverBlock(ctx context.Context, name string, number int, block []blockEvent) (events int, err error) {
	done := 0 // events of the block that this process has delivered
	if c.delivered.segment == name && c.delivered.block == number {
		done = c.delivered.events
	}
	for i := done; i < len(block); i++ {
		e := &block[i]
		if !c.opts.EveryVisit && !e.changed {
			continue
		}
		if err := c.callOnPage(ctx, e.PageEvent); err != nil {
			c.delivered = delivered{name, number, i}
			return events, fmt.Errorf("recrawl: OnPage %s: %w", e.URL, err)
		}
		events++
		if err := ctx.Err(); err != nil {
			c.delivered = delivered{name, number, i + 1}
			return events, err
		}
	}
	return events, nil
}

// callOnPage calls OnPage, and turns a panic in it into an error.
func (c *Crawler) callOnPage(ctx context.Context, e PageEvent) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.opts.Logger.Error("recrawl: OnPage panicked", "url", e.URL, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return c.opts.OnPage(ctx, e)
}
