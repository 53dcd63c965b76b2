//go:build unix

package main_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/webtest"
)

var killPages = flag.Int("kill-pages", 0, "kill crawls of a web of `N` pages every few hundred milliseconds, and -kills times in all")

// TestKillLoop kills a crawl of a larger web, and the crawl that continues it, and so on,
// every few milliseconds until one finishes. The long form is
//
//	go test ./cmd/recrawl -run TestKillLoop -kill-pages 5000 -kills 100 -timeout 2h -v
func TestKillLoop(t *testing.T) {
	t.Parallel()
	pages, most, longest := 240, testlevel.Pick(4, 8), 120*time.Millisecond
	if *killPages > 0 {
		pages, most, longest = *killPages, max(*kills, 1), 500*time.Millisecond
	}
	random := rand.New(rand.NewPCG(*killSeed, 1))
	begin := newPlace(t, &webtest.Web{Hosts: 8, PagesPerHost: pages / 8, LinksPerPage: 10, WordsPerPage: 60, Sitemaps: true})
	j := job{name: "crawl", now: killDay1, online: true, args: strings.Fields(fmt.Sprintf("crawl -d crawl -seeds seeds.txt -dedup -topN %d", pages/4))}

	undisturbed := begin.copy(t)
	defer undisturbed.remove()
	began := time.Now()
	if r := finish(t, undisturbed.command(j)); r.code != 0 {
		t.Fatalf("undisturbed: %+v", r)
	}
	took := time.Since(began)
	want := undisturbed.digest(t, j)
	visited := undisturbed.visits(t, j)
	asked := 0
	for _, n := range visited.asked {
		asked += n
	}
	t.Logf("undisturbed: %v, %d visits, %d requests", took, len(visited.of), asked)

	for done := 0; done < most; {
		p := begin.copy(t)
		p.site.reset()
		here := 0
		for ended := false; !ended && done+here < most; {
			c, out, errs := p.command(j), new(output), new(output)
			c.Stdout, c.Stderr = out, errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.Int64N(int64(longest))))
			c.Process.Kill()
			r := wait(t, c, out, errs)
			if r.code > 0 {
				t.Fatalf("kill %d: %+v", here, r)
			}
			if ended = r.code == 0; !ended {
				here++
			}
			if here%10 == 1 {
				p.sound(t, j, fmt.Sprintf("killed %d times", here))
			}
			p.leavesNothing(t, fmt.Sprintf("killed %d times", here))
		}
		if r := finish(t, p.command(j)); r.code != 0 {
			t.Fatalf("killed %d times, the end: %+v", here, r)
		}
		p.sound(t, j, fmt.Sprintf("killed %d times, and run to its end", here))
		if got := p.digest(t, j); got != want {
			t.Errorf("killed %d times: %s", here, difference(got, want))
		}
		more := -asked
		for _, n := range p.visits(t, j).asked {
			more += n
		}
		t.Logf("killed %d times: %d requests more", here, more)
		p.remove()
		done += max(here, 1)
	}
}
