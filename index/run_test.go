package index_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// shelf is an index in memory.
type shelf struct {
	docs    map[string]index.Document
	calls   []string
	commits int
	fail    int // the call that fails, from 1
}

var errFull = errors.New("disk full")

func (s *shelf) call(what string) error {
	s.calls = append(s.calls, what)
	if len(s.calls) == s.fail {
		return errFull
	}
	return nil
}

func (s *shelf) Write(_ context.Context, d *index.Document) error {
	raw, _ := json.Marshal(d)
	if err := s.call("write " + string(raw)); err != nil {
		return err
	}
	if s.docs == nil {
		s.docs = map[string]index.Document{}
	}
	s.docs[d.URL] = *d
	return nil
}

func (s *shelf) Delete(_ context.Context, url string) error {
	delete(s.docs, url)
	return s.call("delete " + url)
}

func (s *shelf) Commit(context.Context) error {
	s.commits++
	return s.call("commit")
}

// visit is what a segment of the test has of a page.
type visit struct {
	url     string
	code    protocol.Code
	text    string // empty: not parsed
	noIndex bool
}

func write[T segment.Record](t *testing.T, s segment.Store, name string, records []T, per int) {
	t.Helper()
	w, err := segment.NewWriter[T](t.Context(), s, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(records); i += per {
		if err := w.Append(t.Context(), records[i:min(i+per, len(records))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// put writes a segment whose blocks have one visit each.
func put(t *testing.T, s segment.Store, name string, at time.Time, visits ...visit) {
	t.Helper()
	var vs [][]segment.Visit
	var texts [][]segment.Text
	var data [][]segment.Data
	var parses [][]segment.Parse
	for _, v := range visits {
		vs = append(vs, []segment.Visit{{URL: v.url, Time: at, Outcome: protocol.Outcome{Code: v.code}, ContentType: "text/html"}})
		if v.text == "" {
			texts, data, parses = append(texts, nil), append(data, nil), append(parses, nil)
			continue
		}
		texts = append(texts, []segment.Text{{URL: v.url, Text: v.text}})
		data = append(data, []segment.Data{{URL: v.url, Parsed: page.Parsed{Title: "T " + v.text, Directives: page.Directives{NoIndex: v.noIndex}}}})
		parses = append(parses, []segment.Parse{{URL: v.url, Signature: []byte(v.text)}})
	}
	blocks(t, s, name, vs)
	blocks(t, s, name, texts)
	blocks(t, s, name, data)
	blocks(t, s, name, parses)
}

func blocks[T segment.Record](t *testing.T, s segment.Store, name string, all [][]T) {
	t.Helper()
	w, err := segment.NewWriter[T](t.Context(), s, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if err := w.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func record(t *testing.T, s crawldb.Store, url string, status crawldb.Status) {
	t.Helper()
	d := crawldb.Datum{URL: url, Status: status, Score: 2, Modified: start.Add(-time.Hour), Signature: []byte{0xab}}
	err := s.Update(t.Context(), crawldb.Batch{URLs: []string{url}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }})
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, db *memstore.DB, w index.Writer, o index.Options) index.Report {
	t.Helper()
	r, err := index.Run(t.Context(), db.Crawl(), db.Links(), db.Segments(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	old    = "20260105080000-000"
	recent = "20260106080000-000"
)

func TestDecisionsForPages(t *testing.T) {
	type v = visit
	u := "http://a.example.test/p"
	for _, c := range []struct {
		name    string
		old     v
		recent  v
		status  crawldb.Status // zero: no record
		o       index.Options
		want    string // text, from which segment; "-" deleted; "" left alone
		noIndex int
	}{
		{name: "newest content wins", old: v{u, protocol.Success, "one", false}, recent: v{u, protocol.Success, "two", false}, status: crawldb.Fetched, want: "two " + recent},
		{name: "not modified", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.NotModified}, status: crawldb.NotModified, want: "one " + old},
		{name: "failed for now", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.Failed}, status: crawldb.Unfetched, want: "one " + old},
		{name: "skipped", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.Skipped}, status: crawldb.Fetched, want: "one " + old},
		{name: "failed too often", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.Failed}, status: crawldb.Gone, want: "-"},
		{name: "gone", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.Gone}, status: crawldb.Gone, want: "-"},
		{name: "not found", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.NotFound}, status: crawldb.Gone, want: "-"},
		{name: "moved", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.MovedPerm}, status: crawldb.RedirPerm, want: "-"},
		{name: "forbidden", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.RobotsDenied}, status: crawldb.Gone, want: "-"},
		{name: "gone, kept", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.Gone}, status: crawldb.Gone, o: index.Options{DeleteGone: index.Off}, want: ""},
		{name: "back again", old: v{u, protocol.Gone, "", false}, recent: v{u, protocol.Success, "two", false}, status: crawldb.Fetched, want: "two " + recent},
		{name: "duplicate", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.NotModified}, status: crawldb.Duplicate, want: "-"},
		{name: "orphan", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.NotModified}, status: crawldb.Orphan, want: "-"},
		{name: "not parsable", old: v{u, protocol.Success, "one", false}, recent: v{u, protocol.Success, "", false}, status: crawldb.ParseFailed, want: "-"},
		{name: "no parser for it", old: v{u, protocol.Success, "", false}, recent: v{code: protocol.NotModified}, status: crawldb.NotModified, want: ""},
		{name: "no record", old: v{u, protocol.Success, "one", false}, recent: v{code: protocol.NotModified}, want: "-"},
		{name: "noindex", old: v{u, protocol.Success, "one", false}, recent: v{u, protocol.Success, "two", true}, status: crawldb.Fetched, want: "-", noIndex: 1},
		{name: "noindex, ignored", old: v{u, protocol.Success, "one", false}, recent: v{u, protocol.Success, "two", true}, status: crawldb.Fetched, o: index.Options{DeleteRobotsNoIndex: index.Off}, want: "two " + recent},
		{name: "noindex no more", old: v{u, protocol.Success, "one", true}, recent: v{u, protocol.Success, "two", false}, status: crawldb.Fetched, want: "two " + recent},
		{name: "one segment only", old: v{u, protocol.Success, "one", false}, recent: v{u, protocol.Success, "two", false}, status: crawldb.Fetched, o: index.Options{Segments: []string{old, old}}, want: "one " + old},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := &memstore.DB{}
			c.recent.url = u
			// Pages around it, so that the parts are not in step by chance.
			put(t, db.Segments(), old, start, v{"http://x.example.test/", protocol.NotFound, "", false}, c.old, v{"http://y.example.test/", protocol.NotFound, "", false})
			put(t, db.Segments(), recent, start.Add(24*time.Hour), v{"http://x.example.test/", protocol.Failed, "", false}, c.recent)
			if c.status != 0 {
				record(t, db.Crawl(), u, c.status)
			}
			w := &shelf{docs: map[string]index.Document{}}
			r := run(t, db, w, c.o)
			got := ""
			for _, call := range w.calls {
				if call == "delete "+u {
					got = "-"
				}
			}
			if d, ok := w.docs[u]; ok {
				got = d.Text + " " + d.Segment
				if d.Title != "T "+d.Text || d.Host != "a.example.test" || d.ContentType != "text/html" || d.Score != 2 || d.Signature != "ab" || d.Modified.IsZero() || d.Fetched.IsZero() {
					t.Errorf("%+v", d)
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if r.NoIndex != c.noIndex || r.Documents != len(w.docs) || w.commits != 1 {
				t.Errorf("%+v with %d documents and %d commits", r, len(w.docs), w.commits)
			}
		})
	}
}

