package recrawl

import "context"

// A turn is a lock that one can stop waiting for.
type turn chan struct{} // full while somebody has it

func newTurn() turn { return make(turn, 1) }

// take waits for the turn until the context ends. A free turn is taken even if the context
// has ended: the stores, which are asked next, say so.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) give() { <-t }
