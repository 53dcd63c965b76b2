package rank_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/stores/memstore"
)

var errKilled = errors.New("killed")

// mortal is a crawl db whose process dies with an Update, and that tells what marks it has.
type mortal struct {
	*memstore.Crawl
	left  int // Updates before that; none if it is negative
	marks map[string]string

	updates int // that were made
}

func (m *mortal) Update(ctx context.Context, b crawldb.Batch) error {
	if m.left == 0 {
		return errKilled
	}
	m.left--
	m.updates++
	var marks map[string]string
	if b.Marks != nil {
		marks = b.Marks()
	}
	err := m.Crawl.Update(ctx, b)
	for name, mark := range marks {
		if mark == "" {
			delete(m.marks, name)
		} else if err == nil && strings.HasPrefix(name, "pagerank") {
			m.marks[name] = mark
		}
	}
	return err
}

// live is a web of ten pages, one of which is replaced by a new one in each round. Page n
// links to the ones around it, to the start page, and to one that never existed.
func live(round int) []string {
	url := func(n int) string { return fmt.Sprintf("http://h%d.example/%d", n%5, n) }
	lines := []string{fmt.Sprintf("http://start.example/ %s %s", url(round), url(round+9))}
	if round > 0 {
		lines = append(lines, "-"+url(round-1))
	}
	for n := round; n < round+10; n++ {
		lines = append(lines, fmt.Sprintf("%s %s %s http://start.example/ http://never.example/%d", url(n), url(n+1), url(max(n-1, round)), n))
	}
	return lines
}

