package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// graph is a web by its links. A page without any is a plain one; one that is not
// there is not found.
type graph map[string][]string

// randomGraph has hosts and pages, with many ways to each.
func randomGraph(seed uint64, hosts, pages int) graph {
	r := rand.New(rand.NewPCG(seed, 1))
	url := func() string {
		return fmt.Sprintf("http://h%d.example.test/%d", r.IntN(hosts), r.IntN(pages))
	}
	g := graph{}
	for h := range hosts {
		for p := range pages {
			from := fmt.Sprintf("http://h%d.example.test/%d", h, p)
			g[from] = nil
			for range r.IntN(9) {
				to := url()
				if r.IntN(3) > 0 { // of the same host
					to = fmt.Sprintf("http://h%d.example.test/%d", h, r.IntN(pages))
				}
				g[from] = append(g[from], to)
			}
			if r.IntN(9) == 0 {
				g[from] = append([]string{from, from + "/missing"}, g[from]...)
			}
		}
	}
	return g
}

func (g graph) answer(url string) protocol.Response {
	links, ok := g[url]
	if !ok {
		return code(protocol.NotFound)
	}
	var b strings.Builder
	for _, l := range links {
		fmt.Fprintf(&b, "<a href=%q>x</a>", l)
	}
	return body("text/html", b.String())
}

// reach returns the pages to visit besides a list, by definition: breadth first.
func (g graph) reach(list []string, depth, most int, external bool, admit func(string) bool) map[string]bool {
	besides := map[string]bool{}
	front := list
	for range depth {
		var next []string
		for _, from := range front {
			n := 0
			taken := map[string]bool{from: true}
			for _, to := range g[from] {
				same := hostdb.ByHost.Key(from) == hostdb.ByHost.Key(to)
				if taken[to] || slices.Contains(list, to) || !same && !external || admit != nil && !admit(to) {
					continue
				}
				if taken[to] = true; n == most {
					break
				}
				n++
				if !besides[to] {
					besides[to] = true
					next = append(next, to)
				}
			}
		}
		front = next
	}
	return besides
}

func (g graph) some(n int) []string {
	return slices.Sorted(maps.Keys(g))[:n]
}

// unlistedVisits returns the visits of pages that are not on the list.
func unlistedVisits(visits map[string]segment.Visit, list []string) map[string]bool {
	m := map[string]bool{}
	for url := range visits {
		if !slices.Contains(list, url) {
			m[url] = true
		}
	}
	return m
}

func TestFollowDepth(t *testing.T) {
	g := randomGraph(7, 4, 60)
	list := g.some(9)
	for _, c := range []struct {
		depth, links int
		external     bool
	}{{0, 0, false}, {-1, 5, true}, {1, 0, false}, {1, 1, true}, {2, 0, false}, {2, 3, true}, {3, 2, false}, {3, 9, true}, {40, 1, true}, {40, 9, true}} {
		want := g.reach(list, c.depth, max(c.links, 1), c.external, nil)
		if c.links == 0 {
			want = g.reach(list, c.depth, 4, c.external, nil)
		}
		if c.depth > 0 && len(want) < 3 {
			t.Fatalf("%v: a graph without ways", c)
		}
		for seed := range uint64(4) {
			synctest.Test(t, func(t *testing.T) {
				lag := rand.New(rand.NewPCG(seed, 3))
				s := &site{answer: g.answer, slow: map[string]time.Duration{}}
				for url := range g {
					s.slow[url] = time.Duration(lag.IntN(9000)) * time.Millisecond
				}
				r := newRig(t, s, list...)
				r.o.Following.Depth, r.o.Following.MaxLinks, r.o.Following.External = c.depth, c.links, c.external
				r.o.Threads = []int{1, 2, 5, 50}[seed]
				var last fetch.Progress
				r.o.OnVisit = func(_ segment.Visit, p fetch.Progress) { last = p }
				rep := r.run(seg)
				if got := unlistedVisits(r.visits(seg), list); !maps.Equal(got, want) {
					t.Errorf("%v with %d threads: %d are visited besides, want %d", c, r.o.Threads, len(got), len(want))
				}
				if rep.Followed != len(want) || rep.Listed != len(list) || rep.Visited() != len(list)+len(want) || last.Done != last.Listed || last.Followed != len(want) {
					t.Errorf("%v: %+v, %+v", c, rep, last)
				}
				once := map[string]int{}
				for _, a := range s.of("/") {
					once[a.url]++
				}
				for url, n := range once {
					if n != 1 {
						t.Errorf("%s was asked for %d times", url, n)
					}
				}
				for h := range 4 {
					for _, gap := range gaps(t, s.of(fmt.Sprintf("h%d.", h))) {
						if gap < 5*time.Second {
							t.Errorf("%v: a pause of %v", c, gap)
						}
					}
				}
				aligned(t, r.db.Segments(), seg)
			})
		}
	}
}

