package verify_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

const (
	a, b, c = "http://a.example/", "http://b.example/", "http://c.example/"
	seg     = "20260105080000-000"
)

func at() time.Time { return time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC) }

// db makes a crawl that is sound: two pages were fetched, and the third is leased.
func db(t *testing.T) *memstore.DB {
	t.Helper()
	db := &memstore.DB{}
	put(t, db, crawldb.Datum{URL: a, Status: crawldb.Fetched}, crawldb.Datum{URL: b, Status: crawldb.Fetched},
		crawldb.Datum{URL: c, Status: crawldb.Unfetched, LeasedBy: seg, LeasedUntil: at().Add(time.Hour)})
	must(t, db.Links().Merge(t.Context(), []linkdb.Entry{{URL: a, Inlinks: []linkdb.Inlink{{From: b}}}}, 0))
	must(t, db.Hosts().Update(t.Context(), "a.example", func(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{}, nil }))
	write(t, db, true, []crawldb.Datum{{URL: a, Status: 1}, {URL: b, Status: 1}, {URL: c, Status: 1}})
	write(t, db, true, []page.Content{{URL: a}}, []page.Content{{URL: b}})
	write(t, db, true, []segment.Visit{{URL: a}}, []segment.Visit{{URL: b}})
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, db *memstore.DB, all ...crawldb.Datum) {
	t.Helper()
	for _, d := range all {
		must(t, db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{d.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }}))
	}
}

func mark(t *testing.T, db *memstore.DB, job, cursor string) {
	t.Helper()
	must(t, db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(job, cursor)}))
}

func write[T segment.Record](t *testing.T, db *memstore.DB, commit bool, blocks ...[]T) {
	t.Helper()
	w, err := segment.NewWriter[T](t.Context(), db.Segments(), seg, 0)
	must(t, err)
	for _, b := range blocks {
		must(t, w.Append(t.Context(), b))
	}
	if commit {
		must(t, w.Commit(t.Context()))
	}
	must(t, w.Close())
}

// keepOnly removes the other parts of the segment.
func keepOnly(t *testing.T, db *memstore.DB, parts ...string) {
	t.Helper()
	blocks := map[string][][]byte{}
	for _, part := range parts {
		for b, err := range db.Segments().Read(t.Context(), seg, part, 0) {
			must(t, err)
			blocks[part] = append(blocks[part], b)
		}
	}
	must(t, db.Segments().Remove(t.Context(), seg))
	for _, part := range parts {
		w, err := db.Segments().Append(t.Context(), seg, part, 0)
		must(t, err)
		for _, b := range blocks[part] {
			must(t, w.Append(t.Context(), b))
		}
		must(t, w.Commit(t.Context()))
	}
}

// What a merge that is under way, or a parser that comes later, has not written yet
// is not missing.
func TestUnfinishedSegmentIsNoFinding(t *testing.T) {
	db := db(t)
	write(t, db, false, []segment.Text{{URL: a}}, nil)
	if r, text := check(t, stores(db)); r.Findings != 0 {
		t.Errorf("a parser that was killed: %s", text)
	}
	keepOnly(t, db, segment.FetchPart) // its contents have lost their name with the power
	write[crawldb.Datum](t, db, false)
	s := stores(db)
	s.Crawl = nil
	if r, text := check(t, s); r.Findings != 0 {
		t.Errorf("a merge that was killed: %s", text)
	}
}

func check(t *testing.T, s verify.Stores) (verify.Report, string) {
	t.Helper()
	var b strings.Builder
	r, err := verify.Run(t.Context(), s, verify.Options{Now: at, Found: func(f verify.Finding) { b.WriteString(f.Error() + "\n") }})
	must(t, err)
	return r, b.String()
}

func stores(db *memstore.DB) verify.Stores {
	return verify.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
}

func TestSoundStoresHaveNoFinding(t *testing.T) {
	r, text := check(t, stores(db(t)))
	if text != "" {
		t.Error(text)
	}
	want := verify.Report{Records: 3, Leased: 1, Hosts: 1, Targets: 1, Inlinks: 1, Segments: 1, Parts: 3, SegmentBlocks: 5, SegmentRecords: 7}
	if r != want {
		t.Errorf("reported %+v; want %+v", r, want)
	}
}

