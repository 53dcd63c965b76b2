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
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// input is a page with a status and the outcome of a visit; what was parsed is
// one of "text", "noindex", "failed" and nothing.
func input(status crawldb.Status, code protocol.Code, parsed string) index.Input {
	in := index.Input{Visit: &segment.Visit{Time: start, Outcome: protocol.Outcome{Code: code}}}
	if status != 0 {
		in.Record = &crawldb.Datum{Status: status}
	}
	switch parsed {
	case "text", "noindex":
		in.Text, in.Data, in.Parse = &segment.Text{}, &segment.Data{Parsed: page.Parsed{Directives: page.Directives{NoIndex: parsed == "noindex"}}}, &segment.Parse{}
	case "failed":
		in.Parse = &segment.Parse{Error: "no PDF"}
	}
	return in
}

func TestDecide(t *testing.T) {
	const none = crawldb.Status(0)
	all := index.Options{DeleteGone: index.On, DeleteRobotsNoIndex: index.On, DeleteFailedParse: index.On, SkipNotModified: true}
	off := index.Options{DeleteGone: index.Off, DeleteRobotsNoIndex: index.Off, DeleteFailedParse: index.Off}
	for _, c := range []struct {
		status crawldb.Status
		code   protocol.Code
		parsed string
		// By default; with all switches on, and off; in Nutch by default, and with
		// all switches on.
		zero, on, off, nutch, nutchOn index.Decision
	}{
		{crawldb.Fetched, protocol.Success, "text", index.Add, index.Add, index.Add, index.Add, index.Add},
		{crawldb.Unfetched, protocol.Success, "text", index.Add, index.Add, index.Add, index.Add, index.Add},
		{crawldb.NotModified, protocol.Success, "text", index.Add, index.LeaveNotModified, index.Add, index.Add, index.LeaveNotModified},
		{crawldb.Fetched, protocol.Success, "noindex", index.DeleteNoIndex, index.DeleteNoIndex, index.Add, index.Add, index.DeleteNoIndex},
		{crawldb.Fetched, protocol.Success, "", index.LeaveUnparsed, index.LeaveUnparsed, index.LeaveUnparsed, index.LeaveUnparsed, index.LeaveUnparsed},
		{crawldb.Fetched, protocol.Success, "failed", index.DeleteFailedParse, index.DeleteFailedParse, index.Leave, index.Leave, index.DeleteFailedParse},
		// Nutch's TestIndexerMapReduce: no document.
		{crawldb.ParseFailed, protocol.Success, "failed", index.DeleteFailedParse, index.DeleteFailedParse, index.Leave, index.Leave, index.DeleteFailedParse},
		{crawldb.ParseFailed, protocol.Success, "text", index.DeleteFailedParse, index.DeleteFailedParse, index.Leave, index.Add, index.DeleteFailedParse},
		{crawldb.Gone, protocol.NotFound, "", index.DeleteGone, index.DeleteGone, index.Leave, index.Leave, index.DeleteGone},
		{crawldb.Gone, protocol.Failed, "", index.DeleteGone, index.DeleteGone, index.Leave, index.Leave, index.DeleteGone},
		{crawldb.Gone, protocol.Success, "text", index.DeleteGone, index.DeleteGone, index.Leave, index.Add, index.DeleteGone},
		{crawldb.Gone, protocol.Success, "noindex", index.DeleteGone, index.DeleteGone, index.Leave, index.Add, index.DeleteNoIndex},
		{crawldb.Fetched, protocol.Gone, "", index.DeleteGone, index.DeleteGone, index.Leave, index.Leave, index.DeleteGone},
		{crawldb.Fetched, protocol.RobotsDenied, "", index.DeleteGone, index.DeleteGone, index.Leave, index.Leave, index.DeleteGone},
		{crawldb.RedirPerm, protocol.MovedPerm, "", index.DeleteRedirect, index.DeleteRedirect, index.Leave, index.Leave, index.DeleteRedirect},
		{crawldb.RedirTemp, protocol.Success, "text", index.DeleteRedirect, index.DeleteRedirect, index.Leave, index.Add, index.DeleteRedirect},
		{crawldb.RedirPerm, protocol.Success, "text", index.DeleteRedirect, index.DeleteRedirect, index.Leave, index.Add, index.DeleteRedirect},
		{crawldb.Fetched, protocol.MovedTemp, "", index.DeleteRedirect, index.DeleteRedirect, index.Leave, index.Leave, index.DeleteRedirect},
		{crawldb.Duplicate, protocol.Success, "text", index.DeleteDuplicate, index.DeleteDuplicate, index.Leave, index.Add, index.DeleteDuplicate},
		{crawldb.Duplicate, protocol.NotModified, "", index.DeleteDuplicate, index.DeleteDuplicate, index.Leave, index.Older, index.Older},
		{crawldb.Duplicate, protocol.Success, "", index.DeleteDuplicate, index.DeleteDuplicate, index.Leave, index.LeaveUnparsed, index.LeaveUnparsed},
		{crawldb.Orphan, protocol.Success, "text", index.DeleteOrphan, index.DeleteOrphan, index.Leave, index.Add, index.Add},
		{none, protocol.Success, "text", index.DeleteGone, index.DeleteGone, index.Leave, index.Add, index.Add},
		{crawldb.NotModified, protocol.NotModified, "", index.Older, index.Older, index.Older, index.Older, index.Older},
		{crawldb.Unfetched, protocol.Failed, "", index.Older, index.Older, index.Older, index.Leave, index.Leave},
		{crawldb.Fetched, protocol.Skipped, "", index.Older, index.Older, index.Older, index.Leave, index.Leave},
	} {
		in := input(c.status, c.code, c.parsed)
		compat := func(o index.Options) index.Options { o.NutchCompat = true; return o }
		for i, got := range []index.Decision{index.Decide(in, index.Options{}), index.Decide(in, all), index.Decide(in, off), index.Decide(in, compat(index.Options{})), index.Decide(in, compat(all))} {
			want := []index.Decision{c.zero, c.on, c.off, c.nutch, c.nutchOn}[i]
			if got != want {
				t.Errorf("%v, %v, %q: case %d is decision %d, want %d", c.status, c.code, c.parsed, i, got, want)
			}
		}
	}
	// What an old segment says of a page that was visited since has passed.
	in := input(crawldb.Fetched, protocol.NotFound, "")
	in.Record.LastFetch = start.AddDate(0, 0, 1)
	if d := index.Decide(in, index.Options{}); d != index.Leave {
		t.Errorf("a page that is back: %d", d)
	}
}

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

