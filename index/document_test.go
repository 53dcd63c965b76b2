package index_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// TestDeletedFromTheSegmentAtHand shows that a page is deleted though the segment
// at hand has nothing but a visit that failed or brought no news.
func TestDeletedFromTheSegmentAtHand(t *testing.T) {
	for status, code := range map[crawldb.Status]protocol.Code{crawldb.Gone: protocol.Failed, crawldb.Duplicate: protocol.NotModified} {
		db := &memstore.DB{}
		put(t, db.Segments(), recent, start, visit{"http://a.example.test/", code, "", false})
		record(t, db.Crawl(), "http://a.example.test/", status)
		w := &shelf{}
		if r := run(t, db, w, index.Options{Segments: []string{recent}}); r.Deleted != 1 || r.Gone+r.Duplicates != 1 || !slices.Contains(w.calls, "delete http://a.example.test/") {
			t.Errorf("%v: %+v, %q", status, r, w.calls)
		}
	}
}

// doubling is a scoring filter that weighs documents.
type doubling struct{ scoring.Base }

func (doubling) Boost(d *crawldb.Datum, boost float32) float32 { return 2 * boost * d.Score }

func TestBoost(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Segments(), old, start, visit{"http://a.example.test/", protocol.Success, "one", false})
	record(t, db.Crawl(), "http://a.example.test/", crawldb.Fetched)
	for _, c := range []struct {
		f    scoring.Filter
		want float32
	}{{nil, 0}, {doubling{}, 4}, {scoring.Chain{doubling{}, doubling{}}, 16}} {
		w := &shelf{}
		run(t, db, w, index.Options{Scoring: c.f})
		if got := w.docs["http://a.example.test/"].Boost; got != c.want {
			t.Errorf("boost %v, want %v", got, c.want)
		}
	}
}

func TestFilterOfDocuments(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Segments(), old, start, visit{"http://a.example.test/", protocol.Success, "keep", false}, visit{"http://b.example.test/", protocol.Success, "drop", false})
	record(t, db.Crawl(), "http://a.example.test/", crawldb.Fetched)
	record(t, db.Crawl(), "http://b.example.test/", crawldb.Fetched)
	o := index.Options{Filter: func(_ context.Context, d *index.Document) (bool, error) {
		d.Title = "changed"
		return d.Text != "drop", nil
	}}
	w := &shelf{}
	if r := run(t, db, w, o); r.Documents != 1 || r.Filtered != 1 || r.Deleted != 0 || w.docs["http://a.example.test/"].Title != "changed" {
		t.Errorf("%+v, %+v", r, w.docs)
	}
	o.DeleteFiltered = true
	w = &shelf{}
	if r := run(t, db, w, o); r.Filtered != 1 || r.Deleted != 1 || r.FilteredDeleted != 1 || !slices.Contains(w.calls, "delete http://b.example.test/") {
		t.Errorf("%+v, %q", r, w.calls)
	}
	o.Filter = func(context.Context, *index.Document) (bool, error) { return false, errFull }
	if _, err := index.Run(t.Context(), db.Crawl(), nil, db.Segments(), w, o); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "http://a.example.test/") {
		t.Error(err)
	}
}

func TestAcceptOfDocuments(t *testing.T) {
	db := &memstore.DB{}
	for _, u := range []string{"http://a.example.test/x?1", "http://a.example.test/x?2", "http://bad.example.test/"} {
		record(t, db.Crawl(), u, crawldb.Fetched)
	}
	put(t, db.Segments(), old, start, visit{"http://a.example.test/x?1", protocol.Success, "one", false}, visit{"http://a.example.test/x?2", protocol.Success, "two", false}, visit{"http://bad.example.test/", protocol.Success, "bad", false})
	w := &shelf{}
	r := run(t, db, w, index.Options{Accept: func(u string) (string, bool) {
		u, _, _ = strings.Cut(u, "?")
		return u, !strings.Contains(u, "bad")
	}})
	if r.Documents != 1 || r.Rejected != 1 || len(w.docs) != 1 || w.docs["http://a.example.test/x"].Text != "one" {
		t.Errorf("%+v, %+v", r, w.docs)
	}
}