// A fetch that dies visits the same pages when it continues.
func TestFollowSurvivesKills(t *testing.T) {
	g := randomGraph(8, 3, 40)
	list := g.some(5)
	want := g.reach(list, 3, 4, true, nil)
	for n := 3; n < 60; n += 4 {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 300 * time.Millisecond, answer: g.answer}
			r := newRig(t, s, list...)
			r.o.Politeness.Delay, r.o.Following.Depth, r.o.Following.External = time.Second, 3, true
			for left := n; ; left += 5 {
				r.renew()
				calls := left
				_, err := fetch.Run(t.Context(), dying{r.db.Segments(), &calls}, seg, r.o)
				if err == nil {
					break
				}
				if !errors.Is(err, errDied) {
					t.Fatal(err)
				}
			}
			if got := unlistedVisits(r.visits(seg), list); !maps.Equal(got, want) {
				t.Errorf("dead after %d: %d are visited besides, want %d", n, len(got), len(want))
			}
			aligned(t, r.db.Segments(), seg)
		})
	}
}

// Lists that are fetched apart share no host: each follows within its queues.
func TestFollowInLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := randomGraph(9, 4, 40)
		var list []string
		for h := range 4 {
			list = append(list, fmt.Sprintf("http://h%d.example.test/0", h), fmt.Sprintf("http://h%d.example.test/1", h))
		}
		s := &site{answer: g.answer}
		r := newRig(t, s)
		r.spread("lists", 2, list...)
		r.o.Following.Depth, r.o.Following.External = 2, true
		for _, i := range []int{1, 0} {
			r.o.Lists = []int{i}
			r.run("lists")
		}
		want := g.reach(list, 2, 4, false, nil)
		if got := unlistedVisits(r.visits("lists"), list); !maps.Equal(got, want) || len(want) < 5 {
			t.Errorf("%d are visited besides, want %d", len(got), len(want))
		}
	})
}

// What is followed obeys robots.txt and the rules, and a host that fails is left.
func TestFollowIsPolite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{robots: "User-agent: *\nDisallow: /no", answer: func(url string) protocol.Response {
			switch {
			case strings.HasPrefix(url, "http://down."):
				return code(protocol.Failed)
			case url == "http://"+host+"/":
				return body("text/html", `<a href=/no>n</a> <a href=/rejected>r</a> <a href=/%79es>y</a> <a rel=nofollow href=/nofollow>z</a>
					<a href=http://down.example.test/1>1</a> <a href=http://down.example.test/2>2</a> <a href=http://down.example.test/3>3</a> <a href=http://busy.example.test/>b</a>`)
			}
			return body("text/html", "x")
		}}
		r := newRig(t, s, "http://"+host+"/")
		r.o.Following.Depth, r.o.Following.MaxLinks, r.o.Following.External, r.o.Politeness.MaxFailures = 9, 99, true, 2
		r.o.Rules = &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{&urlfilter.Basic{}}, Filters: []urlfilter.Filter{without("rejected")}}
		r.o.Protocol = busyRobots{s}
		r.renew()
		rep := r.run(seg)
		got := map[string]string{}
		for url, v := range r.visits(seg) {
			got[url] = v.Outcome.Code.String()
		}
		want := map[string]string{
			"http://" + host + "/": "success", "http://" + host + "/no": "robots_denied", "http://" + host + "/yes": "success",
			"http://down.example.test/1": "failed", "http://down.example.test/2": "failed", // and no trace of 3, nor of what has no robots.txt
		}
		if !maps.Equal(got, want) || rep.Followed != 4 {
			t.Errorf("%v, %+v", got, rep)
		}
	})
}

