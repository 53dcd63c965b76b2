package rank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

// web is a graph as lists, to compare with.
type web struct {
	g   *Graph
	own []float64
	out [][]uint32
}

func page(i int) string { return fmt.Sprintf("http://h%d.example/%d", i%7, i) }

// grow adds the links of a page, some of which lead to pages that are new.
func (w *web) grow(t *testing.T, rnd *rand.Rand, from string, own float64) {
	t.Helper()
	number := func(url string) uint32 {
		n, ok := w.g.Page(url)
		if !ok {
			t.Fatal("there is no room")
		}
		for int(n) >= len(w.out) {
			w.out, w.own = append(w.out, nil), append(w.own, 0)
		}
		return n
	}
	n := number(from)
	var to []uint32
	for range rnd.IntN(30) {
		to = append(to, number(page(int(math.Exp(rnd.Float64()*8)))))
	}
	w.own[n] = own
	w.out[n] = slices.Clone(to)
	slices.Sort(w.out[n])
	w.out[n] = slices.Compact(w.out[n])
	w.out[n] = slices.DeleteFunc(w.out[n], func(t uint32) bool { return t == n })
	distinct := slices.Clone(to)
	slices.Sort(distinct)
	w.g.Link(n, own, len(slices.Compact(distinct)), to)
}

// given computes by the definition, to the end.
func (w *web) given() []float64 {
	given := make([]float64, len(w.out))
	for range 200 {
		next := make([]float64, len(w.out))
		for n, to := range w.out {
			for _, t := range to {
				next[t] += 0.85 * (1 + w.own[n] + given[n]) / float64(len(to))
			}
		}
		given = next
	}
	return given
}

func (w *web) compare(t *testing.T, what string) {
	t.Helper()
	w.g.Compute()
	for n, want := range w.given() {
		if got := w.g.Received(uint32(n)); math.Abs(got-want) > 0.05*(want+0.05) {
			t.Errorf("%s: page %d is given %v, want %v", what, n, got, want)
		}
	}
}

func TestRanksAreFunctionOfGraph(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	w := &web{g: NewGraph(scoring.PageRank{}, 0)}
	for i := range 1500 {
		w.grow(t, rnd, page(i), float64(rnd.IntN(20)/19*5))
	}
	w.compare(t, "a graph")
	for i := range 1200 { // most are replaced
		w.grow(t, rnd, page(i), 0)
	}
	w.compare(t, "a graph that changed")
	links := int64(0)
	for _, to := range w.out {
		links += int64(len(to))
	}
	if w.g.links() != links || w.g.pages() != len(w.out) {
		t.Errorf("there are %d links and %d pages, want %d and %d", w.g.links(), w.g.pages(), links, len(w.out))
	}
	before := slices.Clone(w.g.residual)
	was := w.g.counts
	w.g.compact()
	if now := w.g.counts; now.replacedBytes != 0 || now.links != was.links || now.changed != was.changed || now.bytes != was.bytes-was.replacedBytes {
		t.Errorf("%+v became %+v", was, now)
	}
	if w.g.Compute(); !slices.Equal(before, w.g.residual) {
		t.Error("compacting made a difference")
	}
}

func TestChangedYieldsPagesOnAnotherLevel(t *testing.T) {
	g := NewGraph(scoring.PageRank{Damping: 0.5}, 0)
	a, _ := g.Page("http://a.example/")
	b, _ := g.Page("http://b.example/")
	c, _ := g.Page("http://c.example/")
	g.Link(a, 0, 2, []uint32{b, c})
	changed := func() (pages []uint32) {
		g.Compute()
		for n := range g.Changed() {
			pages = append(pages, n)
		}
		g.MarkWritten()
		return pages
	}
	if got := changed(); !slices.Equal(got, []uint32{a, b, c}) {
		t.Errorf("at first %v changed", got)
	}
	if g.Grown(0) || !g.Grown(-1) {
		t.Error("a graph that is settled has not grown")
	}
	if got := changed(); len(got) != 0 {
		t.Errorf("%v changed without a reason", got)
	}
	if !g.Link(c, 0, 1, []uint32{b}) || g.Link(c, 0, 1, []uint32{b}) {
		t.Error("a link is not news once")
	}
	if !g.Grown(0.3) || g.Grown(0.34) {
		t.Error("a third of the links is new")
	}
	if got := changed(); !slices.Equal(got, []uint32{b}) {
		t.Errorf("%v changed, b was given more", got)
	}
}

