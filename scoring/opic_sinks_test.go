package scoring

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
)

// ranks are the places of the values, equal ones in between.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	r := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			r[k] = float64(i+j-1) / 2
		}
		i = j
	}
	return r
}

// likeness is the rank correlation of two rows: 1 for the same order.
func likeness(a, b []float64) float64 {
	ra, rb := ranks(a), ranks(b)
	mean := float64(len(a)-1) / 2
	var ab, aa, bb float64
	for i := range ra {
		x, y := ra[i]-mean, rb[i]-mean
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// Half of the pages have no links. With a virtual page the order of the scores
// is that of the importance; without one the cash is in the sinks before long.
func TestPagesWithoutLinksKeepOPICOrder(t *testing.T) {
	const n = 1000
	r := rand.New(rand.NewPCG(9, 1))
	g := make([][]int, n)
	for i := range g {
		if i%2 == 1 {
			continue
		}
		for range 3 + r.IntN(20) {
			if to := int(math.Pow(r.Float64(), 3) * n); !slices.Contains(g[i], to) {
				g[i] = append(g[i], to)
			}
		}
	}
	importance := make([]float64, n)
	for i := range importance {
		importance[i] = 1
	}
	for range 100 {
		next := make([]float64, n)
		stuck := 0.0
		for i, out := range g {
			if len(out) == 0 {
				stuck += importance[i]
			}
			for _, to := range out {
				next[to] += importance[i] / float64(len(out))
			}
		}
		for i := range next {
			next[i] += stuck / n
		}
		importance = next
	}
	for _, c := range []struct {
		noVirtual            bool
		atLeast, atMost      float64
		circulates, andBelow float64
	}{{false, 0.95, 1, 0.4 * n, n}, {true, -1, 0.85, 0, 0.01 * n}} {
		w := newWorld(OPIC{}, g, 1)
		w.noVirtual = c.noVirtual
		visits := rand.New(rand.NewPCG(3, 4))
		for range 100 {
			w.round(func(i int) bool { return visits.IntN(3) == 0 && !(c.noVirtual && len(g[i]) == 0) })
		}
		scores, circulates := make([]float64, n), 0.0
		for i := range scores {
			scores[i] = float64(w.pages[i].Score)
			if len(g[i]) > 0 {
				circulates += Cash(&w.pages[i])
			}
		}
		if got := likeness(scores, importance); got < c.atLeast || got > c.atMost {
			t.Errorf("without virtual page %v: the order is like that of the importance by %.3f", c.noVirtual, got)
		}
		if circulates < c.circulates || circulates > c.andBelow {
			t.Errorf("without virtual page %v: %.1f of %d is in pages with links", c.noVirtual, circulates, n)
		}
		if got := w.cash(); !near(got, n, 1e-9) {
			t.Errorf("without virtual page %v: cash is %v, want %d", c.noVirtual, got, n)
		}
	}
}

func TestShareOfVirtualPage(t *testing.T) {
	d := crawldb.Datum{URL: "http://a.example/", Score: 8}
	OPIC{}.Injected(&d)
	for _, c := range []struct {
		name  string
		o     OPIC
		found int
		links []Link
		gave  float64
		want  []float64
	}{
		{"no links", OPIC{}, 0, nil, 8, nil},
		{"links", OPIC{}, 4, []Link{{URL: "http://a.example/1"}, {URL: "http://b.example/"}}, 8, []float64{4, 4}},
		{"links that are filtered count", OPIC{CountFiltered: true}, 4, []Link{{URL: "http://a.example/1"}, {URL: "http://b.example/"}}, 8, []float64{2, 2}},
		{"and weigh like external ones", OPIC{CountFiltered: true, ExternalFactor: 3}, 2, []Link{{URL: "http://a.example/1"}}, 8, []float64{2}},
		{"links that get nothing", OPIC{InternalFactor: -1}, 1, []Link{{URL: "http://a.example/1"}}, 8, []float64{0}},
		{"a link that another filter dropped", OPIC{}, 2, []Link{{URL: "http://a.example/1", Drop: true}, {URL: "http://b.example/"}}, 8, []float64{0, 8}},
		{"nothing but those", OPIC{}, 1, []Link{{URL: "http://a.example/1", Drop: true}}, 8, []float64{0}},
	} {
		if gave := c.o.Distribute(Page{Datum: &d, Content: &page.Content{}, Found: c.found}, c.links); gave != c.gave {
			t.Errorf("%s: gave %v, want %v", c.name, gave, c.gave)
		}
		for i, want := range c.want {
			if c.links[i].Score != want {
				t.Errorf("%s: link %d got %v, want %v", c.name, i, c.links[i].Score, want)
			}
		}
	}

	old := d
	OPIC{}.Updated(&old, &d, Flow{Gave: 8, Shared: 0.5, Visited: true, Time: t0})
	if Cash(&d) != 0.5 || d.Score != 8 {
		t.Errorf("cash %v, score %v; want 0.5 and 8: a gift to all is no sign of importance", Cash(&d), d.Score)
	}
}

func TestRedirectPassesCashToTarget(t *testing.T) {
	d := crawldb.Datum{URL: "http://a.example/", Score: 3}
	OPIC{}.Injected(&d)
	to := []Link{{URL: "http://b.example/"}}
	if gave := (OPIC{}).Distribute(Page{Datum: &d, Found: 1}, to); gave != 3 || to[0].Score != 3 {
		t.Errorf("gave %v, the target has %v; want 3", gave, to[0].Score)
	}
}

func TestNutchRedirectTargetStartsAtZero(t *testing.T) {
	o := OPIC{NutchCompat: true}
	d := crawldb.Datum{URL: "http://a.example/", Score: 3}
	to := []Link{{URL: "http://b.example/", Score: 7}}
	if gave := o.Distribute(Page{Datum: &d, Found: 1}, to); gave != 0 || to[0].Score != 0 {
		t.Errorf("gave %v, the target has %v; want 0", gave, to[0].Score)
	}
}

// Steps in 32 bits: each link's share is rounded, and each addition.
func TestNutchRoundsEachStep(t *testing.T) {
	o := OPIC{NutchCompat: true, InternalFactor: 0.1}
	d := crawldb.Datum{URL: "http://a.example/", Score: 0.7}
	links := make([]Link, 3)
	for i := range links {
		links[i].URL = "http://a.example/x"
	}
	o.Distribute(Page{Datum: &d, Content: &page.Content{}}, links)
	share := float32(float32(0.7)/3) * float32(0.1)
	sum := float32(share + share)
	sum = float32(sum + share)
	want := float32(float32(0.3) + sum)
	n := crawldb.Datum{}
	o.Updated(&crawldb.Datum{Score: 0.3}, &n, Flow{In: links})
	if n.Score != want {
		t.Errorf("score %v, want %v", n.Score, want)
	}
}

func TestWeightInTheIndex(t *testing.T) {
	d := crawldb.Datum{Score: 16}
	for power, want := range map[float64]float32{0: 8, 0.25: 4, 1: 32, -1: 2} {
		if got := (OPIC{ScorePower: power}).Boost(&d, 2); got != want {
			t.Errorf("power %v: %v, want %v", power, got, want)
		}
	}
	if got := (OPIC{}).Boost(&crawldb.Datum{Score: -4}, 1); got != 0 {
		t.Errorf("a negative score weighs %v", got)
	}
}
