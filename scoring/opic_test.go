package scoring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
)

var t0 = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*math.Max(1, math.Abs(b)) }

func TestOPICNutchVectors(t *testing.T) {
	o := OPIC{InternalFactor: 0.5, NutchCompat: true}
	links := func() []Link {
		return []Link{{URL: "http://a.com/1"}, {URL: "http://A.com/2"}, {URL: "http://b.com/"}, {URL: "foo:bar"}}
	}
	got := links()
	if gave := o.Distribute(Page{Datum: &crawldb.Datum{URL: "http://a.com/", Score: 1}, Content: &page.Content{}, Found: 10}, got); gave != 0 {
		t.Errorf("gave %v away, Nutch keeps it", gave)
	}
	for i, want := range []float64{.125, .125, .25, .25} {
		if got[i].Score != want {
			t.Errorf("link %d got %v, want %v", i, got[i].Score, want)
		}
	}
	got = links()
	o.Distribute(Page{Datum: &crawldb.Datum{URL: "http://a.com/"}, Content: &page.Content{}}, got)
	for _, l := range got {
		if l.Score != 0 {
			t.Errorf("a page without score gave %v", l.Score)
		}
	}
	o.CountFiltered = true
	got = links()
	o.Distribute(Page{Datum: &crawldb.Datum{URL: "http://a.com/", Score: 1}, Content: &page.Content{}, Found: 10}, got)
	for i, want := range []float32{.05, .05, .1, .1} {
		if got[i].Score != float64(want) {
			t.Errorf("link %d of ten found got %v, want %v", i, got[i].Score, want)
		}
	}
	for score, want := range map[float32]float32{0: 0, .25: .5, 1: 1, 2: 1.4142135, 4: 2} {
		if b := o.Boost(&crawldb.Datum{Score: score}, 1); b != want {
			t.Errorf("score %v weighs %v, want %v", score, b, want)
		}
	}
	if b := o.Boost(nil, 3); b != 3 {
		t.Errorf("a page without record weighs %v, want 3", b)
	}
	var in []Link
	for _, s := range []float64{5, 4, 3, 2, 1} {
		in = append(in, Link{Score: s})
	}
	d := crawldb.Datum{}
	o.Discovered(&d)
	o.Updated(nil, &d, Flow{In: in})
	if d.Score != 15 {
		t.Errorf("five links make %v, want 15", d.Score)
	}
	d = crawldb.Datum{Score: 100}
	o.Updated(&crawldb.Datum{Score: 1}, &d, Flow{In: in[4:], Visited: true})
	if d.Score != 2 {
		t.Errorf("score %v, want 2: the record as it is counts, not the one of the fetch list", d.Score)
	}
	if p := o.Priority(&crawldb.Datum{Score: .25}, .25); p != .25 {
		t.Errorf("priority %v", p)
	}
}

// world is a crawl db of some pages that are all visited in each round.
type world struct {
	f     Filter
	pages []crawldb.Datum
	links [][]int
	now   time.Time
	// filtered is how many more links each page has.
	filtered  int
	noVirtual bool
}

func newWorld(f Filter, links [][]int, score float32) *world {
	w := &world{f: f, links: links, now: t0}
	for i := range links {
		d := crawldb.Datum{URL: fmt.Sprintf("http://h%d.example/%d", i%7, i)}
		if score > 0 {
			d.Score = score
			f.Injected(&d)
		} else {
			f.Discovered(&d)
		}
		w.pages = append(w.pages, d)
	}
	return w
}

// round visits the pages that pick chooses and applies the results.
func (w *world) round(pick func(i int) bool) {
	flows := make([]Flow, len(w.pages))
	var shared sum
	visits := 0
	for i := range w.pages {
		flows[i].Time = w.now
		if !pick(i) {
			continue
		}
		flows[i].Visited = true
		out := make([]Link, len(w.links[i]))
		for j, to := range w.links[i] {
			out[j] = Link{From: w.pages[i].URL, URL: w.pages[to].URL}
		}
		visits++
		flows[i].Gave = w.f.Distribute(Page{Datum: &w.pages[i], Content: &page.Content{}, Found: len(out) + w.filtered}, out)
		shared.add(flows[i].Gave)
		for j, to := range w.links[i] {
			shared.add(-out[j].Score)
			flows[to].In = append(flows[to].In, out[j])
		}
	}
	for i := range flows {
		if flows[i].Visited && shared.value() > 1e-9 && !w.noVirtual {
			flows[i].Shared = shared.value() / float64(visits)
		}
	}
	for i := range w.pages {
		f := flows[i]
		slices.SortStableFunc(f.In, func(a, b Link) int {
			if a.Score != b.Score {
				return map[bool]int{true: -1, false: 1}[a.Score > b.Score]
			}
			return crawldb.Compare(a.From, b.From)
		})
		old := w.pages[i]
		w.f.Updated(&old, &w.pages[i], f)
	}
	w.now = w.now.Add(24 * time.Hour)
}