// A page that has a time after which it must not be shown is deleted once it was
// visited after that time, even if nothing came.
func TestDecideUnavailableAfter(t *testing.T) {
	for _, c := range []struct {
		visit, last time.Duration
		o           index.Options
		want        index.Decision
	}{
		{0, 0, index.Options{}, index.Add},
		{0, time.Hour - 1, index.Options{}, index.Add},
		{0, time.Hour, index.Options{}, index.DeleteNoIndex},
		{time.Hour, 0, index.Options{}, index.DeleteNoIndex},
		{0, time.Hour, index.Options{DeleteRobotsNoIndex: index.Off}, index.Add},
	} {
		in := input(crawldb.Fetched, protocol.Success, "text")
		in.Data.Parsed.UnavailableAfter = start.Add(time.Hour)
		in.Visit.Time, in.Record.LastFetch = start.Add(c.visit), start.Add(c.last)
		if got := index.Decide(in, c.o); got != c.want {
			t.Errorf("visited after %v, last after %v: %v, want %v", c.visit, c.last, got, c.want)
		}
	}
}

// A sitemap is no page, whatever became of it; what is known as both is one if it
// was read as one.
func TestDecideSitemap(t *testing.T) {
	for _, status := range crawldb.Statuses() {
		in := input(status, protocol.Success, "failed")
		crawldb.Sitemap{}.Set(&in.Record.Meta)
		if d := index.Decide(in, index.Options{}); d != index.Leave {
			t.Errorf("%v: %v", status, d)
		}
	}
	in := input(crawldb.Fetched, protocol.Success, "text")
	crawldb.Sitemap{Page: true}.Set(&in.Record.Meta)
	if d := index.Decide(in, index.Options{}); d != index.Add {
		t.Errorf("a page that is listed as a sitemap: %v", d)
	}
	if in.Parse.Sitemap = true; index.Decide(in, index.Options{}) != index.Leave {
		t.Error("a sitemap that is linked as a page is indexed")
	}
}

func TestReportAdd(t *testing.T) {
	gone := input(crawldb.Gone, protocol.Gone, "")
	for on, want := range map[bool]index.Decision{true: index.DeleteGone, false: index.Leave} {
		for _, compat := range []bool{false, true} {
			if got := index.Decide(gone, index.Options{DeleteGone: index.SwitchOf(on), NutchCompat: compat}); got != want {
				t.Errorf("DeleteGone %t, NutchCompat %t: %v, want %v", on, compat, got, want)
			}
		}
	}
}
