package ordering

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

func TestRead(t *testing.T) {
	w, err := Read(strings.NewReader("# a graph\n\nb\ta\nhttp://x.example/\tb\na a\nb  a\nb\thttp://x.example/\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if w.Pages() != 3 || w.Links() != 3 || w.URL(0) != "http://graph.example/b" || w.URL(2) != "http://x.example/" ||
		!slices.Equal(w.Out(0), []uint32{1, 2}) || len(w.Out(1)) != 0 || !slices.Equal(w.Out(2), []uint32{0}) {
		t.Errorf("it is %+v", w)
	}
	for text, want := range map[string]string{
		"a\tb\na\t" + strings.Repeat("b", 2<<20): "line 2: the line is longer than a mebibyte",
		"":                                       "the graph has no links",
		"# only\n":                               "the graph has no links",
		"a\tb\nc\n":                              "line 2: want two pages",
		"a\tb\tc\n":                              "line 1: text after the second page",
		"a\tb\n\tb\n":                            "line 2: want two pages",
		"a\tb\n3\n":                              "line 2: want two pages",
		"2\n1\n":                                 "lines for only 1 of 2 pages",
		"2\n1\n2\n":                              "line 3: \"2\" is not the number of a page; there are 2",
		"2\n1\n0\n0\n":                           "line 4: more than 2 pages",
		"\x1f\x8bno":                             "line 1: ",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The forms in which graphs are published: with comments of two kinds, with a line for
// each page, compressed.
func TestReadOtherForms(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, "% asym\n0 2\n0 1\n2 0\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"# Nodes: 3 Edges: 3\n# FromNodeId\tToNodeId\n0\t2\n0\t1\n2\t0\n", "3\n2 1\n\n0\n", "# n\n3\n2 1\n\n0\n\n", packed.String(),
		"\ufeff0\t2\r\n0\t1\r\n2\t0\r\n", "\ufeff3\r\n2 1\r\n\r\n0\r\n"} {
		w, err := Read(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var links []string
		for p := range w.Pages() {
			for _, to := range w.Out(p) {
				links = append(links, path.Base(w.URL(p))+path.Base(w.URL(int(to))))
			}
		}
		slices.Sort(links)
		if w.Pages() != 3 || !slices.Equal(links, []string{"01", "02", "20"}) {
			t.Errorf("%q has %d pages, links %v", text, w.Pages(), links)
		}
	}
	// What was cut off is missed, and not what is left of the last line.
	for n := range packed.Len() {
		if _, err := Read(strings.NewReader(packed.String()[:n])); n > 10 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("3\n2 1\n\n0\n"))
	f.Add([]byte("a\tb\n# c\nb a\n"))
	f.Add([]byte("http://a.example/ b\nb\tb\n\xff \x00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for p := range w.Pages() {
			for _, to := range w.Out(p) {
				if int(to) >= w.Pages() || int(to) == p {
					t.Errorf("%d links to %d", p, to)
				}
			}
		}
		sum := 0.0
		for _, r := range w.PageRank(0.85) {
			sum += r
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("the ranks add up to %v", sum)
		}
	})
}

// The PageRank of a graph that is easily reckoned: a and b link to each other, c to
// both, d has no links.
func TestPageRank(t *testing.T) {
	w, err := Read(strings.NewReader("a b\nb a\nc a\nc b\nd e\n"))
	if err != nil {
		t.Fatal(err)
	}
	rank := w.PageRank(0.5)
	// With z = (1-d)/n + d*e/n: c = d = z, e = z + d/2, a = b = z + a/2 + c/4.
	e := rank[4]
	z := 0.5/5 + 0.5*e/5
	for i, want := range []float64{2.5 * z, 2.5 * z, z, z, 1.5 * z} {
		if math.Abs(rank[i]-want) > 1e-5 {
			t.Errorf("page %s has %v, want %v", w.URL(i), rank[i], want)
		}
	}
}

func TestChoose(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		n := rnd.IntN(300)
		all := make([]candidate, n)
		for i := range all {
			all[i] = candidate{page: uint32(i), turn: uint32(rnd.IntN(n)), score: float64(rnd.IntN(5))}
		}
		want := slices.Clone(all)
		slices.SortStableFunc(want, candidate.compare)
		k := rnd.IntN(n + 1)
		got := slices.Clone(choose(all, k))
		for i := range got {
			if got[i].compare(want[i]) != 0 {
				t.Fatalf("of %d the best %d are %v, want %v", n, k, got, want[:k])
			}
		}
		seen := map[uint32]bool{}
		for _, c := range all {
			seen[c.page] = true
		}
		if len(seen) != n {
			t.Fatalf("of %d candidates there are %d left", n, len(seen))
		}
	}
}

// The orders on a made-up web: one that knows more is earlier, and a second run equals the
// first.
func TestOrders(t *testing.T) {
	w := Generate(3000, 1)
	if w.Pages() != 3000 || w.Links() < 5*w.Pages() {
		t.Fatalf("the web has %d pages and %d links", w.Pages(), w.Links())
	}
	o := Options{Runs: 2, Seed: 5}
	r, err := Run(t.Context(), w, Stock(), o)
	if err != nil {
		t.Fatal(err)
	}
	curves := map[string]Curve{}
	for i := range r.Curves {
		c := &r.Curves[i]
		if curves[c.Name] = *c; !slices.IsSorted(c.Held) || math.Abs(c.At(1)-1) > 1e-9 || c.At(0) != 0 || c.Low > c.Area || c.High < c.Area {
			t.Errorf("%+v", c)
		}
		c.Elapsed, c.Ranking = 0, 0
	}
	area := func(name string) float64 { return curves[name].Area }
	for _, worse := range []string{"breadth first", "random", "backlinks", "OPIC of Nutch", "OPIC"} {
		if area(worse) > area("PageRank")-0.005 {
			t.Errorf("%s has %.3f, PageRank %.3f", worse, area(worse), area("PageRank"))
		}
	}
	if !(area("PageRank") < area("omniscient") && area("omniscient") < area("upper bound")) || area("random") > area("OPIC") {
		t.Errorf("the areas are %v, %v and %v", area("PageRank"), area("omniscient"), area("upper bound"))
	}
	c := curves["PageRank"]
	if c.Ranked == 0 || c.Written > 10*w.Pages()*o.Runs {
		t.Errorf("ranks were computed %d times, and %d written", c.Ranked, c.Written)
	}
	again, err := Run(t.Context(), w, Stock()[5:6], o)
	if err != nil {
		t.Fatal(err)
	}
	again.Curves[0].Elapsed, again.Curves[0].Ranking = 0, 0
	if !reflect.DeepEqual(r.Curves[5], again.Curves[0]) {
		t.Error("a second run differs")
	}
	var svg, table strings.Builder
	if err := r.WriteSVG(&svg); err != nil || strings.Count(svg.String(), "<path") < len(r.Curves) {
		t.Errorf("the picture is %s: %v", svg.String(), err)
	}
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), fmt.Sprintf("%.3f", area("OPIC"))) {
		t.Errorf("the table is %s: %v", table.String(), err)
	}
}

