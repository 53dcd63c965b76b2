package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
)

// turns writes a fetch list whose records are assigned to lists.
func (r *rig) turns(name string, turn func(url string) segment.Placement, urls ...string) {
	r.t.Helper()
	w, err := segment.NewWriter[crawldb.Datum](r.t.Context(), r.db.Segments(), name, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for some := range slices.Chunk(urls, 4) {
		var data []crawldb.Datum
		for _, u := range some {
			d := crawldb.Datum{URL: u, Status: crawldb.Unfetched}
			turn(u).Set(&d)
			data = append(data, d)
		}
		if err := w.Append(r.t.Context(), data); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := w.Commit(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// byDigit puts host hN on list N modulo n.
func byDigit(n int) func(string) segment.Placement {
	return func(url string) segment.Placement {
		return segment.Placement{List: int(url[len("http://h")]-'0') % n, Lists: n}
	}
}

const listed = "20260105090000-000"

// stored counts the blocks that parts of single lists hold.
func stored(t *testing.T, s segment.Store, name string, lists int) int {
	t.Helper()
	n := 0
	for i := range lists {
		for _, part := range segment.Parts()[1:] {
			info, err := s.Stat(t.Context(), name, segment.ListPart(part, i))
			if err != nil && !errors.Is(err, segment.ErrNotFound) {
				t.Fatal(err)
			}
			if err == nil {
				n += info.Blocks
			}
		}
	}
	return n
}

func TestListsFetchedOneByOne(t *testing.T) {
	for _, runs := range [][][]int{{{0}, {1}, {2}}, {{0, 2}, {1}}, {{2, 1, 0}}, {{1}, {1, 0, 2}}, {{1}, nil}} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 300 * time.Millisecond}
			r := newRig(t, s)
			urls := threeHosts(4)
			r.turns(listed, byDigit(3), urls...)
			visits := 0
			for i, lists := range runs {
				r.o.Lists = lists
				rep := r.run(listed)
				visits += rep.Visited()
				done, err := segment.Has[segment.Visit](t.Context(), r.db.Segments(), listed)
				if last := i == len(runs)-1; err != nil || done != last || (rep.Left == 0) != last {
					t.Errorf("%v after run %d: complete %v, %+v, %v", runs, i, done, rep, err)
				}
			}
			if visits != 12 || len(r.visits(listed)) != 12 || len(r.parses(listed)) != 12 {
				t.Errorf("%v: %d visits, %d kept", runs, visits, len(r.visits(listed)))
			}
			aligned(t, r.db.Segments(), listed)
			if n := stored(t, r.db.Segments(), listed, 3); n != 0 {
				t.Errorf("%d blocks are kept twice", n)
			}
			for _, lists := range [][]int{nil, {0}, {1, 2}} {
				r.o.Lists = lists
				if rep := r.run(listed); !rep.Already || rep.Visited() != 0 || rep.Left != 0 {
					t.Errorf("again: %+v", rep)
				}
			}
		})
	}
}

// Two fetches share the stores and nothing else: each host has its pause, each
// page one visit.
func TestListsFetchedAtOnce(t *testing.T) {
	for _, runs := range [][][]int{{{0, 2}, {1}}, {{0}, {1}, {2}}} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 300 * time.Millisecond}
			r := newRig(t, s)
			r.turns(listed, byDigit(3), threeHosts(20)...)
			r.o.Politeness.Delay = time.Second
			var wg sync.WaitGroup
			for _, lists := range runs {
				o := r.o
				o.Lists = lists
				wg.Go(func() {
					rep, err := fetch.Run(t.Context(), r.db.Segments(), listed, o)
					if err != nil || rep.Visited() != 20*len(lists) {
						t.Errorf("%v: %+v, %v", lists, rep, err)
					}
				})
			}
			wg.Wait()
			if len(r.visits(listed)) != 60 {
				t.Errorf("%d visits", len(r.visits(listed)))
			}
			aligned(t, r.db.Segments(), listed)
			once := map[string]int{}
			for _, a := range s.of("http") {
				once[a.url]++
			}
			for u, n := range once {
				if n != 1 && !strings.HasSuffix(u, "robots.txt") {
					t.Errorf("%s was fetched %d times", u, n)
				}
			}
			for h := range 3 {
				for _, gap := range gaps(t, s.of(fmt.Sprintf("h%d.", h))) {
					if gap < time.Second {
						t.Errorf("pause of %v", gap)
					}
				}
			}
		})
	}
}

