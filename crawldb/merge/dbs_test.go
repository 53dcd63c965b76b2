package merge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/memstore"
)

var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

func crawlOf(t testing.TB, records ...crawldb.Datum) *memstore.Crawl {
	t.Helper()
	s := new(memstore.Crawl)
	for _, d := range records {
		err := s.Update(t.Context(), crawldb.Batch{URLs: []string{d.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func records(t testing.TB, s crawldb.Store) []crawldb.Datum {
	t.Helper()
	var all []crawldb.Datum
	for d, err := range s.Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// TestNutchCrawlDbMerger has the dbs of Nutch's test of that name.
func TestNutchCrawlDbMerger(t *testing.T) {
	rec := func(url string, at time.Time, meta ...string) crawldb.Datum {
		return crawldb.Datum{URL: url, FetchTime: at, Interval: time.Second, Meta: crawldb.MetaOf(meta...)}
	}
	later := start.Add(10 * time.Second)
	one := crawlOf(t, rec("http://example.com/", start, "name", "cd1", "cd1", "cd1"), rec("http://example.com/foo", start, "name", "cd1", "cd1", "cd1"))
	two := crawlOf(t, rec("http://example.com/", later, "name", "cd2"), rec("http://example.com/bar", later, "name", "cd2"))
	want := []crawldb.Datum{
		rec("http://example.com/", later, "name", "cd2", "cd1", "cd1"),
		rec("http://example.com/bar", later, "name", "cd2"),
		rec("http://example.com/foo", start, "name", "cd1", "cd1", "cd1"),
	}
	for _, compat := range []bool{false, true} {
		for _, srcs := range [][]crawldb.Store{{one, two}, {two, one}} {
			dst := new(memstore.Crawl)
			r, err := CrawlDBs(t.Context(), dst, srcs, CrawlDBOptions{NutchCompat: compat})
			if err != nil || r != (CrawlDBReport{Records: 4, Pages: 3}) {
				t.Errorf("%+v, %v", r, err)
			}
			if got := records(t, dst); !reflect.DeepEqual(got, want) {
				t.Errorf("compat %v: %+v, want %+v", compat, got, want)
			}
		}
	}
}

func TestLaterVisitWins(t *testing.T) {
	const u = "http://example.com/"
	at := func(days int) time.Time { return start.AddDate(0, 0, days) }
	rec := func(name string, status crawldb.Status, visited, due int) crawldb.Datum {
		return crawldb.Datum{URL: u, Status: status, LastFetch: at(visited), FetchTime: at(due), Interval: 24 * time.Hour, ETag: name}
	}
	for _, c := range []struct {
		name         string
		a, b         crawldb.Datum
		want, compat string
	}{
		{"the later visit", rec("a", crawldb.Fetched, 1, 9), rec("b", crawldb.Fetched, 2, 8), "b", "a"},
		{"then the later due time", rec("a", crawldb.Fetched, 1, 8), rec("b", crawldb.Fetched, 1, 9), "b", "b"},
		{"a visit that failed counts", rec("a", crawldb.Fetched, 1, 2), rec("b", crawldb.Unfetched, 3, 4), "b", "a"},
		{"and of equals always the same", rec("b", crawldb.Fetched, 1, 2), rec("a", crawldb.Fetched, 1, 2), "b", "b"},
		{"wherever it comes from", rec("a", crawldb.Fetched, 1, 2), rec("b", crawldb.Fetched, 1, 2), "b", "a"},
	} {
		for _, compat := range []bool{false, true} {
			dst := new(memstore.Crawl)
			if _, err := CrawlDBs(t.Context(), dst, []crawldb.Store{crawlOf(t, c.a), crawlOf(t, c.b)}, CrawlDBOptions{NutchCompat: compat}); err != nil {
				t.Fatal(err)
			}
			want := c.want
			if compat {
				want = c.compat
			}
			if got := records(t, dst)[0].ETag; got != want {
				t.Errorf("%s, compat %v: %s, want %s", c.name, compat, got, want)
			}
		}
	}
}

func TestCrawlDBsAccept(t *testing.T) {
	gone, orphan := crawldb.Datum{URL: "http://a.example/gone", Status: crawldb.Gone}, crawldb.Datum{URL: "http://a.example/orphan", Status: crawldb.Orphan}
	src := crawlOf(t,
		crawldb.Datum{URL: "http://a.example/x?sid=1", Status: crawldb.Fetched, LastFetch: start, ETag: "old", Meta: crawldb.MetaOf("k", "v")},
		crawldb.Datum{URL: "http://a.example/x?sid=2", Status: crawldb.Fetched, LastFetch: start.Add(time.Hour), ETag: "new"},
		crawldb.Datum{URL: "http://bad.example/", Status: crawldb.Fetched}, gone, orphan)
	kept := crawldb.Datum{URL: "http://bad.example/kept", Status: crawldb.Gone}
	dst := crawlOf(t, kept)
	o := CrawlDBOptions{PurgeGone: true, PurgeOrphans: true, Accept: func(u string) (string, bool) {
		u, _, _ = strings.Cut(u, "?")
		return u, !strings.Contains(u, "bad")
	}}
	r, err := CrawlDBs(t.Context(), dst, []crawldb.Store{src}, o)
	if err != nil || r != (CrawlDBReport{Records: 5, Rejected: 1, Purged: 2, Pages: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	want := []crawldb.Datum{{URL: "http://a.example/x", Status: crawldb.Fetched, LastFetch: start.Add(time.Hour), ETag: "new", Meta: crawldb.MetaOf("k", "v")}, kept}
	if got := records(t, dst); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// Records come in any order, and more than once.
func TestRecords(t *testing.T) {
	rec := func(url string, days int) crawldb.Datum {
		at := start.AddDate(0, 0, days)
		return crawldb.Datum{URL: url, Status: crawldb.Fetched, FetchTime: at, LastFetch: at, Interval: time.Hour}
	}
	come := func(all ...crawldb.Datum) func(func(crawldb.Datum, error) bool) {
		return func(yield func(crawldb.Datum, error) bool) {
			for _, d := range all {
				if d.URL == "" {
					yield(d, errors.ErrUnsupported)
					return
				}
				if !yield(d, nil) {
					return
				}
			}
		}
	}
	dst := crawlOf(t, rec("http://b.example/", 3))
	report, err := Records(t.Context(), dst, come(rec("http://c.example/", 1), rec("http://a.example/", 1), rec("http://b.example/", 1), rec("http://a.example/", 2)), CrawlDBOptions{})
	if want := (CrawlDBReport{Records: 4, Pages: 3}); err != nil || report != want {
		t.Errorf("%+v, %v; want %+v", report, err, want)
	}
	want := records(t, crawlOf(t, rec("http://a.example/", 2), rec("http://b.example/", 3), rec("http://c.example/", 1)))
	if got := records(t, dst); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := Records(t.Context(), dst, come(rec("http://d.example/", 1), crawldb.Datum{}), CrawlDBOptions{}); !errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "merge: records: ") {
		t.Errorf("an error of the sequence: %v", err)
	}
	if got := records(t, dst); !reflect.DeepEqual(got, want) {
		t.Errorf("behind an error: %v, want %v", got, want)
	}
}

func TestLeases(t *testing.T) {
	leased := crawldb.Datum{URL: "http://a.example/", Status: crawldb.Fetched, LastFetch: start, LeasedUntil: start.Add(time.Hour), LeasedBy: "theirs"}
	ours := crawldb.Datum{URL: "http://a.example/", Status: crawldb.Unfetched, LeasedUntil: start.Add(time.Minute), LeasedBy: "ours"}
	for _, c := range []struct {
		dst    *memstore.Crawl
		compat bool
		want   string
	}{
		{new(memstore.Crawl), false, ""},
		{crawlOf(t, ours), false, "ours"},
		{new(memstore.Crawl), true, "theirs"},
	} {
		if _, err := CrawlDBs(t.Context(), c.dst, []crawldb.Store{crawlOf(t, leased)}, CrawlDBOptions{NutchCompat: c.compat}); err != nil {
			t.Fatal(err)
		}
		if got := records(t, c.dst)[0]; got.LeasedBy != c.want || got.Status != crawldb.Fetched {
			t.Errorf("%+v, want a lease of %q", got, c.want)
		}
	}
}

// mortal dies at one of its writes.
type mortal struct {
	crawldb.Store
	left int
}

var errKilled = errors.New("killed")

func (m *mortal) Update(ctx context.Context, b crawldb.Batch) error {
	if m.left--; m.left < 0 {
		return errKilled
	}
	return m.Store.Update(ctx, b)
}

// TestMergeIsCommutativeAndIdempotent merges random dbs in every way and gets the same.
func TestMergeIsCommutativeAndIdempotent(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var srcs []crawldb.Store
		for range 3 {
			var recs []crawldb.Datum
			for i := range 12 {
				if rnd.IntN(3) == 0 {
					continue
				}
				d := crawldb.Datum{URL: fmt.Sprintf("http://h.example/%d", i), Status: crawldb.Statuses()[rnd.IntN(3)],
					LastFetch: start.Add(time.Duration(rnd.IntN(2)) * time.Hour), FetchTime: start.Add(time.Duration(rnd.IntN(2)) * time.Hour)}
				for range rnd.IntN(4) {
					d.Meta.Set(fmt.Sprint("n", rnd.IntN(3)), fmt.Sprint("v", rnd.IntN(3)))
				}
				recs = append(recs, d)
			}
			srcs = append(srcs, crawlOf(t, recs...))
		}
		o := CrawlDBOptions{chunk: 1 + rnd.IntN(5)}
		merged := func(dst crawldb.Store, srcs ...crawldb.Store) []crawldb.Datum {
			t.Helper()
			if _, err := CrawlDBs(t.Context(), dst, srcs, o); err != nil {
				t.Fatal(err)
			}
			return records(t, dst)
		}
		want := merged(new(memstore.Crawl), srcs...)
		for _, order := range [][3]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			if got := merged(new(memstore.Crawl), srcs[order[0]], srcs[order[1]], srcs[order[2]], srcs[order[0]]); !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d, order %v: %v, want %v", seed, order, got, want)
			}
		}
		// Again, whole or in part, and after a death at any write.
		dst := new(memstore.Crawl)
		merged(dst, srcs...)
		for _, s := range srcs {
			if got := merged(dst, s); !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d, again: %v, want %v", seed, got, want)
			}
		}
		for deaths := range 4 {
			dst := new(memstore.Crawl)
			if _, err := CrawlDBs(t.Context(), &mortal{dst, deaths}, srcs, o); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			if got := merged(dst, srcs...); !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d, after death %d: %v, want %v", seed, deaths, got, want)
			}
		}
	}
}

func TestCrawlDBsOnDisk(t *testing.T) {
	var a, b []crawldb.Datum
	for i := range 3000 {
		d := crawldb.Datum{URL: fmt.Sprintf("http://h%d.example/%d", i%10, i), Status: crawldb.Fetched, LastFetch: start}
		a = append(a, d)
		d.LastFetch, d.ETag = start.Add(time.Hour), "b"
		b = append(b, d)
	}
	dir := t.TempDir()
	dst := new(memstore.Crawl)
	if _, err := CrawlDBs(t.Context(), dst, []crawldb.Store{crawlOf(t, b...), crawlOf(t, a...)}, CrawlDBOptions{SortMemory: 20_000, TempDir: dir}); err != nil {
		t.Fatal(err)
	}
	if got := records(t, dst); len(got) != 3000 || slices.ContainsFunc(got, func(d crawldb.Datum) bool { return d.ETag != "b" }) {
		t.Errorf("%d records", len(got))
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func linksOf(t testing.TB, entries ...linkdb.Entry) *memstore.Links {
	t.Helper()
	s := new(memstore.Links)
	for _, e := range entries {
		if err := s.Merge(t.Context(), []linkdb.Entry{e}, 0); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func entries(t testing.TB, s linkdb.Store) string {
	t.Helper()
	var b strings.Builder
	for e, err := range s.Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s <", e.URL)
		for _, l := range e.Inlinks {
			fmt.Fprintf(&b, " %s(%s)", l.From, l.Anchor)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func entry(url string, from ...string) linkdb.Entry {
	e := linkdb.Entry{URL: url}
	for _, f := range from {
		e.Inlinks = append(e.Inlinks, linkdb.Inlink{From: f, Anchor: f})
	}
	return e
}

// TestNutchLinkDbMerger has the dbs of Nutch's test of that name.
func TestNutchLinkDbMerger(t *testing.T) {
	one := linksOf(t, entry("http://example.com/foo", "http://example.com/100", "http://example.com/101"), entry("http://example.com/", "http://example.com/110", "http://example.com/111"))
	two := linksOf(t, entry("http://example.com/", "http://foo.com/200", "http://foo.com/201"), entry("http://example.com/bar", "http://foo.com/210", "http://foo.com/211"))
	want := entries(t, linksOf(t,
		entry("http://example.com/foo", "http://example.com/100", "http://example.com/101"),
		entry("http://example.com/", "http://example.com/110", "http://example.com/111", "http://foo.com/200", "http://foo.com/201"),
		entry("http://example.com/bar", "http://foo.com/210", "http://foo.com/211")))
	dst := new(memstore.Links)
	for _, srcs := range [][]linkdb.Store{{one, two}, {two, one}} { // again changes nothing
		r, err := LinkDBs(t.Context(), dst, srcs, LinkDBOptions{})
		if err != nil || r != (LinkDBReport{Pages: 4, Inlinks: 8}) {
			t.Errorf("%+v, %v", r, err)
		}
		if got := entries(t, dst); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestLinkDBsAccept(t *testing.T) {
	src := linksOf(t,
		entry("http://z.example/a?1", "http://x.example/"),
		entry("http://z.example/a?2", "http://x.example/", "http://y.example/?s", "http://bad.example/"),
		entry("http://bad.example/", "http://x.example/"),
		entry("http://z.example/b", "http://bad.example/"))
	o := LinkDBOptions{Accept: func(u string) (string, bool) {
		u, _, _ = strings.Cut(u, "?")
		return strings.Replace(u, "z.example/a", "a.example/z", 1), !strings.Contains(u, "bad")
	}}
	dst := new(memstore.Links)
	r, err := LinkDBs(t.Context(), dst, []linkdb.Store{src}, o)
	if err != nil || r != (LinkDBReport{Pages: 4, Inlinks: 6, Rejected: 3}) {
		t.Errorf("%+v, %v", r, err)
	}
	if got, want := entries(t, dst), "http://a.example/z < http://x.example/(http://x.example/) http://y.example/(http://y.example/?s)\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLinkDBsKeepTheirBounds(t *testing.T) {
	var from []string
	for i := range 50 {
		from = append(from, fmt.Sprintf("http://h%02d.example/", i))
	}
	dst := new(memstore.Links)
	srcs := []linkdb.Store{linksOf(t, entry("http://a.example/", from[25:]...)), linksOf(t, entry("http://a.example/", from[:25]...))}
	if _, err := LinkDBs(t.Context(), dst, srcs, LinkDBOptions{MaxInlinks: 10}); err != nil {
		t.Fatal(err)
	}
	if got, want := entries(t, dst), entries(t, linksOf(t, entry("http://a.example/", from[:10]...))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Each of many pages keeps its links, and no more than MaxInlinks says.
func TestPageWithManyLinks(t *testing.T) {
	const most = 10_000 // links of a page by default, and pages in one Merge
	src := new(memstore.Links)
	popular := linkdb.Entry{URL: "http://a.example/popular"}
	for i := range most + 1 {
		popular.Inlinks = append(popular.Inlinks, linkdb.Inlink{From: fmt.Sprintf("http://b.example/%05d", i)})
	}
	all := []linkdb.Entry{popular}
	for i := range 2 * most {
		all = append(all, linkdb.Entry{URL: fmt.Sprintf("http://c.example/%05d", i), Inlinks: popular.Inlinks[:1]})
	}
	if err := src.Merge(t.Context(), all, 0); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]int{0: most, -1: most + 1} {
		dst := new(memstore.Links)
		steps := &merges{Store: dst}
		r, err := LinkDBs(t.Context(), steps, []linkdb.Store{src}, LinkDBOptions{MaxInlinks: limit})
		if steps.most > most {
			t.Errorf("one Merge has %d pages", steps.most)
		}
		if err != nil || r != (LinkDBReport{Pages: 2*most + 1, Inlinks: 3*most + 1}) {
			t.Errorf("%+v, %v", r, err)
		}
		if links, err := dst.Get(t.Context(), popular.URL); err != nil || len(links) != want {
			t.Errorf("MaxInlinks %d: %d links, %v", limit, len(links), err)
		}
		pages := 0
		for e, err := range dst.Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			if pages++; len(e.Inlinks) == 0 || e.Inlinks[0] != popular.Inlinks[0] {
				t.Fatalf("%+v", e)
			}
		}
		if pages != 2*most+1 {
			t.Errorf("%d pages", pages)
		}
	}
}

// merges notes the most pages of one Merge.
type merges struct {
	linkdb.Store
	most int
}

func (m *merges) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	m.most = max(m.most, len(entries))
	return m.Store.Merge(ctx, entries, limit)
}

// What is gone or an orphan is merged like any other record, unless it is to be purged.
func TestPurge(t *testing.T) {
	is := func(url string, s crawldb.Status) crawldb.Datum { return crawldb.Datum{URL: url, Status: s} }
	src := crawlOf(t, is("http://a.example/", crawldb.Fetched), is("http://b.example/", crawldb.Gone), is("http://c.example/", crawldb.Orphan), is("http://d.example/", crawldb.Orphan))
	for _, c := range []struct {
		o    CrawlDBOptions
		want CrawlDBReport
	}{
		{CrawlDBOptions{}, CrawlDBReport{Records: 4, Pages: 4}},
		{CrawlDBOptions{PurgeGone: true}, CrawlDBReport{Records: 4, Purged: 1, Pages: 3}},
		{CrawlDBOptions{PurgeOrphans: true}, CrawlDBReport{Records: 4, Purged: 2, Pages: 2}},
		{CrawlDBOptions{PurgeGone: true, PurgeOrphans: true}, CrawlDBReport{Records: 4, Purged: 3, Pages: 1}},
	} {
		dst := new(memstore.Crawl)
		r, err := CrawlDBs(t.Context(), dst, []crawldb.Store{src}, c.o)
		if err != nil || r != c.want || len(records(t, dst)) != c.want.Pages {
			t.Errorf("%+v: %+v, %v, %d records", c.o, r, err, len(records(t, dst)))
		}
	}
}

func TestCancelledMergeEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := CrawlDBs(ctx, new(memstore.Crawl), nil, CrawlDBOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := LinkDBs(ctx, new(memstore.Links), nil, LinkDBOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Segments(ctx, new(memstore.Segments), nil, SegmentOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	closed := new(memstore.Links)
	closed.Close()
	if _, err := LinkDBs(t.Context(), new(memstore.Links), []linkdb.Store{new(memstore.Links), closed}, LinkDBOptions{}); !errors.Is(err, linkdb.ErrClosed) || !strings.Contains(err.Error(), "source 2") {
		t.Error(err)
	}
}

// What an older visit has left for the next one, or said of the page, is no part of a
// record that was visited since; what was learned and what seeds gave is.
func TestMetadataOfOlderVisits(t *testing.T) {
	const u = "http://example.com/"
	rec := func(days int, meta ...string) crawldb.Datum {
		return crawldb.Datum{URL: u, Status: crawldb.Fetched, LastFetch: start.AddDate(0, 0, days), FetchTime: start.AddDate(0, 1, 0), Meta: crawldb.MetaOf(meta...)}
	}
	old := rec(1, "schedule.rate", "learned", "schedule.since", "s", "schedule.signs", "3", "sitemap.planned", "p",
		"page.noarchive", "1", "Content-Type", "text/html", "_rs_", "7", "_pst_", "x", "nutch.protocol.code", "200",
		"orphan.seen", "1700000900", "schedule.fixed", "60", "mine", "1")
	for _, c := range []struct {
		newer crawldb.Datum
		want  crawldb.Meta
	}{
		{rec(2, "orphan.seen", "1700000100", "page.lang", "de"), crawldb.MetaOf(
			"schedule.rate", "learned", "orphan.seen", "1700000900", "schedule.fixed", "60", "mine", "1", "page.lang", "de")},
		{rec(2, "orphan.seen", "1700001000", "schedule.rate", "better", "schedule.since", "t"), crawldb.MetaOf(
			"schedule.rate", "better", "schedule.since", "t", "orphan.seen", "1700001000", "schedule.fixed", "60", "mine", "1")},
		{rec(1), old.Meta}, // of the same visit
	} {
		for _, srcs := range [][]crawldb.Store{{crawlOf(t, old), crawlOf(t, c.newer)}, {crawlOf(t, c.newer), crawlOf(t, old)}} {
			dst := new(memstore.Crawl)
			for range 2 {
				if _, err := CrawlDBs(t.Context(), dst, srcs, CrawlDBOptions{}); err != nil {
					t.Fatal(err)
				}
				if got := records(t, dst); len(got) != 1 || got[0].Meta != c.want {
					t.Errorf("%+v, want %+v", got, c.want)
				}
			}
		}
	}
}