func TestNutchAnchors(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Segments(), old, start, visit{"http://a.example.test/", protocol.Success, "one", false})
	err := db.Links().Merge(t.Context(), []linkdb.Entry{{URL: "http://a.example.test/", Inlinks: []linkdb.Inlink{
		{From: "http://b.example.test/", Anchor: "text1"}, {From: "http://c.example.test/", Anchor: "text2"}, {From: "http://c.example.test/2", Anchor: "text2"}, {From: "http://d.example.test/", Anchor: "text2"},
	}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &shelf{}
	run(t, db, w, index.Options{NutchCompat: true})
	if d := w.docs["http://a.example.test/"]; !slices.Equal(d.Anchors, []string{"text1", "text2", "text2"}) || d.Signature != "6f6e65" {
		t.Errorf("%+v", d)
	}
}

// TestBinaryContent has the encodings of Nutch's TestIndexerMapReduce: what is
// decoded from base64 are the bytes that were fetched.
func TestBinaryContent(t *testing.T) {
	for name, body := range map[string]string{"utf-8": "<p>\xc3\x80\xc4\x8d", "iso-8859-1": "<p>\xc0", "iso-8859-2": "<p>\xe8\x00"} {
		db := &memstore.DB{}
		u := "http://a.example.test/"
		put(t, db.Segments(), old, start, visit{"http://x.example.test/", protocol.NotFound, "", false}, visit{u, protocol.Success, "one", false})
		record(t, db.Crawl(), u, crawldb.Fetched)
		if _, err := index.Run(t.Context(), db.Crawl(), nil, db.Segments(), &shelf{}, index.Options{AddBinaryContent: true, Segments: []string{old}}); !errors.Is(err, segment.ErrNotFound) {
			t.Errorf("contents are not kept, yet %v", err)
		}
		blocks(t, db.Segments(), old, [][]page.Content{nil, {{URL: u, Body: []byte(body)}}})
		var out bytes.Buffer
		if _, err := index.Run(t.Context(), db.Crawl(), nil, db.Segments(), index.NewJSONL(&out), index.Options{AddBinaryContent: true}); err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		for line := range strings.Lines(out.String()) {
			if err := json.Unmarshal([]byte(line), &doc); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := base64.StdEncoding.DecodeString(doc["binary_content"].(string))
		if err != nil || string(raw) != body {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
		for e, err := range index.ReadJSONL(&out) {
			if err != nil || !e.Deleted && string(e.BinaryContent) != body {
				t.Errorf("%s: %+v, %v", name, e, err)
			}
		}
	}
}

func TestNoCommit(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Segments(), old, start, visit{"http://a.example.test/", protocol.Success, "one", false})
	record(t, db.Crawl(), "http://a.example.test/", crawldb.Fetched)
	w := &shelf{}
	if r := run(t, db, w, index.Options{NoCommit: true}); r.Documents != 1 || w.commits != 0 {
		t.Errorf("%+v, %d commits", r, w.commits)
	}
}

func TestClean(t *testing.T) {
	db := &memstore.DB{}
	for _, s := range crawldb.Statuses() {
		record(t, db.Crawl(), "http://a.example.test/"+s.String(), s)
	}
	one := func(ss ...crawldb.Status) map[crawldb.Status]int {
		m := map[crawldb.Status]int{}
		for _, s := range ss {
			m[s] = 1
		}
		return m
	}
	for _, c := range []struct {
		o       index.CleanOptions
		want    map[crawldb.Status]int
		commits int
	}{
		{index.CleanOptions{}, one(crawldb.Gone, crawldb.RedirTemp, crawldb.RedirPerm, crawldb.Duplicate, crawldb.Orphan, crawldb.ParseFailed), 1},
		{index.CleanOptions{NutchCompat: true}, one(crawldb.Gone, crawldb.Duplicate), 1},
		{index.CleanOptions{NutchCompat: true, NoCommit: true}, one(crawldb.Gone, crawldb.Duplicate), 0},
	} {
		w := &shelf{}
		r, err := index.Clean(t.Context(), db.Crawl(), w, c.o)
		if err != nil || !maps.Equal(r.Deleted, c.want) || r.Total() != len(c.want) || w.commits != c.commits {
			t.Errorf("%+v: %+v, %v, %d commits", c.o, r, err, w.commits)
		}
		for s := range c.want {
			if !slices.Contains(w.calls, "delete http://a.example.test/"+s.String()) {
				t.Errorf("%v was not deleted: %q", s, w.calls)
			}
		}
	}
	w := &shelf{}
	if r, err := index.Clean(t.Context(), new(memstore.Crawl), w, index.CleanOptions{}); err != nil || r.Total() != 0 || w.commits != 0 {
		t.Errorf("nothing to delete: %+v, %v, %d commits", r, err, w.commits)
	}
	w = &shelf{fail: 2}
	if _, err := index.Clean(t.Context(), db.Crawl(), w, index.CleanOptions{}); !errors.Is(err, errFull) || w.commits != 0 {
		t.Errorf("%v, %d commits", err, w.commits)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := index.Clean(ctx, db.Crawl(), &shelf{}, index.CleanOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