// A web of sites has few hosts; an order that knows hosts finds more of it.
func TestSites(t *testing.T) {
	for _, n := range []int{1, 2, 3, 40} {
		if w := GenerateSites(n, 1); w.Pages() != max(n, 2) {
			t.Errorf("of %d pages there are %d", n, w.Pages())
		}
	}
	const pages = 6000
	w := GenerateSites(pages, 2)
	hosts, dangling := map[string]bool{}, 0
	for p := range w.Pages() {
		hosts[crawldb.Host(w.URL(p))] = true
		if len(w.Out(p)) == 0 {
			dangling++
		}
	}
	if w.Pages() != pages || w.Links() < 4*pages || len(hosts) < 10 || len(hosts) > pages/20 || dangling < pages/10 || dangling > pages/3 {
		t.Errorf("the web has %d pages and %d links, %d hosts and %d pages without links", w.Pages(), w.Links(), len(hosts), dangling)
	}
	if other := GenerateSites(pages, 2); !reflect.DeepEqual(w, other) {
		t.Error("a second web differs")
	}
	orders := []Order{BreadthFirst(), {Name: "plain", Filter: scoring.PageRank{HostPower: -1}}, {Name: "hosts", Filter: scoring.PageRank{}}}
	r, err := Run(t.Context(), w, orders, Options{Runs: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Curves; !(c[0].Area+0.01 < c[1].Area && c[1].Area+0.002 < c[2].Area) {
		t.Errorf("the areas are %.3f, %.3f and %.3f", c[0].Area, c[1].Area, c[2].Area)
	}
}