func (w *world) cash() float64 {
	var s sum
	for i := range w.pages {
		s.add(Cash(&w.pages[i]))
	}
	return s.value()
}

func graph(n int, seed uint64, links func(r *rand.Rand, i int) int) [][]int {
	r := rand.New(rand.NewPCG(seed, 1))
	g := make([][]int, n)
	for i := range g {
		for range links(r, i) {
			if to := r.IntN(n); !slices.Contains(g[i], to) {
				g[i] = append(g[i], to)
			}
		}
	}
	return g
}

func TestCashIsConserved(t *testing.T) {
	for name, g := range map[string][][]int{
		"sinks":     graph(150, 1, func(r *rand.Rand, i int) int { return r.IntN(12) }),
		"redirects": graph(150, 2, func(r *rand.Rand, i int) int { return 1 + 20*(i%2) }),
		"cycle":     {{1}, {2}, {0}},
	} {
		for _, o := range []OPIC{{}, {InternalFactor: 0.3, ExternalFactor: 2}, {InternalFactor: -1}, {CountFiltered: true}} {
			w := newWorld(o, g, 1)
			w.filtered = 3
			r := rand.New(rand.NewPCG(3, 4))
			for n := range 100 {
				w.round(func(int) bool { return r.IntN(3) > 0 })
				if got, want := w.cash(), float64(len(g)); !near(got, want, 1e-12) {
					t.Fatalf("%s %+v: cash is %v after %d rounds, want %v", name, o, got, n+1, want)
				}
			}
			for i := range w.pages {
				if s := float64(w.pages[i].Score); !(s >= 0) || s > 100*float64(len(g)) {
					t.Errorf("%s: score %v", name, s)
				}
			}
		}
	}
}

func TestNutchScoresDouble(t *testing.T) {
	g := [][]int{{1, 2}, {3}, {3, 0}, {0}}
	total := func(w *world) (s float64) {
		for i := range w.pages {
			s += float64(w.pages[i].Score)
		}
		return s
	}
	nutch, ours := newWorld(OPIC{NutchCompat: true}, g, 1), newWorld(OPIC{}, g, 1)
	all := func(int) bool { return true }
	for n := 1; n <= 20; n++ {
		nutch.round(all)
		ours.round(all)
		if got, want := total(nutch), 4*math.Pow(2, float64(n)); !near(got, want, 1e-4) {
			t.Errorf("Nutch's scores add up to %v after %d rounds, want %v", got, n, want)
		}
		if got := ours.cash(); !near(got, 4, 1e-12) {
			t.Errorf("our cash is %v after %d rounds, want 4", got, n)
		}
	}
	for range 200 {
		nutch.round(all)
		ours.round(all)
	}
	if s := nutch.pages[0].Score; s != math.MaxFloat32 {
		t.Errorf("Nutch's score is %v in the end, want the greatest float", s)
	}
	if s := ours.pages[0].Score; s > 200 {
		t.Errorf("our score has grown to %v", s)
	}
}

// On a strongly connected graph without chance, the scores are in the relation
// of the importance: the stationary distribution of a random walk.
func TestScoreIsImportance(t *testing.T) {
	g := graph(60, 7, func(r *rand.Rand, i int) int { return 3 + r.IntN(8) })
	w := newWorld(OPIC{}, g, 1)
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		w.round(func(int) bool { return r.IntN(2) == 0 })
	}
	want := make([]float64, len(g))
	for i := range want {
		want[i] = 1
	}
	for range 200 {
		next := make([]float64, len(g))
		for i, out := range g {
			for _, to := range out {
				next[to] += want[i] / float64(len(out))
			}
		}
		want = next
	}
	// With one visit in two rounds a page receives half its weight a round, and
	// the window is thirty rounds.
	var errs, total float64
	for i := range want {
		errs += math.Abs(float64(w.pages[i].Score)/15 - want[i])
		total += want[i]
	}
	if errs/total > 0.15 {
		t.Errorf("scores are off by %.0f %% of the importance", 100*errs/total)
	}
}

func TestScoreSurvivesDistribution(t *testing.T) {
	d := crawldb.Datum{URL: "http://example.com/", Score: 1}
	o := OPIC{}
	o.Injected(&d)
	old := d
	gave := o.Distribute(Page{Datum: &d}, []Link{{URL: "http://example.com/a"}, {URL: "http://example.org/"}})
	o.Updated(&old, &d, Flow{Gave: gave, Visited: true, Time: t0})
	if gave != 1 || Cash(&d) != 0 || d.Score != 1 {
		t.Errorf("gave %v, has %v left, score %v; want 1, 0, 1", gave, Cash(&d), d.Score)
	}
	old = d
	o.Updated(&old, &d, Flow{Visited: true, Time: t0.Add(60 * 24 * time.Hour)})
	if d.Score != 0.5 {
		t.Errorf("score %v two windows later, want 0.5", d.Score)
	}
}

