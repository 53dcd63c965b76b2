package generate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

var errDied = errors.New("died")

// fuse burns down with every write; when it has, everything fails.
type fuse struct {
	left    int
	applies bool   // the write that burns it down is applied
	before  func() // called before every write, if not nil
}

func (f *fuse) write(apply func() error) error {
	if f.before != nil {
		f.before()
	}
	if f.left--; f.left > 0 {
		return apply()
	}
	if f.left == 0 && f.applies {
		if err := apply(); err != nil {
			return err
		}
	}
	return errDied
}

type dyingCrawl struct {
	crawldb.Store
	f *fuse
}

func (s dyingCrawl) Update(ctx context.Context, b crawldb.Batch) error {
	return s.f.write(func() error { return s.Store.Update(ctx, b) })
}

func (s dyingCrawl) Sync(ctx context.Context) error {
	return s.f.write(func() error { return s.Store.Sync(ctx) })
}

type dyingSegments struct {
	segment.Store
	f    *fuse
	open *[]segment.BlockWriter
}

func (s dyingSegments) Append(ctx context.Context, name, part string, keep int) (w segment.BlockWriter, err error) {
	err = s.f.write(func() (err error) {
		w, err = s.Store.Append(ctx, name, part, keep)
		if err == nil {
			*s.open = append(*s.open, w)
		}
		return err
	})
	return dyingWriter{w, s.f}, err
}

func (s dyingSegments) Remove(ctx context.Context, name string) error {
	return s.f.write(func() error { return s.Store.Remove(ctx, name) })
}

type dyingWriter struct {
	segment.BlockWriter
	f *fuse
}

func (w dyingWriter) Append(ctx context.Context, b []byte) error {
	return w.f.write(func() error { return w.BlockWriter.Append(ctx, b) })
}

func (w dyingWriter) Sync(ctx context.Context) error {
	return w.f.write(func() error { return w.BlockWriter.Sync(ctx) })
}

func (w dyingWriter) Commit(ctx context.Context) error {
	return w.f.write(func() error { return w.BlockWriter.Commit(ctx) })
}

// consistent checks that every lease has its segment and every list its leases,
// and returns how many URLs are leased.
func consistent(t *testing.T, db *memstore.DB) int {
	t.Helper()
	listed := map[string]string{}
	for name, err := range db.Segments().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list(t, db.Segments(), name) {
			if other, dup := listed[d.URL]; dup {
				t.Errorf("%s is in %s and %s", d.URL, other, name)
			}
			listed[d.URL] = name
		}
	}
	n := 0
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.LeasedBy != "" {
			n++
		}
		if d.LeasedBy != listed[d.URL] {
			t.Errorf("%s is leased by %q and listed in %q", d.URL, d.LeasedBy, listed[d.URL])
		}
	}
	return n
}

func TestGenerateThatDiesAnywhere(t *testing.T) {
	const pages = 50
	o := generate.Options{TopN: 18, Segments: 2, MaxPerHost: 7, Now: clock}.WithChunk(9)
	for _, kind := range []string{"both", "crawl", "segments"} {
		for _, applies := range []bool{false, true} {
			for n := 1; ; n += testlevel.Pick(3, 1) {
				db := &memstore.DB{}
				put(t, db.Crawl(), many(pages, 6)...)
				f := &fuse{left: n, applies: applies}
				var crawl crawldb.Store = db.Crawl()
				var segments segment.Store = db.Segments()
				var open []segment.BlockWriter
				if kind != "segments" {
					crawl = dyingCrawl{crawl, f}
				}
				if kind != "crawl" {
					segments = dyingSegments{segments, f, &open}
				}
				r, err := generate.Run(t.Context(), crawl, segments, o)
				if err == nil {
					if n < 5 {
						t.Fatalf("%s: only %d writes", kind, n)
					}
					if r.Selected != 36 || consistent(t, db) != 36 {
						t.Errorf("%s: %+v", kind, r)
					}
					break
				}
				if !errors.Is(err, errDied) || len(r.Segments) > 0 {
					t.Fatalf("%+v, %v", r, err)
				}
				for _, w := range open { // what a dead process had open is open no more
					w.Close()
				}
				at := fmt.Sprintf("%s: died at write %d (applied: %v)", kind, n, applies)
				if _, err := generate.Recover(t.Context(), db.Crawl(), db.Segments()); err != nil {
					t.Fatalf("%s: %v", at, err)
				}
				leased := consistent(t, db)
				rest := run(t, db.Crawl(), db.Segments(), generate.Options{})
				if rest.Selected != pages-leased || consistent(t, db) != pages {
					t.Errorf("%s: %d leased and then %d selected of %d", at, leased, rest.Selected, pages)
				}
				if again, err := generate.Recover(t.Context(), db.Crawl(), db.Segments()); len(again) > 0 || err != nil {
					t.Errorf("%s: recovered again: %v, %v", at, again, err)
				}
				if t.Failed() {
					return
				}
			}
		}
	}
}

