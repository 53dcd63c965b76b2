package crawls

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
)

const day = 24 * time.Hour

// TestClock sets the clock of a crawl wrong in the middle of a round, by up to ten years, and
// right again, in the same round or some days and runs later. Each time the clock is set, a page
// gets at most one visit more than its interval asks for, and only one in all if a round sees the
// right time at its beginning and its end; none is ever left alone for longer than its interval
// and a round. Days are counted by the true time.
func TestClock(t *testing.T) {
	const year = 365 * day
	offs := []time.Duration{10 * year, -10 * year, year, -year, time.Hour, -time.Hour}
	for kind := range engineKinds {
		for i, off := range offs {
			if kind == pebble && i > 1 && i != 3 { // what it does besides is its index: far, both ways, and back
				continue
			}
			for _, brief := range []bool{true, false} {
				t.Run(fmt.Sprintf("%v/%v/brief=%v", kind, off, brief), func(t *testing.T) {
					c := &clockwork{off: off, brief: brief, rnd: rand.New(rand.NewPCG(uint64(i), 9)), visits: map[string][]time.Time{}}
					dir := t.TempDir() + "/db"
					synctest.Test(t, func(t *testing.T) { c.crawl(t, &home{kind: kind, dir: dir}) })
				})
			}
		}
	}
}

// clockwork is a crawl and its wrong clock.
type clockwork struct {
	off   time.Duration // by which the clock is wrong when it is
	brief bool          // it is right again before the round ends
	rnd   *rand.Rand
	web   webtest.Web
	right *webtest.Clock

	mu     sync.Mutex
	shift  time.Duration
	set    int // how often the clock was set
	at     []int
	asked  int // in this run
	visits map[string][]time.Time
}

// now is what the crawler takes for the time.
func (c *clockwork) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.right.Now().Add(c.shift)
}

// turn sets the clock wrong, or right. It is called with c.mu held.
func (c *clockwork) turn() {
	c.set++
	if c.shift == 0 {
		c.shift = c.off
	} else {
		c.shift = 0
	}
}

func (c *clockwork) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	c.mu.Lock()
	c.asked++
	if len(c.at) > 0 && c.asked == c.at[0] {
		c.at = c.at[1:]
		c.turn()
	}
	c.visits[r.URL] = append(c.visits[r.URL], c.right.Now())
	c.mu.Unlock()
	return c.web.Protocol().Fetch(ctx, r)
}

const (
	clockInterval = 7 * day
	clockDays     = 26
	clockRounds   = 20 // more of them in one run are a busy loop
)

func (c *clockwork) crawl(t *testing.T, h *home) {
	c.right = webtest.NewClock(start)
	c.web = webtest.Web{Hosts: 2, PagesPerHost: 12, Calm: true, Start: start.AddDate(-1, 0, 0), Now: c.right.Now}
	o := recrawl.Options{
		Agent: "recrawl-test", Protocol: c, Now: c.now, Run: recrawl.RunOptions{Rounds: clockRounds}, Retention: recrawl.Retention{Segments: 1},
		Schedule: &schedule.Default{DefaultInterval: clockInterval},
	}
	o.Fetch.Politeness.Delay, o.Fetch.Threads, o.Fetch.Politeness.ThreadsPerHost = -1, 4, 2

	if err := h.open(); err != nil {
		t.Fatal(err)
	}
	// When all pages are due, one round visits them all: 24, and two robots.txt.
	const from = 7
	until := from
	if !c.brief {
		until += 1 + c.rnd.IntN(5)
	}
	for n := range clockDays {
		if n > 0 {
			time.Sleep(time.Second) // of a day the engine would notice each tick
			c.right.Advance(day)
		}
		c.asked, c.at = 0, nil
		switch first := 1 + c.rnd.IntN(12); {
		case n == from && c.brief:
			c.at = []int{first, first + 1 + c.rnd.IntN(11)}
		case n == from:
			c.at = []int{first}
		case n == until:
			c.at = []int{first}
		}
		crawler, err := recrawl.New(h.stores, o)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if _, err := crawler.Inject(t.Context(), c.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
		}
		r, err := crawler.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Rounds >= clockRounds {
			t.Fatalf("day %d: %d rounds and no end", n, r.Rounds)
		}
		if n == until && c.shift != 0 { // too little was asked for
			c.turn()
		}
		if err := crawler.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	c.check(t)
}

func (c *clockwork) check(t *testing.T) {
	if c.set != 2 || c.shift != 0 {
		t.Fatalf("the clock was set %d times, and is wrong by %v", c.set, c.shift)
	}
	most := c.set
	if c.brief {
		most = 1
	}
	pages, again := 0, 0
	for url, at := range c.visits {
		if strings.HasSuffix(url, "/robots.txt") {
			if len(at) > clockDays+c.set {
				t.Errorf("%s was asked for %d times in %d days", url, len(at), clockDays)
			}
			continue
		}
		pages++
		extra := 0
		for i := 1; i < len(at); i++ {
			switch gap := at[i].Sub(at[i-1]); {
			case gap < clockInterval-day:
				extra++
			case gap > clockInterval+day:
				t.Errorf("%s was left alone for %v", url, gap)
			}
		}
		if extra > most {
			t.Errorf("%s was visited %d times too often, want at most %d: %v", url, extra, most, at)
		}
		if left := c.right.Now().Sub(at[len(at)-1]); left > clockInterval+day {
			t.Errorf("%s was visited %v ago for the last time", url, left)
		}
		again += extra
	}
	if pages < 20 {
		t.Errorf("%d pages were visited", pages)
	}
	if c.off.Abs() == time.Hour && again > 0 {
		t.Errorf("an hour made %d visits", again)
	}
	if c.off.Abs() > time.Hour && again == 0 {
		t.Error("the clock made no difference: it was never wrong")
	}
}
