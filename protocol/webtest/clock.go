package webtest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until it is moved: its method Now can be
// used as a [Web.Now], and by a crawler as well. It may be used from many
// goroutines at once. The zero value shows the zero Time.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock returns a clock that shows t.
func NewClock(t time.Time) *Clock { return &Clock{t: t} }

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}
