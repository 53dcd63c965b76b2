package update_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	webpage "github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// visitAll makes a segment of a visit to some pages of the crawl db.
func (w *world) visitAll(name string, f scoring.Filter, pick func(d *crawldb.Datum) bool, links func(d *crawldb.Datum) []string, at time.Time, shuffle *rand.Rand) {
	var list []crawldb.Datum
	var visits []segment.Visit
	var parses []segment.Parse
	for d, err := range w.crawl.Scan(w.t.Context(), crawldb.Range{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if pick(&d) {
			list = append(list, d)
		}
	}
	shuffle.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for i := range list {
		d := &list[i]
		v := visitAt(at, protocol.Success)
		v.URL = d.URL
		visits = append(visits, *v)
		p := segment.Parse{URL: d.URL, Signature: []byte("s")}
		var to []scoring.Link
		for _, u := range links(d) {
			to = append(to, scoring.Link{From: d.URL, URL: u})
		}
		p.Gave = f.Distribute(scoring.Page{Datum: d, Content: &webpage.Content{}, Found: len(to)}, to)
		for _, l := range to {
			p.Links = append(p.Links, segment.Link{URL: l.URL, Score: l.Score})
		}
		parses = append(parses, p)
	}
	write(w, name, list)
	write(w, name, visits)
	write(w, name, parses)
}

func (w *world) cash() float64 {
	total := 0.0
	for d, err := range w.crawl.Scan(w.t.Context(), crawldb.Range{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		total += scoring.Cash(&d)
	}
	return total
}

// A hundred rounds over a web in which every third page has no links, and new
// pages turn up.
func TestCashIsConservedWithSinks(t *testing.T) {
	for _, f := range []scoring.OPIC{{}, {CountFiltered: true, InternalFactor: 0.2}, {ExternalFactor: -1}} {
		w := newWorld(t)
		for i := range 20 {
			d := crawldb.Datum{URL: url(i), Status: crawldb.Unfetched, Score: float32(i%3) + 0.5}
			f.Injected(&d)
			w.put(d)
		}
		want := w.cash()
		r := rand.New(rand.NewPCG(1, 2))
		for n := range testlevel.Pick(40, 100) {
			name := fmt.Sprintf("2026%04d", n)
			w.visitAll(name, f, func(*crawldb.Datum) bool { return r.IntN(3) > 0 }, func(d *crawldb.Datum) []string {
				var out []string
				if len(d.URL)%3 > 0 {
					for range 1 + r.IntN(5) {
						if u := url(r.IntN(20 + 3*n)); !slices.Contains(out, u) {
							out = append(out, u)
						}
					}
				}
				return out
			}, noon.Add(time.Duration(n)*day), r)
			if _, err := update.Run(t.Context(), w.crawl, w.segments, name, update.Options{Scoring: f}); err != nil {
				t.Fatal(err)
			}
			if got := w.cash(); math.Abs(got-want) > 1e-6 {
				t.Fatalf("%+v: cash is %v after %d rounds, want %v", f, got, n+1, want)
			}
		}
	}
}

// The order in which visits were made makes no difference to any bit.
func TestUndistributedScoreDoesNotDependOnOrder(t *testing.T) {
	var want string
	for seed := range uint64(5) {
		w := newWorld(t)
		f := scoring.OPIC{}
		for i := range 300 {
			d := crawldb.Datum{URL: url(i), Status: crawldb.Unfetched, Score: 1 / float32(i+3)}
			f.Injected(&d)
			w.put(d)
		}
		w.visitAll("s", f, func(*crawldb.Datum) bool { return true }, func(d *crawldb.Datum) []string {
			if len(d.URL)%2 == 0 {
				return nil
			}
			return []string{url(7), url(8), d.URL + "x"}
		}, noon, rand.New(rand.NewPCG(seed, 0)))
		if _, err := update.Run(t.Context(), w.crawl, w.segments, "s", update.Options{Scoring: f, Now: func() time.Time { return noon }}); err != nil {
			t.Fatal(err)
		}
		if got := w.dump(); want == "" {
			want = got
		} else if got != want {
			t.Fatalf("seed %d: another crawl db", seed)
		}
	}
}

// Where links are not made distinct, each counts, even if nothing tells them
// apart.
func TestLinksThatAreTheSameCountEach(t *testing.T) {
	w := newWorld(t)
	f := scoring.OPIC{NutchCompat: true}
	w.put(crawldb.Datum{URL: url(1), Score: 3})
	w.visitAll("s", f, func(*crawldb.Datum) bool { return true }, func(*crawldb.Datum) []string {
		return []string{url(2), url(2), url(3)}
	}, noon, rand.New(rand.NewPCG(1, 0)))
	r, err := update.Run(t.Context(), w.crawl, w.segments, "s", update.Options{Scoring: f})
	if err != nil || r.Links != 3 || r.Targets != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if two, three := w.get(url(2)).Score, w.get(url(3)).Score; two != 2 || three != 1 {
		t.Errorf("scores %v and %v, want 2 and 1", two, three)
	}
}

// A share arrives even if a later visit of the page was applied before.
func TestUndistributedScoreOfAnOlderSegment(t *testing.T) {
	w := newWorld(t)
	f := scoring.OPIC{}
	for i := range 2 {
		d := crawldb.Datum{URL: url(i), Score: 1}
		f.Injected(&d)
		w.put(d)
	}
	w.visitAll("s", f, func(*crawldb.Datum) bool { return true }, func(*crawldb.Datum) []string { return nil }, noon, rand.New(rand.NewPCG(1, 0)))
	// A later visit was applied first: the one of this segment says nothing new.
	d := w.get(url(0))
	d.LastFetch = noon.Add(day)
	w.put(d)
	if _, err := update.Run(t.Context(), w.crawl, w.segments, "s", update.Options{Scoring: f}); err != nil {
		t.Fatal(err)
	}
	if got := w.cash(); got != 2 {
		t.Errorf("cash %v, want 2", got)
	}
}
