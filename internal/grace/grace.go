// Package grace gives what is to be finished a moment after a context is done.
package grace

import (
	"context"
	"time"
)

// Period is how long storing what is complete may take after a run was cancelled:
// long for a disk that works, and short for who waits for a run to end that does this
// more than once.
const Period = 500 * time.Millisecond

// Context returns a context with the values of ctx that is done a [Period] after
// ctx is, or when cancel is called, which it must be.
func Context(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	keep, cancelKeep := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(Period, func() { cancelKeep(context.Cause(ctx)) })
		context.AfterFunc(keep, func() { t.Stop() })
	})
	return keep, func() {
		stop()
		cancelKeep(nil)
	}
}
