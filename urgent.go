package recrawl

import (
	"context"
	"time"
)

// urge says that something urgent is to be selected: it ends the wait of a Run, or a round that
// takes long.
func (c *Crawler) urge() {
	select {
	case c.urgent <- struct{}{}:
	default:
	}
	c.wake()
}

// forgetUrgent is called before a selection, which finds what was urgent until then.
func (c *Crawler) forgetUrgent() {
	select {
	case <-c.urgent:
	default:
	}
}

// A round that is ended for something urgent has gone on for at least this long, and this many
// times as long as its selection took: what it leaves was leased for nothing.
const (
	leastRound      = 2 * time.Second
	leastSelections = 10
)

// endForUrgent returns a channel that is closed when a fetch that begins now is to end because
// something urgent is to be selected. stop releases what it takes.
func (c *Crawler) endForUrgent(ctx context.Context, selecting time.Duration) (end <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	closed, done := make(chan struct{}), make(chan struct{})
	least := time.NewTimer(max(leastRound, leastSelections*selecting))
	go func() {
		defer close(done)
		defer least.Stop()
		select {
		case <-ctx.Done():
			return
		case <-c.urgent:
		}
		select {
		case <-ctx.Done():
		case <-least.C:
			close(closed)
		}
	}()
	return closed, func() { cancel(); <-done }
}
