package fetch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// A host that has many pages is not kept waiting by hosts that have one, however many
// these are: what it takes at the least is most of what the fetch takes.
func TestLargeHostIsNotVisitedLast(t *testing.T) {
	for _, depth := range []int{0, 30} { // of QueueDepth: all of the list, and an eighth of it
		synctest.Test(t, func(t *testing.T) {
			const pages, small = 40, 60
			var urls []string
			for i := range pages {
				urls = append(urls, fmt.Sprintf("http://large.test/%d", i))
				for h := range small {
					urls = append(urls, fmt.Sprintf("http://small-%d-%d.test/", i, h))
				}
			}
			s := &site{latency: time.Second}
			r := newRig(t, s, urls...)
			r.o.Politeness.NoRobots, r.o.Threads, r.o.SpareThreads, r.o.Limits.QueueDepth = true, 10, -1, depth
			began := time.Now()
			if rep := r.run(seg); rep.Visits[protocol.Success] != len(urls) {
				t.Errorf("%v", rep.Visits)
			}
			// 240 s at the least: the pauses of the one, or the visits to all by ten threads.
			if took := time.Since(began); took > 300*time.Second {
				t.Errorf("with a depth of %d it took %v", depth, took)
			}
			for _, gap := range gaps(t, s.of("large.test")) {
				if gap < 5*time.Second {
					t.Errorf("a pause of %v", gap)
				}
			}
		})
	}
}

// A host with one page is not delayed by many hosts with more pages than there are workers.
func TestSmallHostIsNotVisitedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large, each = 30, 50
		var urls []string
		for i := range each {
			for h := range large {
				urls = append(urls, fmt.Sprintf("http://large-%d.test/%d", h, i))
			}
		}
		urls = append(urls, "http://small.test/")
		s := &site{latency: time.Second}
		r := newRig(t, s, urls...)
		r.o.Politeness.NoRobots, r.o.Threads, r.o.SpareThreads = true, 2, -1
		began := time.Now()
		r.run(seg)
		if at, took := s.of("small.test")[0].begin.Sub(began), time.Since(began); at > took/2 {
			t.Errorf("the small host is asked after %v of %v", at, took)
		}
	})
}
