package rank_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// world is a crawl db and its segments.
type world struct {
	t        *testing.T
	crawl    *memstore.Crawl
	segments *memstore.Segments
}

func part[T segment.Record](w *world, name string, records []T) {
	w.t.Helper()
	p, err := segment.NewWriter[T](w.t.Context(), w.segments, name, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.Append(w.t.Context(), records); err != nil {
		w.t.Fatal(err)
	}
	if err := p.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// segment writes a segment. Each line is a page and what it links to, or one that is
// gone, which has a - before it. All of them get records.
func (w *world) segment(name string, lines ...string) {
	w.t.Helper()
	var list []crawldb.Datum
	var visits []segment.Visit
	var parses []segment.Parse
	var urls []string
	for _, line := range lines {
		f := strings.Fields(line)
		url, gone := strings.CutPrefix(f[0], "-")
		v := segment.Visit{URL: url, Outcome: protocol.Outcome{Code: protocol.Success}}
		if gone {
			v.Outcome.Code = protocol.NotFound
		} else {
			p := segment.Parse{URL: url, Signature: []byte{1}}
			for _, to := range f[1:] {
				p.Links = append(p.Links, segment.Link{URL: to, Score: 1})
			}
			parses = append(parses, p)
		}
		list, visits, urls = append(list, crawldb.Datum{URL: url}), append(visits, v), append(append(urls, url), f[1:]...)
	}
	part(w, name, list)
	part(w, name, visits)
	part(w, name, parses)
	slices.SortFunc(urls, crawldb.Compare)
	urls = slices.Compact(urls)
	err := w.crawl.Update(w.t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		if old != nil {
			return old, nil
		}
		return &crawldb.Datum{URL: urls[i], Status: crawldb.Unfetched}, nil
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) scores() string {
	w.t.Helper()
	var b strings.Builder
	for d, err := range w.crawl.Scan(w.t.Context(), crawldb.Range{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if d.Priority != d.Score {
			w.t.Errorf("%s has score %v and priority %v", d.URL, d.Score, d.Priority)
		}
		fmt.Fprintf(&b, "%s %.2f\n", d.URL, d.Score)
	}
	return b.String()
}

func options() rank.Options {
	return rank.Options{Scoring: scoring.PageRank{Damping: 0.5, HostPower: -1}, Growth: -1}
}

func (w *world) run(name string) rank.Report {
	w.t.Helper()
	r, err := new(rank.Ranker).Run(w.t.Context(), w.crawl, w.segments, name, options())
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

const first = "http://a.example/ 0.00\nhttp://b.example/ 0.25\nhttp://c.example/ 0.88\n"

// A schedule that has an order of its own keeps it when scores change.
func TestOrderOfTheSchedule(t *testing.T) {
	w := &world{t, new(memstore.Crawl), new(memstore.Segments)}
	w.segment("1", "http://b.example/ http://c.example/", "http://a.example/ http://b.example/ http://c.example/")
	o := options()
	o.Schedule = schedule.Learned{}
	if r, err := new(rank.Ranker).Run(t.Context(), w.crawl, w.segments, "1", o); err != nil || r.Written == 0 {
		t.Fatal(r, err)
	}
	for d, err := range w.crawl.Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := schedule.Priority(o.Schedule, &d, d.Score); d.Score > 0 && (d.Priority != want || d.Priority == d.Score) {
			t.Errorf("%s has score %v and priority %v, want %v", d.URL, d.Score, d.Priority, want)
		}
	}
}

func TestRun(t *testing.T) {
	w := &world{t, new(memstore.Crawl), new(memstore.Segments)}
	w.segment("1", "http://b.example/ http://c.example/", "http://a.example/ http://b.example/ http://c.example/")
	if r := w.run("1"); !r.Ranked || r.Pages != 3 || r.Links != 3 || r.Written != 2 || r.Rebuilt || r.Full {
		t.Errorf("%+v", r)
	}
	if got := w.scores(); got != first {
		t.Errorf("the scores are\n%swant\n%s", got, first)
	}
	if r := w.run("1"); !r.Already {
		t.Errorf("a second time: %+v", r)
	}
	// A page that is gone gives nothing, one that has changed gives otherwise, and a
	// page that the crawl db does not have is no trouble.
	w.segment("2", "-http://b.example/", "http://c.example/ http://a.example/")
	if err := w.crawl.Update(t.Context(), crawldb.Batch{URLs: []string{"http://b.example/"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	if r := w.run("2"); !r.Ranked || r.Links != 3 {
		t.Errorf("%+v", r)
	}
	// a = (1+c)/2, c = (1+a)/4.
	if got, want := w.scores(), "http://a.example/ 0.71\nhttp://c.example/ 0.43\n"; got != want {
		t.Errorf("the scores are\n%swant\n%s", got, want)
	}
}

// Which page of a host carries the sitemaps in its robots.txt depends on timing, and makes no
// difference: neither to a page that failed, which stays as it was, nor to one that is gone,
// nor to one that redirects to a URL that the rules reject.
func TestRunWithSitemaps(t *testing.T) {
	const page, next, seed = "http://a.example/", "http://b.example/", "http://seed.example/"
	var sitemap segment.Link
	sitemap.URL = "http://a.example/sitemap.xml"
	crawldb.Sitemap{Origins: []string{"http://a.example"}, Budget: 1}.Set(&sitemap.Meta)
	for _, c := range []struct {
		code  protocol.Code
		links int64
	}{{protocol.Failed, 1}, {protocol.NotModified, 1}, {protocol.Success, 1}, {protocol.NotFound, 0}, {protocol.MovedTemp, 0}} {
		for _, url := range []string{page, seed} {
			var said []string
			for _, brings := range []bool{false, true} {
				w := &world{t, new(memstore.Crawl), new(memstore.Segments)}
				w.segment("1", page+" "+next)
				w.run("1")
				part(w, "2", []crawldb.Datum{{URL: url}})
				part(w, "2", []segment.Visit{{URL: url, Outcome: protocol.Outcome{Code: c.code}}})
				var parses []segment.Parse
				if c.code == protocol.MovedTemp {
					parses = []segment.Parse{{URL: url}}
				}
				if brings {
					parses = []segment.Parse{{URL: url, Links: []segment.Link{sitemap}}}
				}
				part(w, "2", parses)
				r := w.run("2")
				if url == page && r.Links != c.links {
					t.Errorf("%v, brings sitemaps: %v: %d links, want %d", c.code, brings, r.Links, c.links)
				}
				mark, err := w.crawl.Mark(t.Context(), "pagerank")
				if err != nil {
					t.Fatal(err)
				}
				said = append(said, mark)
			}
			if said[0] != said[1] {
				t.Errorf("%s, %v: the graph is %q, and if it brings sitemaps %q", url, c.code, said[0], said[1])
			}
		}
	}
}

func TestRunWithoutPageRank(t *testing.T) {
	w := &world{t, new(memstore.Crawl), new(memstore.Segments)}
	w.segment("1", "http://a.example/ http://b.example/")
	r, err := new(rank.Ranker).Run(t.Context(), w.crawl, w.segments, "1", rank.Options{Scoring: scoring.OPIC{}})
	if mark, _ := w.crawl.Mark(t.Context(), rank.SegmentMark("1")); err != nil || r != (rank.Report{}) || mark != "" {
		t.Errorf("%+v, %v, mark %q", r, err, mark)
	}
}

// A page on an unknown host counts for more until it is fetched. A Ranker with the graph in
// memory gives the same results as one that has just read it.
func TestRunWithHosts(t *testing.T) {
	o := options()
	o.Scoring = scoring.PageRank{Damping: 0.5}
	var again string
	for _, fresh := range []bool{true, false} {
		w := &world{t, new(memstore.Crawl), new(memstore.Segments)}
		var kept rank.Ranker
		run := func(name, want string) {
			t.Helper()
			r := &kept
			if fresh {
				r = new(rank.Ranker)
			}
			if _, err := r.Run(t.Context(), w.crawl, w.segments, name, o); err != nil {
				t.Fatal(err)
			}
			if got := w.scores(); got != want {
				t.Errorf("fresh %v, %s: the scores are\n%swant\n%s", fresh, name, got, want)
			}
		}
		w.segment("1", "http://b.example/ http://c.example/", "http://a.example/ http://b.example/ http://c.example/")
		run("1", "http://a.example/ 0.00\nhttp://b.example/ 0.25\nhttp://c.example/ 1.39\n") // 0.88 times the cube root of 2, twice
		w.segment("2", "http://c.example/")
		o.Growth = 0
		run("2", "http://a.example/ 0.00\nhttp://b.example/ 0.25\nhttp://c.example/ 1.39\n") // no link is new
		o.Growth = -1
		w.segment("3", "http://b.example/ http://c.example/ http://c.example/2")
		run("3", "http://a.example/ 0.00\nhttp://b.example/ 0.25\nhttp://c.example/ 0.56\nhttp://c.example/2 0.31\n")
		mark, err := w.crawl.Mark(t.Context(), "pagerank")
		if err != nil || again != "" && again != mark {
			t.Errorf("the graph is %q, and was %q: %v", mark, again, err)
		}
		again = mark
	}
}

// A damaged or missing graph is rebuilt from the existing segments.
func TestRebuild(t *testing.T) {
	for _, harm := range []struct{ job, mark string }{
		{"pagerank", "2 pages 7"}, {"pagerank", ""}, {"pagerank/pages/0", ""}, {"pagerank/links/0/0", ""},
		{"pagerank/pages/0", "\xff\xff\xff"}, {"pagerank/links/0/0", "\x05\x09\x02\x02\x02"},
	} {
		w := &world{t, new(memstore.Crawl), new(memstore.Segments)}
		w.segment("1", "http://a.example/ http://b.example/ http://c.example/")
		w.run("1")
		if err := w.crawl.Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(harm.job, harm.mark)}); err != nil {
			t.Fatal(err)
		}
		w.segment("2", "http://b.example/ http://c.example/")
		if r := w.run("2"); !r.Rebuilt || (r.Damage == nil) != (harm.job == "pagerank" && harm.mark == "") || r.Links != 3 {
			t.Errorf("%q: %+v", harm, r)
		}
		if got := w.scores(); got != first {
			t.Errorf("%q: the scores are\n%s", harm, got)
		}
	}
}
