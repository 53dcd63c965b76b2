package fetch_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// census is a web that counts goroutines whenever a request to it begins or ends.
type census struct {
	*site

	mu    sync.Mutex
	under int // requests
	// The most there were at once.
	asked, goroutines int
}

func (c *census) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	c.count(1)
	defer c.count(-1)
	return c.site.Fetch(ctx, r)
}

func (c *census) count(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under += more
	c.asked = max(c.asked, c.under)
	if runtime.NumGoroutine() > c.goroutines { // which costs less
		c.goroutines = max(c.goroutines, goroutines())
	}
}

// goroutines returns how many there are. The profile, which has no room for them, counts them
// while the world is stopped; runtime.NumGoroutine counts those that have just ended, too.
func goroutines() int {
	n, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	return n
}

// A fetch has a goroutine for each worker, one that writes and, while the list is read, one
// that reads it, however many hosts and pages wait; none is left when it returns.
func TestGoroutinesAreThoseOfTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ hosts, each, threads int }{
			{300, 3, 4},
			{300, 30, 4},
			{3000, 3, 4},
			{300, 3, 16},
		} {
			if raceEnabled {
				c.hosts /= 3
			}
			var urls []string
			for i := range c.each {
				for h := range c.hosts {
					urls = append(urls, fmt.Sprintf("http://h%d.test/%d", h, i))
				}
			}
			web := &census{site: &site{latency: 100 * time.Millisecond}}
			r := newRig(t, web.site, urls...)
			r.o.Protocol = web
			r.renew()
			// The pause is longer than the first visits to all hosts take together, so that
			// these wait for the next ones at the same time.
			r.o.Threads, r.o.SpareThreads, r.o.Politeness.Delay = c.threads, -1, 10*time.Minute
			waiting := 0
			r.o.OnVisit = func(_ segment.Visit, p fetch.Progress) { waiting = max(waiting, p.Hosts) }
			before := goroutines() // or more: those of the test before may be ending
			rep := r.run(seg)
			synctest.Wait() // for what is just ending
			after := goroutines()
			if rep.Visits[protocol.Success] != len(urls) || waiting != c.hosts || web.asked != c.threads {
				t.Errorf("%+v: visits %v, of %d hosts at once, %d requests at once", c, rep.Visits, waiting, web.asked)
			}
			n := web.goroutines - before - c.threads
			t.Logf("%+v: %d goroutines before, %d besides the workers, %d after", c, before, n, after)
			if n > 2 {
				t.Errorf("%+v: %d goroutines besides the workers, want 2 at the most", c, n)
			}
			if after > before {
				t.Errorf("%+v: %d goroutines after the fetch, %d before", c, after, before)
			}
		}
	})
}