// What a page is given that was not fetched counts for more if little of its host was
// fetched, and of its directory; as long as all is of one nothing counts for more.
func TestHosts(t *testing.T) {
	var deep uint32
	known := func(power float64) (g *Graph, big, small, odd uint32) {
		g = NewGraph(scoring.PageRank{Damping: 0.5, HostPower: power}, 0)
		big, _ = g.Page("https://big.example/next")
		small, _ = g.Page("http://small.example:8080/")
		odd, _ = g.Page("http://ODD.example/")
		deep, _ = g.Page("http://big.example/deep/?page=a/b")
		for i := range 7 {
			p, _ := g.Page(fmt.Sprintf("http://big.example/%d", i))
			g.Link(p, 0, 4, []uint32{big, small, odd, deep})
		}
		g.Compute()
		return g, big, small, odd
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }
	g, big, small, odd := known(0)
	given := g.Received(big)
	if !near(given, 7./8) || g.score(big) != given || !near(g.score(deep), 2*given) || !near(g.score(small), 4*given) || !near(g.score(odd), 4*given) || !near(g.Received(small), given) {
		t.Errorf("given %v: on a host that is known %v, in another directory %v, on others %v and %v", given, g.score(big), g.score(deep), g.score(small), g.score(odd))
	}
	for n, score := range g.Changed() {
		if score != g.score(n) {
			t.Errorf("page %d has %v, want %v", n, score, g.score(n))
		}
	}
	g.MarkWritten()
	g.Link(small, 0, 0, nil) // which has no links
	g.Compute()
	if g.score(small) != given {
		t.Errorf("fetched, it has %v, want %v", g.score(small), given)
	}
	changed := 0
	for n := range g.Changed() {
		if changed++; n != small {
			t.Errorf("page %d changed", n)
		}
	}
	if changed != 1 {
		t.Errorf("%d pages changed", changed)
	}
	if g, _, small, _ := known(-1); g.score(small) != g.Received(small) {
		t.Errorf("without hosts it has %v, given %v", g.score(small), g.Received(small))
	}
	if g, _, small, _ := known(1); !near(g.score(small), 64*given) {
		t.Errorf("in proportion it has %v, given %v", g.score(small), g.Received(small))
	}
}

// Beyond its bound a graph takes no more, and what it has stays.
func TestMemory(t *testing.T) {
	g := NewGraph(scoring.PageRank{}, 20_000)
	var last uint32
	n := 0
	for ; ; n++ {
		p, ok := g.Page(page(n))
		if !ok {
			break
		}
		last = p
	}
	if !g.full() || int(last) != n-1 || g.memoryUsed() < 15_000 || g.memoryUsed() > 16_000 {
		t.Errorf("full with %d pages, the last %d, %d bytes", n, last, g.memoryUsed())
	}
	if p, ok := g.Page(page(3)); !ok || p != 3 {
		t.Error("a page that is there is not found")
	}
	to := make([]uint32, 100)
	for i := range n {
		for k := range to {
			to[k] = uint32((i + k*k*k) % n)
		}
		g.Link(uint32(i), 0, 100, slices.Clone(to))
	}
	if g.memoryUsed() > 20_000 || g.links() == 0 {
		t.Errorf("%d links take %d bytes", g.links(), g.memoryUsed())
	}
	// A link that there is no room for is one to divide by.
	g = NewGraph(scoring.PageRank{Damping: 0.5}, 0)
	a, _ := g.Page("http://a.example/")
	b, _ := g.Page("http://b.example/")
	g.Link(a, 0, 5, []uint32{b})
	if g.Compute(); g.Received(b) != 0.1 && math.Abs(g.Received(b)-0.1) > 1e-6 {
		t.Errorf("one of five links is worth %v", g.Received(b))
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(newEntry(3, 0, 4, []uint32{0, 1, 7}).raw, 8)
	f.Add(newEntry(300, 2.5, 1, []uint32{70000}).raw, 80000)
	f.Add(newEntry(0, 0, 0, nil).raw, 1)
	f.Add([]byte{3, 1, 2, 0x80}, 10)
	f.Fuzz(func(t *testing.T, data []byte, pages int) {
		pages = min(pages, 1<<16)
		e, size := cutEntry(data)
		if size == 0 || e.check(pages) != nil {
			return
		}
		// What is checked can be computed with.
		g := NewGraph(scoring.PageRank{}, -1)
		for i := range pages {
			g.add(crawldb.AppendKey(nil, page(i)))
		}
		g.log = []block{{first: 1}}
		g.append(e)
		g.Compute()
		for n := range g.Changed() {
			if given := g.Received(n); given < 0 || math.IsNaN(given) {
				t.Errorf("page %d is given %v", n, given)
			}
		}
	})
}