// A store that works again after one error: the run cleans up.
func TestGenerateThatFailsLeavesNothing(t *testing.T) {
	o := generate.Options{TopN: 18, Segments: 2, Now: clock}.WithChunk(9)
	for n := 1; ; n++ {
		db := &memstore.DB{}
		put(t, db.Crawl(), many(50, 6)...)
		f := &fuse{left: n}
		f.before = func() {
			if f.left == 0 { // it has failed once
				f.left = 1 << 30
			}
		}
		var open []segment.BlockWriter
		_, err := generate.Run(t.Context(), dyingCrawl{db.Crawl(), f}, dyingSegments{db.Segments(), f, &open}, o)
		if err == nil {
			return
		}
		if !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		leased := consistent(t, db)
		if dead, err := generate.Recover(t.Context(), db.Crawl(), db.Segments()); len(dead) > 0 || err != nil {
			t.Errorf("failed at write %d: left %v, %v", n, dead, err)
		}
		if rest := run(t, db.Crawl(), db.Segments(), generate.Options{}); rest.Selected != 50-leased {
			t.Errorf("failed at write %d: %d leased, %d selected", n, leased, rest.Selected)
		}
	}
}

func TestGenerateAtWorkIsLeftAlone(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Crawl(), many(50, 6)...)
	calls := 0
	f := &fuse{left: 1 << 30, before: func() {
		calls++
		if _, err := generate.Recover(t.Context(), db.Crawl(), db.Segments()); err != nil {
			t.Error(err)
		}
	}}
	var open []segment.BlockWriter
	o := generate.Options{TopN: 18, Segments: 2, Now: clock}.WithChunk(9)
	r := run(t, dyingCrawl{db.Crawl(), f}, dyingSegments{db.Segments(), f, &open}, o)
	if n := consistent(t, db); n != 36 || r.Selected != 36 || calls < 10 {
		t.Errorf("%d leased, %+v", n, r)
	}
}

func TestCancelledGenerateLeavesNothing(t *testing.T) {
	for n := 1; n < 12; n++ {
		db := &memstore.DB{}
		put(t, db.Crawl(), many(50, 6)...)
		ctx, cancel := context.WithCancel(t.Context())
		writes := 0
		f := &fuse{left: 1 << 30, before: func() {
			if writes++; writes == n {
				cancel()
			}
		}}
		var open []segment.BlockWriter
		_, err := generate.Run(ctx, dyingCrawl{db.Crawl(), f}, dyingSegments{db.Segments(), f, &open}, generate.Options{Now: clock}.WithChunk(9))
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("write %d: %v", n, err)
		}
		if leased := consistent(t, db); leased > 0 {
			t.Errorf("cancelled at write %d: %d leased", n, leased)
		}
		for name := range db.Segments().List(t.Context()) {
			t.Errorf("cancelled at write %d: %s is left", n, name)
		}
	}
}

