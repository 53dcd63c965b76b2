package index_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// withoutQuery makes one document of pages that differ in their query.
func withoutQuery(url string) (string, bool) {
	url, _, _ = strings.Cut(url, "?")
	return url, !strings.Contains(url, "private")
}

// Of pages that become one document one is indexed, and none that is gone hides one
// that is there, in whatever order they were visited.
func TestPagesWithOneDocument(t *testing.T) {
	const u = "http://a.example.test/p"
	ok, gone, same, failed := protocol.Success, protocol.Gone, protocol.NotModified, protocol.Failed
	type v = visit
	for _, c := range []struct {
		name        string
		old, recent []v
		gone        []string // the others are there, or
		unknown     []string // have no record, or
		sitemaps    []string // are no pages
		want        string   // the text; "-" deleted; "" left alone
		nutch       string   // the same with NutchCompat
	}{
		{name: "the newest", old: []v{{u, ok, "one", false}}, recent: []v{{u + "?s=1", ok, "two", false}}, want: "two", nutch: "two"},
		{name: "the newest is gone", old: []v{{u, ok, "one", false}}, recent: []v{{u + "?s=1", gone, "", false}}, gone: []string{u + "?s=1"}, want: "one", nutch: ""},
		{name: "two newer ones are gone", old: []v{{u, ok, "one", false}}, recent: []v{{u + "?s=1", gone, "", false}, {u + "?s=2", gone, "", false}}, gone: []string{u + "?s=1", u + "?s=2"}, want: "one", nutch: ""},
		{name: "all are gone", old: []v{{u, ok, "one", false}}, recent: []v{{u + "?s=1", gone, "", false}}, gone: []string{u, u + "?s=1"}, want: "-", nutch: ""},
		{name: "two of a segment", recent: []v{{u + "?s=2", ok, "b", false}, {u + "?s=1", ok, "a", false}}, want: "a", nutch: "a"},
		{name: "its own URL first", recent: []v{{u + "?s=1", ok, "a", false}, {u, ok, "b", false}}, want: "b", nutch: "b"},
		{name: "one is there, as before", old: []v{{u, ok, "one", false}}, recent: []v{{u + "?s=1", gone, "", false}, {u, same, "", false}}, gone: []string{u + "?s=1"}, want: "one", nutch: ""},
		{name: "the newest has no record", old: []v{{u, ok, "one", false}}, recent: []v{{u + "?s=1", ok, "two", false}}, unknown: []string{u + "?s=1"}, want: "one", nutch: "two"},
		{name: "the newest is a sitemap", old: []v{{u, ok, "one", false}}, recent: []v{{u + "?s=1", ok, "two", false}}, sitemaps: []string{u + "?s=1"}, want: "one", nutch: "two"},
		{name: "one is there, seen elsewhere", recent: []v{{u + "?s=1", gone, "", false}, {u, failed, "", false}}, gone: []string{u + "?s=1"}, want: "", nutch: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // in both orders
				db := new(memstore.DB)
				for _, v := range slices.Concat(c.old, c.recent) {
					d := crawldb.Datum{URL: v.url, Status: crawldb.Fetched}
					switch {
					case slices.Contains(c.gone, v.url):
						d.Status = crawldb.Gone
					case slices.Contains(c.sitemaps, v.url):
						crawldb.Sitemap{}.Set(&d.Meta)
					case slices.Contains(c.unknown, v.url):
						continue
					}
					err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{v.url}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }})
					if err != nil {
						t.Fatal(err)
					}
				}
				// Another document, and a page that is not one.
				const other = "http://b.example.test/"
				record(t, db.Crawl(), other, crawldb.Fetched)
				record(t, db.Crawl(), other+"?s=1", crawldb.Gone)
				put(t, db.Segments(), old, start, append(slices.Clone(c.old), v{"http://a.example.test/private", ok, "no", false}, v{other, ok, "other", false})...)
				put(t, db.Segments(), recent, start.Add(24*time.Hour), append(slices.Clone(c.recent), v{other + "?s=1", gone, "", false})...)
				for _, compat := range []bool{false, true} {
					w := new(shelf)
					r := run(t, db, w, index.Options{Accept: withoutQuery, NutchCompat: compat})
					got, want := w.docs[u].Text, c.want
					if slices.Contains(w.calls, "delete "+u) {
						got = "-"
					}
					if compat {
						want = c.nutch
					}
					if got != want {
						t.Errorf("NutchCompat %t: %q, want %q", compat, got, want)
					}
					if _, ok := w.docs[other]; ok == compat {
						t.Errorf("NutchCompat %t: the other document: %t", compat, ok)
					}
					if r.Rejected != 1 || len(w.calls) != r.Documents+r.Deleted+1 || r.Documents+r.Deleted > 2 {
						t.Errorf("NutchCompat %t: %+v of %q", compat, r, w.calls)
					}
				}
				slices.Reverse(c.old)
				slices.Reverse(c.recent)
			}
		})
	}
}

// deletions counts, and says how large the heap is at the end.
type deletions struct {
	n    int
	heap uint64
}

func (d *deletions) Write(context.Context, *index.Document) error { return nil }

func (d *deletions) Delete(context.Context, string) error { d.n++; return nil }

func (d *deletions) Commit(context.Context) error { d.heap = heap(); return nil }

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What is held in memory does not grow with the number of pages.
func TestIndexInLittleMemory(t *testing.T) {
	db := new(memstore.DB)
	const pages = 50_000
	var visits []segment.Visit
	for i := range pages {
		visits = append(visits, segment.Visit{URL: fmt.Sprintf("http://a.example.test/%s/%d", strings.Repeat("x", 60), i), Time: start, Outcome: protocol.Outcome{Code: protocol.Gone}})
	}
	for _, name := range []string{old, recent} {
		write(t, db.Segments(), name, visits, 500)
		write(t, db.Segments(), name, make([]segment.Text, pages), 500)
		write(t, db.Segments(), name, make([]segment.Data, pages), 500)
		write(t, db.Segments(), name, make([]segment.Parse, pages), 500)
	}
	clear(visits)
	before := heap()
	w := new(deletions)
	r := run(t, db, w, index.Options{SortMemory: 256 << 10, TempDir: t.TempDir()})
	if r.Gone != pages || w.n != pages {
		t.Errorf("%d deletions: %+v", w.n, r)
	}
	if grown := int64(w.heap) - int64(before); grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes for %d pages", grown, pages)
	}
}
