package grace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestContextOutlivesParentByGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		keep, done := Context(ctx)
		defer done()
		if keep.Value(key{}) != "value" {
			t.Error("the values are lost")
		}
		cancel()
		time.Sleep(Period - 1)
		if keep.Err() != nil {
			t.Error("it is done too soon")
		}
		time.Sleep(2 * time.Nanosecond)
		if keep.Err() != context.Canceled {
			t.Errorf("a moment later: %v", keep.Err())
		}
	})
}

// A cancelled context leaves no goroutine: the bubble would not end.
func TestCancelEndsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		keep, done := Context(ctx)
		cancel()
		synctest.Wait()
		done()
		if keep.Err() == nil {
			t.Error("it is not done")
		}
	})
}