// After a clock that was ahead a score is again what comes in within a window.
func TestScoreAfterAClockThatWasAhead(t *testing.T) {
	const day = 24 * time.Hour
	d := crawldb.Datum{URL: "http://example.com/"}
	o := OPIC{}
	receive := func(at time.Time) {
		old := d
		o.Updated(&old, &d, Flow{In: []Link{{URL: d.URL, Score: 1}}, Time: at})
	}
	now := t0
	for range 200 {
		receive(now)
		now = now.Add(day)
	}
	before := d.Score
	receive(now.AddDate(10, 0, 0))
	for range 200 {
		receive(now)
		now = now.Add(day)
	}
	if after := d.Score; !(after < before*1.01 && after > before*0.99) {
		t.Errorf("score %v, and %v before the clock was ahead", after, before)
	}
}

func TestUpdatedUsesCurrentRecord(t *testing.T) {
	o := OPIC{}
	seed := crawldb.Datum{URL: "http://example.com/", Score: 1}
	o.Injected(&seed)
	listed := seed // what the fetch list has

	now := seed // a link came in while the page was being fetched
	o.Updated(&seed, &now, Flow{In: []Link{{Score: 2}}, Time: t0})

	links := []Link{{URL: "http://example.com/a"}}
	gave := o.Distribute(Page{Datum: &listed}, links)
	next := listed
	o.Updated(&now, &next, Flow{Gave: gave, Visited: true, Time: t0})
	if Cash(&next) != 2 || next.Score != 3 {
		t.Errorf("cash %v, score %v, want 2 and 3", Cash(&next), next.Score)
	}

	// The record was deleted meanwhile.
	next = listed
	o.Updated(nil, &next, Flow{Gave: gave, Visited: true, Time: t0})
	if Cash(&next) != 0 {
		t.Errorf("cash %v after everything was given away", Cash(&next))
	}
	// And found again, without cash.
	again := crawldb.Datum{URL: seed.URL}
	next = listed
	o.Updated(&again, &next, Flow{Gave: gave, Visited: true, Time: t0})
	if Cash(&next) != 0 {
		t.Errorf("cash %v, want none rather than debts", Cash(&next))
	}
}

func TestInjectingAgainAddsNoCash(t *testing.T) {
	d := crawldb.Datum{Score: 3}
	OPIC{}.Injected(&d)
	d.Score = 7
	OPIC{}.Injected(&d)
	if Cash(&d) != 3 {
		t.Errorf("cash %v, want 3", Cash(&d))
	}
}

func TestSumOfExtremeScores(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	d := crawldb.Datum{Score: float32(inf)}
	d.Meta.Set(historyKey, "short")
	OPIC{}.Updated(nil, &d, Flow{Gave: nan, Visited: true, In: []Link{{Score: inf}, {Score: nan}, {Score: -1}, {Score: math.MaxFloat64}, {Score: math.MaxFloat64}}})
	if c := Cash(&d); c != math.MaxFloat64 || d.Score != math.MaxFloat32 {
		t.Errorf("cash %v, score %v", c, d.Score)
	}
}

func BenchmarkOPICUpdated(b *testing.B) {
	o := OPIC{}
	d := crawldb.Datum{URL: "http://example.com/", Score: 1}
	o.Injected(&d)
	in := make([]Link, 10)
	for i := range in {
		in[i].Score = 0.1
	}
	b.ReportAllocs()
	for b.Loop() {
		next := d
		o.Updated(&d, &next, Flow{In: in, Time: t0})
	}
}

// A seed may set any Meta entry, so the state is foreign bytes too.
func FuzzOPICState(f *testing.F) {
	f.Add("12345678", "1234567812345678", 1.0, int64(1e12))
	f.Add("\x7f\xf0\x00\x00\x00\x00\x00\x00", "\x7f\xf8\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff", math.Inf(1), int64(-1))
	f.Fuzz(func(t *testing.T, cash, history string, in float64, ms int64) {
		d := crawldb.Datum{URL: "http://example.com/", Meta: crawldb.MetaOf(cashKey, cash, historyKey, history)}
		links := []Link{{URL: "http://example.com/a"}, {URL: "http://example.org/"}}
		flow := Flow{In: []Link{{Score: in}}, Visited: true, Time: time.UnixMilli(ms)}
		for range 3 {
			flow.Gave = OPIC{}.Distribute(Page{Datum: &d}, links)
			old := d
			OPIC{}.Updated(&old, &d, flow)
			for _, x := range []float64{Cash(&d), float64(d.Score), flow.Gave, links[0].Score} {
				if !(x >= 0) || math.IsInf(x, 0) {
					t.Fatalf("cash %v, score %v, gave %v, link %v", Cash(&d), d.Score, flow.Gave, links[0].Score)
				}
			}
		}
	})
}
