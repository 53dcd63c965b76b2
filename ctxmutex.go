package recrawl

import "context"

// A ctxMutex is a mutex; waiting for it ends when a context does.
type ctxMutex chan struct{} // full while it is locked

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// lock locks the mutex, or returns the error of the context if that ends first. A free mutex
// is locked even if the context has ended: the stores, which are called next, return its error.
func (t ctxMutex) lock(ctx context.Context) error {
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

func (t ctxMutex) unlock() { <-t }