// So it is with lists made by domain, whose queues may be domains, and by address,
// whose queues are hosts.
func TestListsByDomainOrAddressFetchedAtOnce(t *testing.T) {
	for _, c := range []struct {
		made hostdb.By
		by   hostdb.By
	}{{hostdb.ByDomain, hostdb.ByDomain}, {hostdb.ByDomain, hostdb.ByHost}, {hostdb.ByIP, hostdb.ByHost}} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 200 * time.Millisecond}
			r := newRig(t, s)
			var urls []string
			for i := range 24 {
				urls = append(urls, fmt.Sprintf("http://%c.d%d.com/%d", 'a'+rune(i/3%2), i%3, i))
			}
			r.turns(listed, func(url string) segment.Placement {
				return segment.Placement{List: int(url[len("http://a.d")]-'0') % 2, Lists: 2, By: c.made}
			}, urls...)
			r.o.Politeness.Delay, r.o.Politeness.By = time.Second, c.by
			var wg sync.WaitGroup
			for list := range 2 {
				o := r.o
				o.Lists = []int{list}
				wg.Go(func() {
					if _, err := fetch.Run(t.Context(), r.db.Segments(), listed, o); err != nil {
						t.Errorf("%v: %v", c, err)
					}
				})
			}
			wg.Wait()
			if len(r.visits(listed)) != 24 {
				t.Errorf("%v: %d visits", c, len(r.visits(listed)))
			}
			aligned(t, r.db.Segments(), listed)
			for d := range 3 {
				queues := []string{fmt.Sprintf("a.d%d.com", d), fmt.Sprintf("b.d%d.com", d)}
				if c.by == hostdb.ByDomain {
					queues = []string{fmt.Sprintf(".d%d.com", d)}
				}
				for _, q := range queues {
					for _, gap := range gaps(t, s.of(q)) {
						if gap < time.Second {
							t.Errorf("%v: pause of %v at %s", c, gap, q)
						}
					}
				}
			}
		})
	}
}

// On a disk, what the lists held is freed, and a part that is gone from one is
// missed.
func TestListsOnDisk(t *testing.T) {
	for _, loss := range []bool{false, true} {
		s, err := dirstore.Open(t.TempDir(), dirstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, &site{})
		r.o.Politeness.Delay = -1
		r.turns(listed, byDigit(2), threeHosts(30)...)
		w, err := segment.NewWriter[crawldb.Datum](t.Context(), s, listed, 0)
		if err != nil {
			t.Fatal(err)
		}
		for block, err := range segment.Blocks[crawldb.Datum](t.Context(), r.db.Segments(), listed, 0) {
			if err := errors.Join(err, w.Append(t.Context(), block)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			r.o.Lists = []int{i}
			if loss && i == 1 {
				p, err := s.Append(t.Context(), listed, segment.ListPart(segment.ParseTextPart, 0), 0)
				if err := errors.Join(err, p.Close()); err != nil {
					t.Fatal(err)
				}
			}
			_, err := fetch.Run(t.Context(), s, listed, r.o)
			var corrupt *segment.CorruptError
			if lost := loss && i == 1; errors.As(err, &corrupt) != lost || !lost && err != nil {
				t.Fatalf("list %d: %v", i, err)
			}
		}
		if !loss {
			aligned(t, s, listed)
			if n := len(records(t, s, listed, visitURL)); n != 90 {
				t.Errorf("%d visits", n)
			}
			if n := stored(t, s, listed, 2); n != 0 {
				t.Errorf("%d blocks are kept twice", n)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// After a kill at any call of the store, a fetch of lists resumes where it was, and so does
// the join.
func TestListsSurviveTheirStore(t *testing.T) {
	for n := 1; ; n++ {
		finished := false
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 300 * time.Millisecond}
			r := newRig(t, s)
			r.turns(listed, byDigit(2), threeHosts(3)...)
			left := n
			dead := dying{r.db.Segments(), &left}
			o := r.o
			o.Lists = []int{0}
			_, err := fetch.Run(t.Context(), dead, listed, o)
			if err == nil {
				o.Lists = []int{1}
				_, err = fetch.Run(t.Context(), dead, listed, o)
			}
			if finished = err == nil; !finished && !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			kept := map[string]bool{}
			for i := range 2 {
				for block, err := range segment.PartialOf[segment.Visit](t.Context(), r.db.Segments(), listed, segment.ListPart(segment.FetchPart, i), 0) {
					if err != nil && !errors.Is(err, segment.ErrNotFound) {
						t.Fatal(err)
					}
					for _, v := range block {
						kept[v.URL] = true
					}
				}
			}
			before := len(s.of("http"))
			for _, o.Lists = range [][]int{{1}, {0}} { // in another order
				if _, err := fetch.Run(t.Context(), r.db.Segments(), listed, o); err != nil {
					t.Fatalf("died at call %d: %v", n, err)
				}
			}
			if len(r.visits(listed)) != 9 || len(r.parses(listed)) != 9 {
				t.Errorf("died at call %d: %d visits", n, len(r.visits(listed)))
			}
			aligned(t, r.db.Segments(), listed)
			if n := stored(t, r.db.Segments(), listed, 2); n != 0 {
				t.Errorf("died at call %d: %d blocks are kept twice", n, n)
			}
			for _, a := range s.of("http")[before:] {
				if kept[a.url] {
					t.Errorf("died at call %d: %s was kept and fetched again", n, a.url)
				}
			}
		})
		if finished {
			if n < 60 {
				t.Fatalf("only %d calls: the test does not test anything", n)
			}
			return
		}
		if t.Failed() {
			return
		}
	}
}

// What lists fetched without a parser brought is parsed once there is one.
func TestListsWithAndWithoutParser(t *testing.T) {
	for _, without := range [][]int{{0}, {1}, {0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &site{})
			r.o.Politeness.Delay = -1
			r.turns(listed, byDigit(2), threeHosts(3)...)
			with := r.o.Parser
			for i := range 2 {
				if r.o.Parser = with; slices.Contains(without, i) {
					r.o.Parser = nil
				}
				r.o.Lists = []int{i}
				r.run(listed)
			}
			if done, err := segment.Has[segment.Visit](t.Context(), r.db.Segments(), listed); !done || err != nil {
				t.Fatal(done, err)
			}
			r.o.Parser, r.o.Lists = with, nil
			if _, err := fetch.Parse(t.Context(), r.db.Segments(), listed, r.o); err != nil {
				t.Fatal(err)
			}
			if len(r.parses(listed)) != 9 {
				t.Errorf("without a parser %v: %d are parsed", without, len(r.parses(listed)))
			}
			aligned(t, r.db.Segments(), listed)
		})
	}
}

func TestInvalidLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{latency: time.Second})
		r.o.Politeness.Delay = -1
		r.turns(listed, byDigit(3), threeHosts(2)...)
		fails := func(text string) {
			t.Helper()
			if _, err := fetch.Run(t.Context(), r.db.Segments(), listed, r.o); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("lists %v: %v, want %q", r.o.Lists, err, text)
			}
		}
		r.o.Lists = []int{3}
		fails("no list 3; the segment has 3")
		r.o.Lists = []int{-1}
		fails("no list -1")
		r.o.Lists, r.o.Politeness.By = []int{0}, hostdb.ByDomain
		fails("queues byDomain would be shared by lists made byHost")
		r.o.Politeness.By = hostdb.ByHost

		// Somebody else is at the list.
		o := r.o
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := fetch.Run(t.Context(), r.db.Segments(), listed, o); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(100 * time.Millisecond)
		if _, err := fetch.Run(t.Context(), r.db.Segments(), listed, r.o); !errors.Is(err, segment.ErrBusy) {
			t.Errorf("two fetches of one list: %v", err)
		}
		wg.Wait()

		// A fetch that began with the whole ends so.
		other := "20260105100000-000"
		r.turns(other, byDigit(3), threeHosts(2)...)
		left := 17
		r.o.Lists = nil
		if _, err := fetch.Run(t.Context(), dying{r.db.Segments(), &left}, other, r.o); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		r.o.Lists = []int{0}
		if _, err := fetch.Run(t.Context(), r.db.Segments(), other, r.o); err == nil || !strings.Contains(err.Error(), "begun as a whole") {
			t.Error(err)
		}
		r.o.Lists = nil
		if rep := r.run(other); rep.Visited()+rep.Resumed != 6 {
			t.Errorf("%+v", rep)
		}
	})
	r := newRig(t, &site{})
	r.o.Politeness.Delay, r.o.Lists = -1, []int{0}
	r.list(listed, threeHosts(1)...) // one list, which is list 0
	if rep := r.run(listed); rep.Visited() != 3 {
		t.Errorf("%+v", rep)
	}
}