func TestAnchors(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Segments(), old, start, visit{"http://a.example.test/", protocol.Success, "one", false})
	record(t, db.Crawl(), "http://a.example.test/", crawldb.Fetched)
	err := db.Links().Merge(t.Context(), []linkdb.Entry{{URL: "http://a.example.test/", Inlinks: []linkdb.Inlink{
		{From: "http://b.example.test/", Anchor: "x"}, {From: "http://c.example.test/", Anchor: ""}, {From: "http://d.example.test/", Anchor: "y"}, {From: "http://e.example.test/", Anchor: "x"},
	}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &shelf{}
	run(t, db, w, index.Options{})
	if got := w.docs["http://a.example.test/"].Anchors; !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("%q", got)
	}
	w = &shelf{}
	if _, err := index.Run(t.Context(), db.Crawl(), nil, db.Segments(), w, index.Options{}); err != nil || w.docs["http://a.example.test/"].Anchors != nil {
		t.Errorf("without a link db: %+v, %v", w.docs, err)
	}
}

func TestUncommittedSegmentIsError(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Segments(), old, start, visit{"http://a.example.test/", protocol.Success, "one", false})
	record(t, db.Crawl(), "http://a.example.test/", crawldb.Fetched)
	write(t, db.Segments(), recent, []segment.Visit{{URL: "http://a.example.test/", Outcome: protocol.Outcome{Code: protocol.Success}}}, 1)
	w := &shelf{}
	if r := run(t, db, w, index.Options{}); r.Segments != 1 || r.Skipped != 1 || r.Documents != 1 {
		t.Errorf("%+v", r)
	}
	_, err := index.Run(t.Context(), db.Crawl(), nil, db.Segments(), w, index.Options{Segments: []string{recent}})
	if !errors.Is(err, segment.ErrNotFound) || !strings.Contains(err.Error(), recent) {
		t.Errorf("%v", err)
	}
	if r := run(t, db, w, index.Options{Segments: []string{}}); r.Segments != 0 {
		t.Errorf("no segment: %+v", r)
	}
}