// years crawls the web for some rounds, and returns the crawl db. The process is killed at
// each of the Updates in kills, and resumes.
func years(t *testing.T, rounds, collect int, memory int64, kills map[int]bool) (*mortal, []rank.Report) {
	t.Helper()
	w := &world{t, new(memstore.Crawl), new(memstore.Segments)}
	db := &mortal{Crawl: w.crawl, left: -1, marks: map[string]string{}}
	o := rank.Options{Scoring: scoring.PageRank{}, Memory: memory}
	o.SetPruneFrom(collect)
	var reports []rank.Report
	ranker := new(rank.Ranker)
	for round := range rounds {
		name := fmt.Sprintf("%04d", round)
		w.segment(name, live(round)...)
		w.set(live(round))
		for {
			db.left = -1
			for n := range 100 {
				if kills[db.updates+n] {
					delete(kills, db.updates+n)
					db.left = n
					break
				}
			}
			r, err := ranker.Run(t.Context(), db, w.segments, name, o)
			if errors.Is(err, errKilled) {
				ranker = new(rank.Ranker)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			reports = append(reports, r)
			break
		}
	}
	return db, reports
}

// set gives the pages of a segment the status that their visits make.
func (w *world) set(lines []string) {
	w.t.Helper()
	for _, line := range lines {
		url, gone := strings.CutPrefix(strings.Fields(line)[0], "-")
		err := w.crawl.Update(w.t.Context(), crawldb.Batch{URLs: []string{url}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			d := *old
			if d.Status = crawldb.Fetched; gone {
				d.Status = crawldb.Gone
			}
			return &d, nil
		}})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// dump is what a crawl db has of ranks.
func dump(t *testing.T, db *mortal) string {
	t.Helper()
	var b strings.Builder
	for d, err := range db.Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %v\n", d.URL, d.Score)
	}
	return b.String()
}

func bytesOf(marks map[string]string) (n int) {
	for _, m := range marks {
		n += len(m)
	}
	return n
}

// A graph of pages that come and go has no more than twice the pages that there are: not
// in memory, and not in the crawl db.
func TestGonePagesAreDropped(t *testing.T) {
	const rounds = 200
	db, reports := years(t, rounds, 64, 0, nil)
	dropped, most := 0, 0
	for _, r := range reports {
		dropped += r.Dropped
		most = max(most, r.Pages)
	}
	// Each round has a page and one that never was more, which stays: it has a record.
	last := reports[rounds-1]
	if dropped < rounds/2 || last.Pages > 2*(rounds+20) || most > 3*rounds {
		t.Errorf("%d pages of %d rounds, %d at most, %d were dropped", last.Pages, rounds, most, dropped)
	}
	for name := range db.marks {
		if strings.HasPrefix(name, "pagerank/pages/") && strings.Count(name, "/") == 2 {
			t.Errorf("%s is still there", name)
		}
	}
	// The scores are those of a graph that never had what is gone.
	fresh := &world{t, new(memstore.Crawl), new(memstore.Segments)}
	fresh.segment("1", live(rounds-1)...)
	o := rank.Options{Scoring: scoring.PageRank{}, Growth: -1}
	if _, err := new(rank.Ranker).Run(t.Context(), fresh.crawl, fresh.segments, "1", o); err != nil {
		t.Fatal(err)
	}
	for n := rounds - 1; n < rounds+8; n++ {
		url := fmt.Sprintf("http://h%d.example/%d", n%5, n)
		want, err := fresh.crawl.Get(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Get(t.Context(), url); err != nil || got.Score < want.Score*.6 || got.Score > want.Score*1.7 {
			t.Errorf("%s has %v, want about %v: %v", url, got.Score, want.Score, err)
		}
	}
}

// Pages that are gone and linked to stay, since they may come back; those without a
// record do not.
func TestGonePagesWithInlinksStay(t *testing.T) {
	w := &world{t, new(memstore.Crawl), new(memstore.Segments)}
	o := rank.Options{Scoring: scoring.PageRank{}, Growth: -1}
	run := func(name string) rank.Report {
		t.Helper()
		r, err := new(rank.Ranker).Run(t.Context(), w.crawl, w.segments, name, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	page := []string{"http://a.example/ http://linked.example/ http://forgotten.example/ http://b.example/", "http://b.example/ http://purged.example/"}
	w.segment("1", page...)
	w.set(page)
	run("1")
	w.segment("2", "-http://linked.example/", "-http://forgotten.example/", "http://a.example/ http://linked.example/ http://b.example/")
	w.set([]string{"-http://linked.example/", "-http://forgotten.example/"})
	err := w.crawl.Update(t.Context(), crawldb.Batch{URLs: []string{"http://purged.example/"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	o.SetPruneFrom(5)
	if r := run("2"); r.Dropped != 2 || r.Pages != 3 || r.Links != 2 || !r.Ranked {
		t.Errorf("%+v", r)
	}
	// It is back, and has what a gives, which is not asked again.
	w.segment("3", "http://linked.example/")
	w.set([]string{"http://linked.example/"})
	run("3")
	if d, err := w.crawl.Get(t.Context(), "http://linked.example/"); err != nil || d.Score < .4 {
		t.Errorf("%v, %v", d.Score, err)
	}
}

// A graph that is full of what is gone has room again.
func TestFullGraphOfGonePages(t *testing.T) {
	_, reports := years(t, 160, 1<<20, 4000, nil)
	full, room := 0, 0
	for _, r := range reports {
		if r.Full {
			full++
		} else if full > 0 {
			room++
		}
	}
	if full == 0 || room == 0 {
		t.Errorf("%d rounds found it full, and %d had room after that", full, room)
	}
}

// Wherever the process dies while pages are dropped, the result is the same.
func TestKilledWhileDropping(t *testing.T) {
	const rounds, collect = 14, 40
	want, reports := years(t, rounds, collect, 0, nil)
	looks := 0
	for _, r := range reports {
		if r.Dropped > 0 {
			looks++
		}
	}
	if looks == 0 {
		t.Fatal("nothing was dropped")
	}
	for first := range want.updates {
		kills := map[int]bool{first: true, (first*7 + 3) % want.updates: true}
		got, _ := years(t, rounds, collect, 0, kills)
		if is, was := dump(t, got), dump(t, want); is != was {
			t.Fatalf("killed at %v:\n%s\nwant\n%s", kills, is, was)
		}
		if !maps.Equal(got.marks, want.marks) {
			t.Errorf("killed at %v: marks of %d bytes, want %d", kills, bytesOf(got.marks), bytesOf(want.marks))
		}
	}
}