// busyRobots is a site with one host whose robots.txt is unavailable.
type busyRobots struct{ *site }

func (b busyRobots) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if r.URL == "http://busy.example.test/robots.txt" {
		return code(protocol.Busy), nil
	}
	return b.site.Fetch(ctx, r)
}

type without string

func (w without) Accept(url string) bool { return !strings.Contains(url, string(w)) }
func (w without) String() string         { return "without " + string(w) }

// Nothing is followed after a time limit, or without a parser.
func TestFollowingOfEndlessLinksEnds(t *testing.T) {
	g := randomGraph(8, 3, 40)
	list := g.some(5)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{answer: g.answer}, list...)
		r.o.Following.Depth, r.o.Limits.TimeLimit = 40, time.Minute
		began := time.Now()
		if rep := r.run(seg); rep.TimedOut != 0 || rep.Followed == 0 || time.Since(began) > time.Minute {
			t.Errorf("%+v after %v", rep, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{answer: g.answer}, list...)
		r.o.Following.Depth, r.o.Parser = 40, nil
		if rep := r.run(seg); rep.Followed != 0 || rep.Visited() != 5 {
			t.Errorf("%+v", rep)
		}
	})
}

// The crawl db learns of what was followed as if it had been listed, and a page
// that it has keeps what was known.
func TestUpdateReadsFollowedPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := graph{"http://" + host + "/": {"http://" + host + "/new", "http://" + host + "/old", "http://" + host + "/missing"}, "http://" + host + "/new": nil, "http://" + host + "/old": nil}
		r := newRig(t, &site{answer: g.answer})
		now := time.Now().UTC()
		r.lease("s2", now.Add(-time.Hour), "http://"+host+"/", "http://"+host+"/2", "http://"+host+"/3")
		due := now.Add(time.Hour)
		err := r.db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{"http://" + host + "/old"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
			d := crawldb.Datum{URL: "http://" + host + "/old", Status: crawldb.Fetched, FetchTime: due, Score: 3, LeasedBy: "other", LeasedUntil: due}
			d.Meta.Set("kept", "yes")
			return &d, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		r.o.Following.Depth = 1
		if rep := r.run("s2"); rep.Followed != 3 {
			t.Errorf("%+v", rep)
		}
		rep, err := update.Run(t.Context(), r.db.Crawl(), r.db.Segments(), "s2", update.Options{})
		if err != nil || rep.Visits != 6 || rep.Unvisited != 0 {
			t.Errorf("%+v, %v", rep, err)
		}
		for url, want := range map[string]crawldb.Status{"/new": crawldb.Fetched, "/old": crawldb.Fetched, "/missing": crawldb.Gone} {
			d, err := r.db.Crawl().Get(t.Context(), "http://"+host+url)
			if err != nil || d.Status != want || d.LastFetch.Before(now) || !d.FetchTime.After(due) {
				t.Errorf("%s: %+v, %v", url, d, err)
			}
			if v, _ := d.Meta.Get("kept"); url == "/old" && (d.Score != 3 || v != "yes" || d.LeasedBy != "other") {
				t.Errorf("%+v has lost something", d)
			}
		}
	})
}
