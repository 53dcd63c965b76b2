// Package grace gives work half a second to finish after a context is done, so that
// complete results are still stored. It does not decide which work that is. Start with
// [Context].
package grace

import (
	"context"
	"time"
)

// Period is how long storing complete results may take after a run was cancelled: long
// for a working disk, and short even for a run that does this more than once before it
// ends.
const Period = 500 * time.Millisecond

// Context returns a context with the values of ctx that is done a [Period]
// after ctx is, or when cancel is called. cancel must be called.
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