// A list may ask for another pause for some hosts; robots.txt may ask for more.
func TestDelayOfTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 100 * time.Millisecond}
		r := newRig(t, s)
		want := []time.Duration{7 * time.Second, 20 * time.Minute, time.Second, 0}
		var urls []string
		for i := range 4 {
			for h := range want {
				urls = append(urls, fmt.Sprintf("http://h%d.example.test/%d", h, i))
			}
		}
		r.o.Politeness.Delay = time.Second
		r.turns(listed, func(url string) segment.Placement {
			switch url[len("http://h")] {
			case '0':
				return segment.Placement{Delay: 7 * time.Second}
			case '1': // more than MaxWait
				return segment.Placement{Delay: 20 * time.Minute}
			case '3':
				return segment.Placement{Delay: -1 * time.Millisecond}
			}
			return segment.Placement{}
		}, urls...)
		if rep := r.run(listed); rep.Visited() != 16 || rep.Visits[0] != 0 {
			t.Errorf("%+v", rep)
		}
		for h, pause := range want {
			asks := s.of(fmt.Sprintf("h%d.", h))
			if len(asks) != 5 { // robots.txt is one
				t.Errorf("h%d was asked %d times", h, len(asks))
			}
			for _, gap := range gaps(t, asks) {
				if gap < pause || gap > pause+50*time.Millisecond {
					t.Errorf("h%d: pause of %v, want %v", h, gap, pause)
				}
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &site{robots: "User-agent: *\nCrawl-delay: 9\n"}
		r := newRig(t, s)
		r.turns(listed, func(string) segment.Placement { return segment.Placement{Delay: 2 * time.Second} }, pageURLs("h0.example.test", 3)...)
		r.run(listed)
		for _, gap := range gaps(t, s.of("h0.")) {
			if gap < 9*time.Second {
				t.Errorf("pause of %v", gap)
			}
		}
	})
}

// slowly is a store in which it takes a second to open a part.
type slowly struct {
	segment.Store
	part string
}

func (s slowly) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	w, err := s.Store.Append(ctx, name, part, keep)
	if part == s.part && err == nil {
		time.Sleep(time.Second)
	}
	return w, err
}

// Of two fetches that come at once to what is left to be parsed one parses it; the
// other returns no sooner.
func TestOneOfTwoFetchesParsesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{})
		r.turns(listed, byDigit(1), threeHosts(4)...)
		parser := r.o.Parser
		r.o.Parser = nil
		r.run(listed)
		if n := len(r.visits(listed)); n != 12 {
			t.Fatalf("%d visits", n)
		}
		r.o.Parser = parser
		parsed := make(chan int, 2)
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				rep, err := fetch.Run(t.Context(), slowly{r.db.Segments(), segment.ParseDataPart}, listed, r.o)
				if err != nil {
					t.Errorf("fetch %d: %v", i, err)
				}
				if done, err := segment.Has[segment.Parse](t.Context(), r.db.Segments(), listed); err != nil || !done {
					t.Errorf("fetch %d returned before all was parsed: %v, %v", i, done, err)
				}
				parsed <- rep.Parsed
			})
		}
		wg.Wait()
		if a, b := <-parsed, <-parsed; a != 12 && b != 12 || a+b != 12 {
			t.Errorf("%d and %d pages were parsed", a, b)
		}
		aligned(t, r.db.Segments(), listed)
	})
}

// A wait for the other fetch ends with its context.
func TestWaitForTheOtherFetchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{})
		r.turns(listed, byDigit(1), threeHosts(1)...)
		parser := r.o.Parser
		r.o.Parser = nil
		r.run(listed)
		r.o.Parser = parser
		w, err := r.db.Segments().Append(t.Context(), listed, segment.ParseTextPart, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := fetch.Run(ctx, r.db.Segments(), listed, r.o); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a fetch that waits returned %v", err)
		}
	})
}

// spread writes a fetch list in which the host of a URL says which list it is on.
func (r *rig) spread(name string, lists int, urls ...string) {
	var data []crawldb.Datum
	for _, u := range urls {
		d := crawldb.Datum{URL: u, Status: crawldb.Unfetched}
		segment.Placement{List: int(hostdb.ByHost.Key(u)[1]) % lists, Lists: lists}.Set(&d)
		data = append(data, d)
	}
	r.write(name, data)
}

// write writes a fetch list.
func (r *rig) write(name string, data []crawldb.Datum) {
	r.t.Helper()
	w, err := segment.NewWriter[crawldb.Datum](r.t.Context(), r.db.Segments(), name, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := errors.Join(w.Append(r.t.Context(), data), w.Commit(r.t.Context())); err != nil {
		r.t.Fatal(err)
	}
}