func TestRunIsDeterministic(t *testing.T) {
	var want []string
	for range 3 {
		db := &memstore.DB{}
		for s := range 3 {
			var visits []visit
			for i := range 40 {
				u := fmt.Sprintf("http://h%d.example.test/%d", i%3, i)
				code := []protocol.Code{protocol.Success, protocol.NotModified, protocol.Gone, protocol.Failed}[(i+s)%4]
				visits = append(visits, visit{u, code, fmt.Sprint("t", s), false})
				record(t, db.Crawl(), u, crawldb.Statuses()[i%3])
			}
			put(t, db.Segments(), fmt.Sprintf("2026010%d080000-000", s+1), start, visits...)
		}
		w := &shelf{}
		r := run(t, db, w, index.Options{})
		if want == nil {
			want = w.calls
		}
		if !slices.Equal(w.calls, want) || r.Documents == 0 || r.Deleted == 0 || len(w.calls) != r.Documents+r.Deleted+1 {
			t.Errorf("%+v, %d calls", r, len(w.calls))
		}
		// Each page is decided once.
		seen := map[string]bool{}
		for _, c := range w.calls {
			var d index.Document
			u, ok := strings.CutPrefix(c, "delete ")
			if raw, is := strings.CutPrefix(c, "write "); is {
				if err := json.Unmarshal([]byte(raw), &d); err != nil {
					t.Fatal(err)
				}
				u, ok = d.URL, true
			}
			if ok && seen[u] {
				t.Errorf("%s twice", u)
			}
			seen[u] = true
		}
		// A writer that fails ends the run, and nothing is committed.
		for n := 1; n <= len(want); n++ {
			w := &shelf{fail: n}
			if _, err := index.Run(t.Context(), db.Crawl(), nil, db.Segments(), w, index.Options{}); !errors.Is(err, errFull) || len(w.calls) != n {
				t.Fatalf("call %d: %v after %d calls", n, err, len(w.calls))
			}
		}
	}
}

func TestPartsOutOfStep(t *testing.T) {
	db := &memstore.DB{}
	record(t, db.Crawl(), "http://a.example.test/", crawldb.Fetched)
	write(t, db.Segments(), old, []segment.Visit{{URL: "http://a.example.test/", Outcome: protocol.Outcome{Code: protocol.Success}}}, 1)
	write(t, db.Segments(), old, []segment.Text{}, 1)
	write(t, db.Segments(), old, []segment.Data{}, 1)
	write(t, db.Segments(), old, []segment.Parse{}, 1)
	var damage *segment.CorruptError
	if _, err := index.Run(t.Context(), db.Crawl(), nil, db.Segments(), &shelf{}, index.Options{}); !errors.As(err, &damage) {
		t.Errorf("%v", err)
	}
}

func TestCancelledIndex(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Segments(), old, start, visit{"http://a.example.test/", protocol.Success, "one", false})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &shelf{}
	if _, err := index.Run(ctx, db.Crawl(), nil, db.Segments(), w, index.Options{}); !errors.Is(err, context.Canceled) || w.commits > 0 {
		t.Errorf("%v, %d commits", err, w.commits)
	}
}

// What must not be shown as a copy is indexed, and says so, as does what is to be taken
// out of the index later.
func TestNoArchiveOmitsContent(t *testing.T) {
	const u = "http://a.example.test/p"
	db, w := new(memstore.DB), new(shelf)
	record(t, db.Crawl(), u, crawldb.Fetched)
	write(t, db.Segments(), recent, []segment.Visit{{URL: u, Time: start, Outcome: protocol.Outcome{Code: protocol.Success}}}, 1)
	write(t, db.Segments(), recent, []segment.Text{{URL: u, Text: "text"}}, 1)
	write(t, db.Segments(), recent, []segment.Data{{URL: u, Parsed: page.Parsed{Directives: page.Directives{NoArchive: true, UnavailableAfter: start.Add(time.Hour)}}}}, 1)
	write(t, db.Segments(), recent, []segment.Parse{{URL: u}}, 1)
	if run(t, db, w, index.Options{}); !w.docs[u].NoArchive || !w.docs[u].UnavailableAfter.Equal(start.Add(time.Hour)) || w.docs[u].Text != "text" {
		t.Errorf("the document is %+v", w.docs[u])
	}
}

