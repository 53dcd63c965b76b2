package scoring_test

import (
	"math"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/scoringtest"
)

func TestPageRankKeepsTheContract(t *testing.T) {
	for _, f := range []scoring.Filter{scoring.PageRank{}, scoring.PageRank{Damping: 0.5, ScorePower: -1}, scoring.PageRank{Damping: math.NaN()}} {
		scoringtest.Run(t, scoringtest.Harness{New: func() scoring.Filter { return f }})
	}
}

func TestPageRankOfANewPage(t *testing.T) {
	f := scoring.PageRank{Damping: 0.5}
	seed := crawldb.Datum{URL: "http://a.example/", Score: 3}
	f.Injected(&seed)
	if seed.Score = 7; scoring.SeedRank(&seed) != 3 {
		t.Fatalf("the seed has %v of itself", scoring.SeedRank(&seed))
	}
	links := []scoring.Link{{Drop: true, Score: 9}, {Score: 9}, {}}
	if gave := f.Distribute(scoring.Page{Datum: &seed}, links); gave != 0 || links[0].Score != 0 || links[1].Score != 2 || links[2].Score != 2 {
		t.Errorf("of 8 it gave %v and %+v", gave, links)
	}
	d := crawldb.Datum{Score: 5}
	f.Discovered(&d)
	f.Updated(nil, &d, scoring.Flow{In: links[1:]})
	if d.Score != 4 {
		t.Errorf("a new page has %v", d.Score)
	}
	old := d
	f.Updated(&old, &d, scoring.Flow{In: links[1:], Visited: true})
	if d.Score != 4 {
		t.Errorf("a page that was there has %v: that is for package rank to say", d.Score)
	}
	f.Rank(&seed, 1.5)
	if seed.Score != 4.5 {
		t.Errorf("a seed that is given 1.5 has %v", seed.Score)
	}
	scoring.SetScore(&seed, 10)
	f.Rank(&seed, 1.5)
	if seed.Score != 11.5 {
		t.Errorf("a seed that was set to 10 and is given 1.5 has %v", seed.Score)
	}
}

func TestPageRankOf(t *testing.T) {
	in := scoring.PageRank{Damping: 0.7}
	for _, f := range []scoring.Filter{in, &in, scoring.Chain{scoring.Depth{}, scoring.Chain{&in}}} {
		if got, ok := scoring.PageRankOf(f); !ok || got != in || got.DampingFactor() != 0.7 {
			t.Errorf("%T: %+v, %t", f, got, ok)
		}
	}
	for _, f := range []scoring.Filter{nil, scoring.OPIC{}, scoring.Chain{scoring.OPIC{}}, (*scoring.PageRank)(nil)} {
		if got, ok := scoring.PageRankOf(f); ok {
			t.Errorf("%T: %+v", f, got)
		}
	}
}

func TestHostRate(t *testing.T) {
	for power, want := range map[float64]float64{0: 1.0 / 3, -1: 0, 0.5: 0.5, 1: 1, 7: 1} {
		if got := (scoring.PageRank{HostPower: power}).HostExponent(); got != want {
			t.Errorf("%v is %v, want %v", power, got, want)
		}
	}
	if got := (scoring.PageRank{HostPower: math.NaN()}).HostExponent(); got != 1.0/3 {
		t.Errorf("no number is %v", got)
	}
}