func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*memstore.DB)
		want  []string
	}{
		{"a status that there is not", func(db *memstore.DB) { put(t, db, crawldb.Datum{URL: a, Status: 77}) }, []string{a, "unknown status"}},
		{"half a lease", func(db *memstore.DB) { put(t, db, crawldb.Datum{URL: a, Status: 1, LeasedBy: seg}) }, []string{a, "or has no end"}},
		{"a lease of nobody", func(db *memstore.DB) {
			put(t, db, crawldb.Datum{URL: a, Status: 1, LeasedBy: "gone-000", LeasedUntil: at().Add(time.Minute)})
		}, []string{a, "gone-000", "does not exist"}},
		{"an update of nothing", func(db *memstore.DB) {
			must(t, db.Segments().Remove(t.Context(), seg))
			write(t, db, true, []crawldb.Datum{{URL: c, Status: 1}})
			mark(t, db, "update/"+seg, "done")
		}, []string{seg, "visits are not complete"}},
		{"a round before its update", func(db *memstore.DB) { mark(t, db, "round/"+seg, "done") }, []string{seg, "its update is not"}},
		{"a strange mark", func(db *memstore.DB) { mark(t, db, "update/"+seg, "nearly") }, []string{seg, "nearly"}},
		{"a page too many", func(db *memstore.DB) {
			write(t, db, true, []segment.Text{{URL: a}}, []segment.Text{{URL: c}})
		}, []string{seg, "parse_text, block 1", c}},
		{"pages in another order", func(db *memstore.DB) {
			write(t, db, true, []segment.Text{{URL: b}}, []segment.Text{{URL: a}})
		}, []string{"parse_text, block 0", "parse_text, block 1"}},
		{"a block too few", func(db *memstore.DB) { write(t, db, true, []segment.Parse{{URL: a}}) }, []string{"crawl_parse", "1 of 2"}},
		{"events too few", func(db *memstore.DB) { write(t, db, true, []segment.Event{{URL: a}}) }, []string{"page_events", "1 of 2"}},
		{"an event of another page", func(db *memstore.DB) {
			write(t, db, true, []segment.Event{{URL: a}}, []segment.Event{{URL: c}})
		}, []string{seg, "page_events, block 1", c}},
		{"a block too many", func(db *memstore.DB) { write(t, db, true, []segment.Parse{{URL: a}}, nil, nil) }, []string{"crawl_parse", "3 of 2"}},
		{"links before texts", func(db *memstore.DB) {
			write(t, db, false, []segment.Text{{URL: a}}, nil)
			write(t, db, true, []segment.Parse{{URL: a}}, nil)
		}, []string{"crawl_parse", "texts"}},
		{"contents lost", func(db *memstore.DB) { keepOnly(t, db, segment.GeneratePart, segment.FetchPart) }, []string{seg + "/content", "crawl_fetch exists"}},
		{"visits lost", func(db *memstore.DB) { keepOnly(t, db, segment.GeneratePart, segment.ContentPart) }, []string{seg + "/crawl_fetch", "content exists"}},
		{"the list lost", func(db *memstore.DB) { keepOnly(t, db, segment.FetchPart, segment.ContentPart) }, []string{seg + "/crawl_generate", "crawl_fetch exists"}},
		{"texts lost", func(db *memstore.DB) {
			write(t, db, true, []segment.Data{{URL: a}}, nil)
			write(t, db, true, []segment.Parse{{URL: a}}, nil)
		}, []string{seg + "/parse_text", "crawl_parse exists"}},
		{"properties lost", func(db *memstore.DB) {
			write(t, db, true, []segment.Text{{URL: a}}, nil)
			write(t, db, true, []segment.Parse{{URL: a}}, nil)
		}, []string{seg + "/parse_data", "crawl_parse exists"}},
		{"links lost", func(db *memstore.DB) {
			write(t, db, true, []segment.Text{{URL: a}}, nil)
			write(t, db, true, []segment.Data{{URL: a}}, nil)
		}, []string{seg + "/crawl_parse", "parse_data exists"}},
		{"links under way, and texts lost", func(db *memstore.DB) {
			write(t, db, false, []segment.Data{{URL: a}}, nil)
			write(t, db, false, []segment.Parse{{URL: a}}, nil)
		}, []string{seg + "/parse_text", "crawl_parse exists"}},
	} {
		db := db(t)
		tt.spoil(db)
		r, text := check(t, stores(db))
		if r.Findings == 0 {
			t.Errorf("%s: nothing was found", tt.name)
		}
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: found %q, which does not say %q", tt.name, text, want)
			}
		}
	}
}