// A block holds many pages, and each part those that have something in it.
func TestPartsAreReadSideBySide(t *testing.T) {
	db := new(memstore.DB)
	u := func(i int) string { return fmt.Sprintf("http://a.example.test/%d", i) }
	const pages = 8
	var visits []segment.Visit
	var contents []page.Content
	var texts []segment.Text
	var data []segment.Data
	var parses []segment.Parse
	for i := range pages {
		visits = append(visits, segment.Visit{URL: u(i), Time: start, Outcome: protocol.Outcome{Code: protocol.Success}})
		if i&1 != 0 {
			contents = append(contents, page.Content{URL: u(i), Body: []byte("body of " + u(i))})
		}
		if i&2 != 0 {
			texts = append(texts, segment.Text{URL: u(i), Text: "text of " + u(i)})
			data = append(data, segment.Data{URL: u(i), Parsed: page.Parsed{Title: "title of " + u(i)}})
		}
		if i&4 != 0 {
			parses = append(parses, segment.Parse{URL: u(i), Signature: []byte(u(i))})
		}
		record(t, db.Crawl(), u(i), crawldb.Fetched)
	}
	write(t, db.Segments(), recent, visits, pages)
	write(t, db.Segments(), recent, texts, pages)
	write(t, db.Segments(), recent, data, pages)
	write(t, db.Segments(), recent, parses, pages)

	// What is asked for and not there makes a segment unready, not its pages empty.
	if r := run(t, db, new(shelf), index.Options{AddBinaryContent: true}); r.Segments != 0 || r.Skipped != 1 {
		t.Errorf("without contents: %+v", r)
	}
	write(t, db.Segments(), recent, contents, pages)
	w := new(shelf)
	r := run(t, db, w, index.Options{AddBinaryContent: true})
	if r.Documents != pages/2 || r.Unparsed != pages/2 {
		t.Errorf("%+v", r)
	}
	for i := range pages {
		d, ok := w.docs[u(i)]
		if i&2 == 0 {
			if ok {
				t.Errorf("%s has no text and became %+v", u(i), d)
			}
			continue
		}
		body := ""
		if i&1 != 0 {
			body = "body of " + u(i)
		}
		if d.Text != "text of "+u(i) || d.Title != "title of "+u(i) || string(d.BinaryContent) != body {
			t.Errorf("%s became %+v", u(i), d)
		}
	}
	// Without a record the signature is the one of the parse.
	db2 := new(memstore.DB)
	write(t, db2.Segments(), recent, visits, pages)
	write(t, db2.Segments(), recent, texts, pages)
	write(t, db2.Segments(), recent, data, pages)
	write(t, db2.Segments(), recent, parses, pages)
	w = new(shelf)
	run(t, db2, w, index.Options{NutchCompat: true})
	for i := range pages {
		want := ""
		if i&4 != 0 {
			want = fmt.Sprintf("%x", u(i))
		}
		if d := w.docs[u(i)]; i&2 != 0 && d.Signature != want {
			t.Errorf("%s has the signature %s, want %s", u(i), d.Signature, want)
		}
	}
}

// Segments may be named in any order, and what became of the pages is counted under
// its name.
func TestCounts(t *testing.T) {
	const pages = 14
	var older, newer []visit
	db := new(memstore.DB)
	for i := range pages {
		u := fmt.Sprintf("http://a.example.test/%02d", i)
		status := crawldb.Fetched
		v := visit{u, protocol.Success, "new", false}
		switch {
		case i < 1:
			status = crawldb.Gone
		case i < 3:
			status = crawldb.RedirTemp
		case i < 6:
			status = crawldb.Duplicate
		case i < 10:
			status = crawldb.Orphan
		case i < 11:
			v.noIndex = true
		case i == 12:
			status = crawldb.ParseFailed
		case i == 13:
			status = crawldb.NotModified
		}
		record(t, db.Crawl(), u, status)
		older, newer = append(older, visit{u, protocol.Success, "old", false}), append(newer, v)
	}
	put(t, db.Segments(), old, start, older...)
	put(t, db.Segments(), recent, start.Add(24*time.Hour), newer...)
	for _, segments := range [][]string{{old, recent}, {recent, old}, {recent, old, recent}} {
		w := new(shelf)
		got := run(t, db, w, index.Options{Segments: segments, SkipNotModified: true})
		want := index.Report{Segments: 2, Documents: 1, Deleted: 12, Gone: 1, Redirects: 2, Duplicates: 3, Orphans: 4, NoIndex: 1, FailedParse: 1, NotModified: 1}
		if got != want {
			t.Errorf("%v: %+v, want %+v", segments, got, want)
		}
		if d := w.docs["http://a.example.test/11"]; d.Text != "new" {
			t.Errorf("%v: the text is %q", segments, d.Text)
		}
	}
}
