package scoring

import (
	"fmt"
	"math"
	"regexp"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
)

// show is the state of Depth in a Meta.
func show(m crawldb.Meta) string {
	s := ""
	for name, v := range m.All() {
		s += fmt.Sprintf("%s=%s ", name, v)
	}
	return s
}

func depthOf(pairs ...string) crawldb.Datum {
	return crawldb.Datum{URL: "http://a.example/x", Meta: crawldb.MetaOf(pairs...)}
}

func TestDepthOfSeeds(t *testing.T) {
	for _, c := range []struct {
		f    Depth
		d    crawldb.Datum
		want string
	}{
		{Depth{}, depthOf(), "depth.depth=1 "},
		{Depth{}, depthOf(SeedMaxDepthKey, "3"), "_maxdepth_=3 depth.depth=1 "},
		{Depth{NutchCompat: true}, depthOf(), "depth.depth=1 depth.max=1000 "},
		{Depth{NutchCompat: true, Max: 7}, depthOf(SeedMaxDepthKey, "3"), "_maxdepth_=3 depth.depth=1 depth.max=3 "},
	} {
		if c.f.Injected(&c.d); show(c.d.Meta) != c.want {
			t.Errorf("%+v: %s, want %s", c.f, show(c.d.Meta), c.want)
		}
	}
}

func TestDepthOfLinks(t *testing.T) {
	docs := regexp.MustCompile(`/x$`)
	other := regexp.MustCompile(`/y$`)
	for _, c := range []struct {
		name     string
		f        Depth
		d        crawldb.Datum
		redirect bool
		want     string // of each link; empty if they are dropped
	}{
		{"seed", Depth{}, depthOf(DepthKey, "1"), false, "depth.depth=2 "},
		{"at the maximum", Depth{Max: 2}, depthOf(DepthKey, "2"), false, ""},
		{"before the maximum", Depth{Max: 3}, depthOf(DepthKey, "2"), false, "depth.depth=3 "},
		{"own maximum", Depth{}, depthOf(DepthKey, "1", SeedMaxDepthKey, "3"), false, "depth.depth=2 depth.max=3 "},
		{"own maximum reached", Depth{}, depthOf(DepthKey, "3", MaxDepthKey, "3"), false, ""},
		{"own maximum beyond that of the filter", Depth{Max: 2}, depthOf(DepthKey, "2", MaxDepthKey, "3"), false, "depth.depth=3 depth.max=3 "},
		{"an own maximum that is no number", Depth{}, depthOf(DepthKey, "1", SeedMaxDepthKey, "three"), false, "depth.depth=2 "},
		{"the override matches", Depth{Override: docs}, depthOf(DepthKey, "9"), false, "depth.depth=10 depth.max=10 "},
		{"the override matches and is reached", Depth{Override: docs}, depthOf(DepthKey, "10"), false, ""},
		{"the override is given", Depth{Override: docs, OverrideMax: 2}, depthOf(DepthKey, "1", MaxDepthKey, "5"), false, "depth.depth=2 depth.max=2 "},
		{"the override does not match: the maximum of the page stays", Depth{Override: other}, depthOf(DepthKey, "1", MaxDepthKey, "5"), false, "depth.depth=2 depth.max=5 "},
		{"Nutch: the override does not match and takes the maximum of the page", Depth{Override: other, NutchCompat: true}, depthOf(DepthKey, "7", MaxDepthKey, "5"), false, "depth.depth=8 "},
		{"no depth: a seed", Depth{}, depthOf(), false, "depth.depth=2 "},
		{"Nutch: no depth, no links", Depth{NutchCompat: true}, depthOf(), false, ""},
		{"a redirect is no step", Depth{Max: 2}, depthOf(DepthKey, "2"), true, "depth.depth=2 "},
		{"Nutch: a redirect copies the depth", Depth{NutchCompat: true}, depthOf(DepthKey, "2"), true, "depth.depth=2 "},
		{"Nutch: and the maximum, whatever the override says", Depth{Override: docs, NutchCompat: true}, depthOf(DepthKey, "2", MaxDepthKey, "7"), true, "depth.depth=2 depth.max=7 "},
		{"a redirect of a page that the override matches", Depth{Override: docs}, depthOf(DepthKey, "2", MaxDepthKey, "7"), true, "depth.depth=2 depth.max=10 "},
		{"Nutch: a redirect without depth", Depth{NutchCompat: true}, depthOf(), true, "-"},
	} {
		links := []Link{{URL: "http://a.example/1"}, {URL: "http://b.example/2", Drop: true}}
		p := Page{Datum: &c.d, Content: &page.Content{}}
		if c.redirect {
			p.Content = nil
		}
		if gave := c.f.Distribute(p, links); gave != 0 {
			t.Errorf("%s: gave %v", c.name, gave)
		}
		got := show(links[0].Meta)
		if got == "" && !links[0].Drop {
			got = "-"
		}
		if got != c.want || links[0].Drop != (c.want == "") || links[1].Meta.Len() > 0 {
			t.Errorf("%s: %q, dropped %v; want %q", c.name, got, links[0].Drop, c.want)
		}
	}
}

