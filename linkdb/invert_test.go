package linkdb_test

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

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// put writes the parse_data of a segment, a page a block.
func put(t testing.TB, s segment.Store, name string, pages ...segment.Data) {
	t.Helper()
	w, err := segment.NewWriter[segment.Data](t.Context(), s, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if err := w.Append(t.Context(), []segment.Data{p}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// links makes a page; each link is a target, a space and an anchor.
func links(url string, links ...string) segment.Data {
	d := segment.Data{URL: url}
	for _, l := range links {
		to, anchor, _ := strings.Cut(l, " ")
		d.Parsed.Outlinks = append(d.Parsed.Outlinks, page.Outlink{URL: to, Anchor: anchor})
	}
	return d
}

// dump is the store in lines of target, source and anchor.
func dump(t testing.TB, s linkdb.Store) []string {
	t.Helper()
	var out []string
	for e, err := range s.Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range e.Inlinks {
			out = append(out, strings.TrimSpace(e.URL+" < "+in.From+" "+in.Anchor))
		}
	}
	return out
}

func TestInvert(t *testing.T) {
	noFollow := links("http://a.example/", "http://b.example/")
	noFollow.Parsed.Outlinks[0].NoFollow = true
	noFollowPage := links("http://a.example/", "http://b.example/")
	noFollowPage.Parsed.NoFollow = true

	tests := []struct {
		name   string
		pages  []segment.Data
		o      linkdb.InvertOptions
		want   []string
		report linkdb.InvertReport
	}{
		{
			name:   "nothing to read",
			report: linkdb.InvertReport{},
		},
		{
			name: "links are turned round and sorted by key",
			pages: []segment.Data{
				links("http://a.example/", "http://b.example/ to b", "http://c.example/x to c"),
				links("http://c.example/", "http://b.example/ b again"),
			},
			want: []string{
				"http://b.example/ < http://a.example/ to b",
				"http://b.example/ < http://c.example/ b again",
				"http://c.example/x < http://a.example/ to c",
			},
			report: linkdb.InvertReport{Pages: 2, Links: 3, Targets: 2, Inlinks: 3},
		},
		{
			name:   "a link that asks not to be followed is no vote",
			pages:  []segment.Data{noFollow},
			report: linkdb.InvertReport{Pages: 1, Links: 1, NoFollow: 1},
		},
		{
			name:   "nor is one on a page that asks so",
			pages:  []segment.Data{noFollowPage},
			report: linkdb.InvertReport{Pages: 1, Links: 1, NoFollow: 1},
		},
		{
			name: "targets are spelled and rejected by Accept",
			pages: []segment.Data{
				links("http://a.example/", "http://B.example/ x", "http://b.example/ x", "http://bad.example/"),
			},
			o: linkdb.InvertOptions{Accept: func(url string) (string, bool) {
				return strings.ToLower(url), !strings.Contains(url, "bad")
			}},
			want:   []string{"http://b.example/ < http://a.example/ x"},
			report: linkdb.InvertReport{Pages: 1, Links: 3, Targets: 1, Inlinks: 1, Rejected: 1, Repeated: 1},
		},
		{
			name:   "internal links are ignored on request",
			pages:  []segment.Data{links("http://a.example/", "https://a.example:444/x", "http://www.a.example/")},
			o:      linkdb.InvertOptions{IgnoreInternal: true},
			want:   []string{"http://www.a.example/ < http://a.example/"},
			report: linkdb.InvertReport{Pages: 1, Links: 2, Targets: 1, Inlinks: 1, Internal: 1},
		},
		{
			name:   "external links are ignored on request",
			pages:  []segment.Data{links("http://a.example/", "http://a.example/x", "http://b.example/")},
			o:      linkdb.InvertOptions{IgnoreExternal: true},
			want:   []string{"http://a.example/x < http://a.example/"},
			report: linkdb.InvertReport{Pages: 1, Links: 2, Targets: 1, Inlinks: 1, External: 1},
		},
		{
			name:  "a page that is rejected gives nothing, and one that is spelled anew gives under its new name",
			pages: []segment.Data{links("http://bad.example/", "http://x.example/"), links("http://A.example/", "http://x.example/")},
			o: linkdb.InvertOptions{Accept: func(url string) (string, bool) {
				return strings.ToLower(url), !strings.Contains(url, "bad")
			}},
			want:   []string{"http://x.example/ < http://a.example/"},
			report: linkdb.InvertReport{Pages: 2, Links: 2, Targets: 1, Inlinks: 1, Rejected: 1},
		},
		{
			name:   "NutchCompat ignores internal links, and what has no host",
			pages:  []segment.Data{links("http://a.example/", "http://a.example/x", "http://b.example/", "urn:isbn")},
			o:      linkdb.InvertOptions{NutchCompat: true},
			want:   []string{"http://b.example/ < http://a.example/"},
			report: linkdb.InvertReport{Pages: 1, Links: 3, Targets: 1, Inlinks: 1, Internal: 2},
		},
		{
			name:   "NutchCompat keeps internal links on request",
			pages:  []segment.Data{links("http://a.example/", "http://a.example/x", "http://b.example/")},
			o:      linkdb.InvertOptions{NutchCompat: true, KeepInternal: true, IgnoreExternal: true},
			want:   []string{"http://a.example/x < http://a.example/"},
			report: linkdb.InvertReport{Pages: 1, Links: 2, Targets: 1, Inlinks: 1, External: 1},
		},
		{
			name:  "NutchCompat compares hosts as they were found",
			pages: []segment.Data{links("http://a.example/", "http://www.a.example/x")},
			o: linkdb.InvertOptions{NutchCompat: true, Accept: func(url string) (string, bool) {
				return strings.ReplaceAll(url, "www.", ""), true
			}},
			want:   []string{"http://a.example/x < http://a.example/"},
			report: linkdb.InvertReport{Pages: 1, Links: 1, Targets: 1, Inlinks: 1},
		},
		{
			name:  "and without it as they are spelled",
			pages: []segment.Data{links("http://a.example/", "http://www.a.example/x")},
			o: linkdb.InvertOptions{IgnoreInternal: true, Accept: func(url string) (string, bool) {
				return strings.ReplaceAll(url, "www.", ""), true
			}},
			report: linkdb.InvertReport{Pages: 1, Links: 1, Internal: 1},
		},
		{
			name:  "the page, too",
			pages: []segment.Data{links("http://www.a.example/", "http://a.example/x", "http://b.example/")},
			o: linkdb.InvertOptions{IgnoreInternal: true, Accept: func(url string) (string, bool) {
				return strings.ReplaceAll(url, "www.", ""), true
			}},
			want:   []string{"http://b.example/ < http://a.example/"},
			report: linkdb.InvertReport{Pages: 1, Links: 2, Targets: 1, Inlinks: 1, Internal: 1},
		},
		{
			name:   "what has no host is not internal",
			pages:  []segment.Data{links("http://a.example/", "urn:isbn", "http://a.example/x")},
			o:      linkdb.InvertOptions{IgnoreInternal: true},
			want:   []string{"urn:isbn < http://a.example/"},
			report: linkdb.InvertReport{Pages: 1, Links: 2, Targets: 1, Inlinks: 1, Internal: 1},
		},
		{
			name:   "but with NutchCompat it is dropped, even from one that has none to another",
			pages:  []segment.Data{links("urn:a", "urn:b"), links("http://a.example/", "urn:b", "http://a.example/x")},
			o:      linkdb.InvertOptions{NutchCompat: true, KeepInternal: true, IgnoreExternal: true},
			want:   []string{"http://a.example/x < http://a.example/"},
			report: linkdb.InvertReport{Pages: 2, Links: 3, Targets: 1, Inlinks: 1, External: 2},
		},
		{
			name:   "NutchCompat does nothing if it is to ignore all links",
			pages:  []segment.Data{links("http://a.example/", "http://b.example/")},
			o:      linkdb.InvertOptions{NutchCompat: true, IgnoreExternal: true},
			report: linkdb.InvertReport{},
		},
		{
			name:   "NutchCompat cuts anchors by UTF-16 units",
			pages:  []segment.Data{links("http://a.example/", "http://x.example/ a𝒳b", "http://y.example/ aéb", "http://z.example/ 𝒳𝒴")},
			o:      linkdb.InvertOptions{NutchCompat: true, MaxAnchor: 2},
			want:   []string{"http://x.example/ < http://a.example/ a?", "http://y.example/ < http://a.example/ aé", "http://z.example/ < http://a.example/ 𝒳"},
			report: linkdb.InvertReport{Pages: 1, Links: 3, Targets: 3, Inlinks: 3, AnchorsCut: 3},
		},
		{
			name:   "which is no business of others",
			pages:  []segment.Data{links("http://a.example/", "http://x.example/ a𝒳b")},
			o:      linkdb.InvertOptions{MaxAnchor: 2},
			want:   []string{"http://x.example/ < http://a.example/ a𝒳"},
			report: linkdb.InvertReport{Pages: 1, Links: 1, Targets: 1, Inlinks: 1, AnchorsCut: 1},
		},
		{
			name: "a page keeps the first MaxInlinks",
			pages: []segment.Data{
				links("http://c.example/", "http://x.example/"),
				links("http://a.example/", "http://x.example/"),
				links("http://b.example/", "http://x.example/"),
			},
			o:      linkdb.InvertOptions{MaxInlinks: 2},
			want:   []string{"http://x.example/ < http://a.example/", "http://x.example/ < http://b.example/"},
			report: linkdb.InvertReport{Pages: 3, Links: 3, Targets: 1, Inlinks: 2, OverLimit: 1},
		},
		{
			name:   "an anchor is cut between characters",
			pages:  []segment.Data{links("http://a.example/", "http://x.example/ äöü", "http://y.example/ \xff\xff\xff", "http://z.example/ ab")},
			o:      linkdb.InvertOptions{MaxAnchor: 2},
			want:   []string{"http://x.example/ < http://a.example/ äö", "http://y.example/ < http://a.example/ \xff\xff", "http://z.example/ < http://a.example/ ab"},
			report: linkdb.InvertReport{Pages: 1, Links: 3, Targets: 3, Inlinks: 3, AnchorsCut: 2},
		},
		{
			name:   "an anchor has a hundred characters at most",
			pages:  []segment.Data{links("http://a.example/", "http://x.example/ "+strings.Repeat("é", 101))},
			want:   []string{"http://x.example/ < http://a.example/ " + strings.Repeat("é", 100)},
			report: linkdb.InvertReport{Pages: 1, Links: 1, Targets: 1, Inlinks: 1, AnchorsCut: 1},
		},
		{
			name:   "or any number on request",
			pages:  []segment.Data{links("http://a.example/", "http://x.example/ "+strings.Repeat("é", 101))},
			o:      linkdb.InvertOptions{MaxAnchor: -1},
			want:   []string{"http://x.example/ < http://a.example/ " + strings.Repeat("é", 101)},
			report: linkdb.InvertReport{Pages: 1, Links: 1, Targets: 1, Inlinks: 1},
		},
		{
			name:   "strings that are no URLs come through",
			pages:  []segment.Data{links("a\x00b\x00\x00", "x\x00\x01 \x00anchor\x00"), links("", " empty")},
			want:   []string{"<  empty", "x\x00\x01 < a\x00b\x00\x00 \x00anchor\x00"},
			report: linkdb.InvertReport{Pages: 2, Links: 2, Targets: 2, Inlinks: 2},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var db memstore.DB
			put(t, db.Segments(), "s", tt.pages...)
			for _, round := range []string{"first", "second"} {
				report, err := linkdb.Invert(t.Context(), db.Links(), db.Segments(), []string{"s"}, tt.o)
				if err != nil {
					t.Fatal(err)
				}
				if report != tt.report {
					t.Errorf("%s report:\n got %+v\nwant %+v", round, report, tt.report)
				}
				if got := dump(t, db.Links()); !slices.Equal(got, tt.want) {
					t.Errorf("after the %s run:\n got %q\nwant %q", round, got, tt.want)
				}
			}
		})
	}
}

func TestInvertNeedsCommittedData(t *testing.T) {
	var db memstore.DB
	put(t, db.Segments(), "good", links("http://a.example/", "http://b.example/"))
	w, err := segment.NewWriter[segment.Data](t.Context(), db.Segments(), "open", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, bad := range []string{"open", "missing"} {
		_, err := linkdb.Invert(t.Context(), db.Links(), db.Segments(), []string{"good", bad}, linkdb.InvertOptions{})
		if !errors.Is(err, segment.ErrNotFound) || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
		if got := dump(t, db.Links()); got != nil {
			t.Errorf("%s: links were added: %q", bad, got)
		}
	}
}

func TestInvertPassesErrorsOn(t *testing.T) {
	var db memstore.DB
	put(t, db.Segments(), "s", links("http://a.example/", "http://b.example/"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := linkdb.Invert(ctx, db.Links(), db.Segments(), []string{"s"}, linkdb.InvertOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := linkdb.Invert(ctx, db.Links(), db.Segments(), nil, linkdb.InvertOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled without segments: %v", err)
	}
	db.Links().Close()
	if _, err := linkdb.Invert(t.Context(), db.Links(), db.Segments(), []string{"s"}, linkdb.InvertOptions{}); !errors.Is(err, linkdb.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestInvertRefusesToKeepNothing(t *testing.T) {
	var db memstore.DB
	put(t, db.Segments(), "s", links("http://a.example/", "http://b.example/"))
	o := linkdb.InvertOptions{IgnoreInternal: true, IgnoreExternal: true}
	if _, err := linkdb.Invert(t.Context(), db.Links(), db.Segments(), []string{"s"}, o); err == nil || !strings.Contains(err.Error(), "IgnoreInternal and IgnoreExternal") {
		t.Errorf("%v", err)
	}
}

// A page has ten thousand inlinks, the first in order, unless the options set another limit
// or none.
func TestInvertBoundsInlinksByDefault(t *testing.T) {
	const pages = 10_003
	var data []segment.Data
	for i := range pages {
		data = append(data, links(fmt.Sprintf("http://a.example/%05d", i), "http://x.example/"))
	}
	for most, want := range map[int]int{0: 10_000, -1: pages, pages - 1: pages - 1} {
		var db memstore.DB
		put(t, db.Segments(), "s", data...)
		r, err := linkdb.Invert(t.Context(), db.Links(), db.Segments(), []string{"s"}, linkdb.InvertOptions{MaxInlinks: most})
		if err != nil || r.Inlinks != want || r.OverLimit != pages-want {
			t.Errorf("MaxInlinks %d: %+v, %v", most, r, err)
		}
		got, err := db.Links().Get(t.Context(), "http://x.example/")
		if err != nil || len(got) != want || got[want-1].From != fmt.Sprintf("http://a.example/%05d", want-1) {
			t.Errorf("MaxInlinks %d: %d inlinks, %v", most, len(got), err)
		}
	}
}

// chunks watches what a store is given.
type chunks struct {
	linkdb.Store
	t    *testing.T
	n    int
	most int // bytes
	last string
	fail int // the merge that fails; 0 for none
}

var errFull = errors.New("disk full")

func (c *chunks) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	c.n++
	if c.n == c.fail {
		return errFull
	}
	size, link := 0, 0
	for _, e := range entries {
		size += len(e.URL) + 24
		for _, l := range e.Inlinks {
			link = len(e.URL) + len(l.Anchor) + 56
			size += len(l.Anchor) + 32
		}
	}
	if len(entries) == 0 || size-link > c.most {
		c.t.Errorf("a chunk of %d pages, %d bytes", len(entries), size)
	}
	for i, e := range entries {
		if cmp := crawldb.Compare(c.last, e.URL); cmp > 0 || cmp == 0 && i > 0 {
			c.t.Errorf("%s follows %s", e.URL, c.last)
		}
		c.last = e.URL
		if !slices.IsSortedFunc(e.Inlinks, linkdb.CompareInlinks) {
			c.t.Errorf("the inlinks of %s are not sorted", e.URL)
		}
	}
	return c.Store.Merge(ctx, entries, limit)
}

// Whatever the memory, the segments and their order, the result is that of
// turning the links round in memory.
func TestInvertIsBounded(t *testing.T) {
	testlevel.SkipInRace(t)
	r := rand.New(rand.NewPCG(1, 2))
	const segments = 3
	model := map[string][]linkdb.Inlink{}
	var all [segments][]segment.Data
	var names []string
	for i := range segments {
		names = append(names, fmt.Sprint("s", i))
		for range 300 {
			d := segment.Data{URL: fmt.Sprintf("http://h%d.example/%d", r.IntN(40), r.IntN(20))}
			for range r.IntN(60) {
				l := page.Outlink{URL: fmt.Sprintf("http://t%d.example/%d", r.IntN(300), r.IntN(100)), Anchor: strings.Repeat("word ", r.IntN(4))}
				if r.IntN(3) == 0 {
					l.URL = "http://hub.example/"
				}
				d.Parsed.Outlinks = append(d.Parsed.Outlinks, l)
				model[l.URL] = append(model[l.URL], linkdb.Inlink{From: d.URL, Anchor: l.Anchor})
			}
			all[i] = append(all[i], d)
		}
	}
	for _, limit := range []int{0, 7, -1} {
		bound := limit
		if limit == 0 {
			bound = 10_000
		}
		want := &memstore.DB{}
		urls := slices.SortedFunc(func(yield func(string) bool) {
			for u := range model {
				if !yield(u) {
					return
				}
			}
		}, crawldb.Compare)
		var entries []linkdb.Entry
		for _, u := range urls {
			entries = append(entries, linkdb.Entry{URL: u, Inlinks: model[u]})
		}
		if err := want.Links().Merge(t.Context(), entries, bound); err != nil {
			t.Fatal(err)
		}
		for _, memory := range []int{0, 100_000} {
			if memory == 0 && limit != 0 {
				continue
			}
			t.Run(fmt.Sprintf("limit %d, memory %d", limit, memory), func(t *testing.T) {
				var db memstore.DB
				for i, pages := range all {
					put(t, db.Segments(), names[i], pages...)
					visit(t, db.Segments(), names[i], pages[:len(pages)*i/2])
				}
				dir := t.TempDir()
				o := linkdb.InvertOptions{MaxInlinks: limit, SortMemory: memory, TempDir: dir}
				most := 64 << 10
				if memory == 0 {
					most = 16 << 20
				}
				c := &chunks{Store: db.Links(), t: t, most: most}
				report, err := linkdb.Invert(t.Context(), c, db.Segments(), names, o)
				if err != nil {
					t.Fatal(err)
				}
				if sum := report.Inlinks + report.Repeated + report.OverLimit; sum != report.Links || report.Targets != len(model) {
					t.Errorf("the report does not add up: %+v", report)
				}
				if got := dump(t, db.Links()); !reflect.DeepEqual(got, dump(t, want.Links())) {
					t.Errorf("%d links, not those of the model", len(got))
				}
				if (memory == 0) != (c.n == 1) {
					t.Errorf("%d chunks", c.n)
				}
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}

				// A run that fails half way is repeated, segment by segment.
				var again memstore.DB
				c = &chunks{Store: again.Links(), t: t, most: most, fail: min(2, c.n)}
				if _, err := linkdb.Invert(t.Context(), c, db.Segments(), names, o); !errors.Is(err, errFull) {
					t.Fatal(err)
				}
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("left behind by a failure: %v", left)
				}
				for _, name := range []string{"s2", "s0", "s1"} {
					if _, err := linkdb.Invert(t.Context(), again.Links(), db.Segments(), []string{name}, o); err != nil {
						t.Fatal(err)
					}
				}
				if got := dump(t, again.Links()); !reflect.DeepEqual(got, dump(t, want.Links())) {
					t.Errorf("segment by segment: %d links, not those of the model", len(got))
				}
			})
		}
	}
}

// visit notes visits of pages, so that Invert knows of them beforehand.
func visit(t *testing.T, s segment.Store, name string, pages []segment.Data) {
	t.Helper()
	w, err := segment.NewWriter[segment.Visit](t.Context(), s, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for block := range slices.Chunk(pages, 1000) {
		visits := make([]segment.Visit, len(block))
		for i := range block {
			visits[i].URL = block[i].URL
		}
		if err := w.Append(t.Context(), visits); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A page with more links than a chunk holds is merged in several.
func TestInvertSplitsHub(t *testing.T) {
	var db memstore.DB
	var pages []segment.Data
	anchor := strings.Repeat("x", 100_000)
	for i := range 200 {
		pages = append(pages, links(fmt.Sprintf("http://p%d.example/", i), "http://hub.example/ "+anchor))
	}
	put(t, db.Segments(), "s", pages...)
	c := &chunks{Store: db.Links(), t: t, most: 256 << 10}
	report, err := linkdb.Invert(t.Context(), c, db.Segments(), []string{"s"}, linkdb.InvertOptions{MaxAnchor: -1, SortMemory: 1 << 20, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := db.Links().Get(t.Context(), "http://hub.example/"); len(got) != 200 || c.n < 2 || report.Targets != 1 || report.Inlinks != 200 {
		t.Errorf("%d links in %d chunks, %+v", len(got), c.n, report)
	}
}