func TestExpiredLeaseIsHarmless(t *testing.T) {
	db := db(t)
	put(t, db, crawldb.Datum{URL: a, Status: 1, LeasedBy: "gone-000", LeasedUntil: at()})
	if r, text := check(t, stores(db)); r.Findings != 0 || r.Harmless != 1 {
		t.Errorf("%+v, %s", r, text)
	}
}

func TestLeaseOfUpdatedSegmentIsReported(t *testing.T) {
	db := db(t)
	mark(t, db, "update/"+seg, "done")
	if r, text := check(t, stores(db)); r.Findings != 0 || r.Harmless != 1 || !strings.Contains(text, c) || !strings.Contains(text, seg) {
		t.Errorf("%+v, %s", r, text)
	}
}

func TestLeaseOfPageNotOnListIsReported(t *testing.T) {
	const d = "http://d.example/"
	for _, tt := range []struct {
		until time.Duration
		list  []crawldb.Datum // instead of all that is leased
		mark  string
		want  int
	}{
		{until: time.Hour, want: 1},
		{until: 0},
		{until: time.Hour, mark: "at 1", want: 1},
		{until: time.Hour, mark: "done", want: 2}, // as a lease of what is folded in
		{until: time.Hour, list: []crawldb.Datum{{URL: c, Status: 1}, {URL: d, Status: 1}}},
	} {
		db := db(t)
		put(t, db, crawldb.Datum{URL: d, Status: 1, LeasedBy: seg, LeasedUntil: at().Add(tt.until)})
		if tt.mark != "" {
			mark(t, db, "update/"+seg, tt.mark)
		}
		if tt.list != nil {
			must(t, db.Segments().Remove(t.Context(), seg))
			write(t, db, true, tt.list)
		}
		r, text := check(t, stores(db))
		if r.Findings != 0 || r.Harmless != tt.want || tt.want > 0 && !strings.Contains(text, d) {
			t.Errorf("%+v: %+v, %s", tt, r, text)
		}
	}
}

// holes is a crawl db with damaged places.
type holes struct {
	crawldb.Store
	at []string // URLs whose records cannot be read
}

func (h holes) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		for d, err := range h.Store.Scan(ctx, r) {
			for _, url := range h.at {
				if d.URL == url {
					d, err = crawldb.Datum{}, &crawldb.CorruptError{File: "f", Offset: 7, URL: url, Err: errors.New("bad")}
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

func TestEveryDamagedRecordIsReported(t *testing.T) {
	s := stores(db(t))
	s.Crawl = holes{s.Crawl, []string{a, c}}
	r, text := check(t, s)
	if r.Findings != 2 || r.Records != 1 || !strings.Contains(text, a) || !strings.Contains(text, c) {
		t.Errorf("%+v, %s", r, text)
	}
}

// A store that is wrong everywhere does not fill the memory with places.
func TestFindingsKeepTheirPlaces(t *testing.T) {
	c := verify.NewCheck(verify.Options{})
	add := func(place int64) { c.Add(verify.Finding{File: "f", Offset: place, Err: errors.New("bad")}) }
	const most = 100_000
	for n := range int64(most + 1) {
		add(n)
	}
	for _, n := range []int64{0, most - 1} {
		if add(n); c.Report.Findings != most+1 {
			t.Errorf("place %d was reported again", n)
		}
	}
	if add(most); c.Report.Findings != most+2 {
		t.Errorf("%d places are remembered", most+1)
	}
}

func TestCancelledCheckEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := verify.Run(ctx, stores(db(t)), verify.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