func TestDepthPriority(t *testing.T) {
	docs := regexp.MustCompile(`/x$`)
	for _, c := range []struct {
		name     string
		f        Depth
		d        crawldb.Datum
		in, want float32
	}{
		{"Nutch: seed", Depth{NutchCompat: true}, depthOf(DepthKey, "1", MaxDepthKey, "1000"), 1, 1000},
		{"Nutch: no metadata", Depth{NutchCompat: true}, depthOf(), 2, 2},
		{"Nutch: beyond the maximum", Depth{NutchCompat: true}, depthOf(DepthKey, "5", MaxDepthKey, "2"), 1, -2},
		{"Nutch: the override makes no difference", Depth{NutchCompat: true, Override: docs}, depthOf(DepthKey, "1", MaxDepthKey, "20"), 1, 20},
		{"seed", Depth{}, depthOf(DepthKey, "1"), 1, 1000},
		{"score", Depth{Max: 3}, depthOf(DepthKey, "2"), 0.5, 1},
		{"no metadata: a seed", Depth{Max: 4}, depthOf(), 2, 8},
		{"at the maximum", Depth{Max: 3}, depthOf(DepthKey, "3"), 2, 2},
		{"beyond the maximum", Depth{Max: 3}, depthOf(DepthKey, "9"), 2, 2},
		{"the override", Depth{Override: docs}, depthOf(DepthKey, "1"), 1, 10},
		{"by depth alone", Depth{Max: 3, BreadthFirst: true}, depthOf(DepthKey, "2"), 0, 2},
	} {
		if got := c.f.Priority(&c.d, c.in); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDepthAfterUpdate(t *testing.T) {
	link := func(pairs ...string) Link { return Link{Meta: crawldb.MetaOf(pairs...)} }
	for _, c := range []struct {
		name string
		f    Depth
		old  *crawldb.Datum
		in   []Link
		want string
	}{
		{"a new page", Depth{}, nil, []Link{link(DepthKey, "4"), link(DepthKey, "3"), link()}, "depth.depth=3 "},
		{"a shorter way", Depth{}, new(depthOf(DepthKey, "5")), []Link{link(DepthKey, "3")}, "depth.depth=3 "},
		{"a longer way", Depth{}, new(depthOf(DepthKey, "2")), []Link{link(DepthKey, "3")}, "depth.depth=2 "},
		{"the maximum of the shortest way, the larger of two", Depth{}, nil, []Link{link(DepthKey, "4", MaxDepthKey, "9"), link(DepthKey, "3", MaxDepthKey, "5"), link(DepthKey, "3", MaxDepthKey, "6")}, "depth.depth=3 depth.max=6 "},
		{"the maximum of the filter if that is larger", Depth{}, nil, []Link{link(DepthKey, "3", MaxDepthKey, "5"), link(DepthKey, "3")}, "depth.depth=3 "},
		{"a page that is known keeps its maximum", Depth{}, new(depthOf(DepthKey, "5", MaxDepthKey, "7")), []Link{link(DepthKey, "3", MaxDepthKey, "5")}, "depth.depth=3 depth.max=7 "},
		{"no depth anywhere", Depth{}, new(depthOf()), []Link{link()}, ""},
		{"Nutch: no depth anywhere", Depth{NutchCompat: true, Max: 5}, new(depthOf()), []Link{link()}, "depth.depth=1000 "},
		{"Nutch: a record without depth that is linked to", Depth{NutchCompat: true}, new(depthOf()), []Link{link(DepthKey, "3")}, "depth.depth=3 "},
		{"Nutch: a new page", Depth{NutchCompat: true, Max: 5}, nil, []Link{link(DepthKey, "3")}, "depth.depth=3 depth.max=5 "},
	} {
		var d crawldb.Datum
		if c.old != nil {
			d = *c.old
		} else {
			d.Meta = c.in[0].Meta
			c.f.Discovered(&d)
		}
		c.f.Updated(c.old, &d, Flow{In: c.in, Time: t0})
		if got := show(d.Meta); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzDepthState(f *testing.F) {
	f.Add("1", "2", "3", 1)
	f.Add("-2147483648", "2147483647", "x", math.MaxInt/2)
	f.Add("99999999999999999999", "", "-1", -1)
	f.Fuzz(func(t *testing.T, depth, most, seed string, max int) {
		d := depthOf(DepthKey, depth, MaxDepthKey, most, SeedMaxDepthKey, seed)
		for _, f := range []Depth{{Max: max}, {Max: max, NutchCompat: true}} {
			if p := f.Priority(&d, 1); p != p || !f.NutchCompat && p < 1 {
				t.Fatalf("priority %v", p)
			}
			links := []Link{{URL: "http://a.example/1"}}
			f.Distribute(Page{Datum: &d, Content: &page.Content{}}, links)
			next := d
			f.Updated(&d, &next, Flow{In: links, Time: t0})
		}
	})
}