func TestRecoverEndsItsOwnLeasesOnly(t *testing.T) {
	db := &memstore.DB{}
	d := due("http://a.example.test/", 1)
	put(t, db.Crawl(), d)
	// A segment is cut short after it has leased the page; its lease runs out, and
	// another segment has the page when the first is found.
	var open []segment.BlockWriter
	f := &fuse{left: 6, applies: true}
	if _, err := generate.Run(t.Context(), dyingCrawl{db.Crawl(), f}, dyingSegments{db.Segments(), f, &open}, generate.Options{Now: clock}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	for _, w := range open {
		w.Close()
	}
	rec, err := db.Crawl().Get(t.Context(), d.URL)
	if err != nil || rec.LeasedBy == "" {
		t.Fatalf("%+v, %v", rec, err)
	}
	later := run(t, db.Crawl(), db.Segments(), generate.Options{Now: func() time.Time { return now.Add(8 * day) }})
	dead, err := generate.Recover(t.Context(), db.Crawl(), db.Segments())
	if err != nil || len(dead) != 1 || dead[0] != rec.LeasedBy {
		t.Errorf("%v, %v", dead, err)
	}
	if rec, err = db.Crawl().Get(t.Context(), d.URL); err != nil || len(later.Segments) != 1 || rec.LeasedBy != later.Segments[0] {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestReleaseOrphans(t *testing.T) {
	db := &memstore.DB{}
	put(t, db.Crawl(), many(50, 6)...)
	kept := run(t, db.Crawl(), db.Segments(), generate.Options{TopN: 20})
	lost := run(t, db.Crawl(), db.Segments(), generate.Options{TopN: 20})
	if err := db.Segments().Remove(t.Context(), lost.Segments[0]); err != nil {
		t.Fatal(err)
	}
	n, err := generate.ReleaseOrphans(t.Context(), db.Crawl(), db.Segments())
	if err != nil || n != 20 || consistent(t, db) != 20 {
		t.Errorf("%d released, %v", n, err)
	}
	if rest := run(t, db.Crawl(), db.Segments(), generate.Options{}); rest.Selected != 30 || len(kept.Segments) != 1 {
		t.Errorf("%+v", rest)
	}
}

// noting and leasing tell whether a lease is written before the note of it is durable.
type noting struct {
	segment.Store
	unsynced *int
}

func (s noting) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	w, err := s.Store.Append(ctx, name, part, keep)
	return notingWriter{w, s.unsynced}, err
}

type notingWriter struct {
	segment.BlockWriter
	unsynced *int
}

func (w notingWriter) Append(ctx context.Context, block []byte) error {
	if len(block) > 0 {
		*w.unsynced++
	}
	return w.BlockWriter.Append(ctx, block)
}

func (w notingWriter) Sync(ctx context.Context) error {
	*w.unsynced = 0
	return w.BlockWriter.Sync(ctx)
}

type leasing struct {
	crawldb.Store
	leased func()
}

func (s leasing) Update(ctx context.Context, b crawldb.Batch) error {
	next := b.Next
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d, err := next(i, old)
		if d != nil && d.LeasedBy != "" {
			s.leased()
		}
		return d, err
	}
	return s.Store.Update(ctx, b)
}

// A power failure must not leave a lease that is in no note.
func TestNotesAreDurableBeforeLeases(t *testing.T) {
	var db memstore.DB
	putAll(t, db.Crawl(), many(40, 4))
	unsynced, leases := 0, 0
	crawl := leasing{db.Crawl(), func() {
		if leases++; unsynced > 0 {
			t.Errorf("lease %d is written, and %d blocks of notes are not durable", leases, unsynced)
		}
	}}
	r := run(t, crawl, noting{db.Segments(), &unsynced}, generate.Options{TopN: 7, Segments: 3})
	if leases == 0 || r.Selected == 0 {
		t.Errorf("%d leases, %d selected", leases, r.Selected)
	}
}

// lost is a store of segments in which parts are damaged or were removed.
type lost struct {
	segment.Store
	errs map[string]error // by segment and part
}

func (s lost) Stat(ctx context.Context, name, part string) (segment.Info, error) {
	if err := s.errs[name+"/"+part]; err != nil {
		return segment.Info{}, err
	}
	return s.Store.Stat(ctx, name, part)
}

// A segment that has lost its fetch list, or cannot read it, keeps what else it has
// and keeps no crawl from being opened; one that never got a list is still undone.
func TestRecoverLeavesASegmentThatLostItsList(t *testing.T) {
	damage := &segment.CorruptError{File: "f", Err: errors.New("no foot")}
	for _, tt := range []struct {
		name  string
		errs  map[string]error
		write func(t *testing.T, s segment.Store)
	}{
		{"damaged list", map[string]error{"a-000/" + segment.GeneratePart: damage}, func(*testing.T, segment.Store) {}},
		{"list lost behind visits", nil, func(t *testing.T, s segment.Store) {
			writeBlocks[segment.Visit](t, s, "a-000", segment.FetchPart, true)
		}},
		{"list lost behind visits under way", nil, func(t *testing.T, s segment.Store) {
			writeBlocks[segment.Visit](t, s, "a-000", segment.FetchPart, false)
		}},
		{"list lost behind visits of one list", nil, func(t *testing.T, s segment.Store) {
			writeBlocks[segment.Visit](t, s, "a-000", segment.ListPart(segment.FetchPart, 3), false)
		}},
		{"list lost and visits damaged", map[string]error{"a-000/" + segment.FetchPart: damage}, func(*testing.T, segment.Store) {}},
		{"list and visits lost", nil, func(t *testing.T, s segment.Store) {
			writeBlocks[page.Content](t, s, "a-000", segment.ContentPart, true)
		}},
		{"note of leases that is none", nil, func(t *testing.T, s segment.Store) {
			w, err := s.Append(t.Context(), "a-000", "leases", -1)
			if err == nil {
				err = errors.Join(w.Append(t.Context(), []byte("\xff")), w.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := &memstore.DB{}
			inner := db.Segments()
			for _, name := range []string{"a-000", "b-000"} { // both have a note of leases
				w, err := inner.Append(t.Context(), name, "leases", 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(w.Append(t.Context(), nil), w.Close()); err != nil {
					t.Fatal(err)
				}
			}
			tt.write(t, inner)
			dead, err := generate.Recover(t.Context(), db.Crawl(), lost{inner, tt.errs})
			var damaged *generate.DamagedError
			if !errors.As(err, &damaged) || len(damaged.Segments) != 1 || damaged.Segments[0] != "a-000" || len(damaged.Errs) != 1 {
				t.Fatalf("Recover returned %v", err)
			}
			if tt.errs["a-000/"+segment.GeneratePart] != nil && !errors.As(err, new(*segment.CorruptError)) {
				t.Errorf("%v does not say what is damaged", err)
			}
			if len(dead) != 1 || dead[0] != "b-000" {
				t.Errorf("Recover undid %v, not b-000", dead)
			}
			var left []string
			for name, err := range inner.List(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				left = append(left, name)
			}
			if len(left) != 1 || left[0] != "a-000" {
				t.Errorf("left are %v", left)
			}
		})
	}
}

func writeBlocks[T segment.Record](t *testing.T, s segment.Store, name, part string, commit bool) {
	t.Helper()
	w, err := segment.NewWriterTo[T](t.Context(), s, name, part, 0)
	if err == nil {
		err = w.Append(t.Context(), make([]T, 1))
	}
	if err == nil && commit {
		err = w.Commit(t.Context())
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}
