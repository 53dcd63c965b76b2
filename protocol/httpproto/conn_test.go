package httpproto

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Two visits may wait for one connection, since the transport offers it for reuse before
// it has looked whether more came than the answer. Neither is forgotten.
func TestSettleWakesAll(t *testing.T) {
	for _, wake := range []string{"reading", "closed"} {
		synctest.Test(t, func(t *testing.T) {
			c := new(conn)
			var settled atomic.Int32
			for range 2 {
				go func() {
					if c.settle(t.Context()) {
						settled.Add(1)
					}
				}()
				synctest.Wait()
			}
			field := &c.reading
			if wake == "closed" {
				field = &c.closed
			}
			c.set(field, true)
			synctest.Wait()
			if n := settled.Load(); n != 2 {
				t.Errorf("%s: %d of 2 were woken", wake, n)
			}
		})
	}
}
