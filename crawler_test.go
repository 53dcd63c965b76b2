package recrawl_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestOnlyACrawlDBIsRequired(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	synctest.Test(t, func(t *testing.T) {
		if _, err := recrawl.New(recrawl.Stores{}, recrawl.Options{Agent: "x"}); err == nil {
			t.Error("no crawl db, no error")
		}
		if _, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.Crawl)}, recrawl.Options{}); err == nil {
			t.Error("no agent, no error")
		}
		for _, o := range []fetch.Options{{Politeness: fetch.Politeness{Delay: 5}}, {Politeness: fetch.Politeness{MinDelay: 1000}}} {
			if _, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.Crawl)}, recrawl.Options{Agent: "x", Fetch: o}); err == nil || !strings.Contains(err.Error(), "5*time.Second") {
				t.Errorf("pauses of %v and %v: %v", o.Politeness.Delay, o.Politeness.MinDelay, err)
			}
		}
		whole := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 15})
		whole.run(t, whole.web.Seeds()...)
		want, _, _ := strings.Cut(whole.dump(t), "\n\n")

		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 15})
		c, err := recrawl.New(recrawl.Stores{Crawl: s.db.Crawl()}, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.dump(t); !strings.HasPrefix(want, got) || got == "" {
			t.Errorf("differs: %s", firstDifference(got, want))
		}
		if r, err := c.InvertLinks(t.Context(), "any"); err != nil || r.Links != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTemporarySegmentsAreRemovedByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The clock stands still, and each crawler has segments of its own that
		// are gone with it: marks of theirs are not taken for those of new ones.
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 20, Calm: true})
		for i, u := range s.web.Seeds() {
			stores := s.stores()
			stores.Segments = nil
			for range 8 {
				s.opts.Run.Rounds = 1
				c, err := recrawl.New(stores, s.opts)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Inject(t.Context(), u); err != nil {
					t.Fatal(i, err)
				}
				if _, err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for u, d := range s.records(t) {
			if d.Status != crawldb.Fetched {
				t.Errorf("%s: %v", u, d.Status)
			}
		}
		// One that is cut short has lost its segment, and gives back its pages.
		s.now = s.now.AddDate(0, 2, 0)
		stores := s.stores()
		stores.Segments = nil
		c, err := recrawl.New(stores, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Generate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if c, err = recrawl.New(stores, s.opts); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for u, d := range s.records(t) {
			if d.LeasedBy != "" {
				t.Errorf("%s is leased by %s, which is gone", u, d.LeasedBy)
			}
		}
	})
}

// With ReadOnly, New leaves what a generate that died has left.
func TestReadOnlyReleasesNothing(t *testing.T) {
	db := &memstore.DB{}
	w, err := db.Segments().Append(t.Context(), "20260105090000-000", "leases", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(t.Context(), nil), w.Close()); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Segments: db.Segments()}, recrawl.Options{Agent: "test", ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, err := range db.Segments().List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			left++
		}
		if want := map[bool]int{true: 1, false: 0}[readOnly]; left != want {
			t.Errorf("ReadOnly %v: %d segments are left", readOnly, left)
		}
	}
}

// Without a store of segments New releases all pages, but not those of a crawl that it is
// only to read.
func TestReadOnlyLeavesLeases(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
		c := s.crawler(t)
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		if g, err := c.Generate(t.Context()); err != nil || g.Selected != 1 {
			t.Fatalf("%+v, %v", g, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		s.opts.ReadOnly = readOnly
		watcher, err := recrawl.New(recrawl.Stores{Crawl: s.db.Crawl()}, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Close()
		for url, d := range s.records(t) {
			if leased := d.LeasedBy != ""; leased != readOnly {
				t.Errorf("read only %v: %s is leased by %q", readOnly, url, d.LeasedBy)
			}
		}
	}
}

func TestGenerateThatDiedIsUndone(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
	c := s.crawler(t)
	defer c.Close()
	if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	before := s.dump(t)
	// It dies when it is about to write the fetch list.
	died := errors.New("died")
	_, err := generate.Run(t.Context(), s.db.Crawl(), failingSegments{s.db.Segments(), died}, generate.Options{Now: s.opts.Now})
	if !errors.Is(err, died) {
		t.Fatalf("generate: %v", err)
	}
	if s.dump(t) == before {
		t.Fatal("nothing was leased: the test does not test anything")
	}
	c2 := s.crawler(t)
	defer c2.Close()
	if got := s.dump(t); got != before {
		t.Errorf("after recovery: %s", firstDifference(got, before))
	}
	for name, err := range s.db.Segments().List(t.Context()) {
		t.Errorf("segment %s is left over (%v)", name, err)
	}
}

// failingSegments dies with the fetch list: it takes none, and nothing can be
// cleaned up either.
type failingSegments struct {
	segment.Store
	err error
}

func (f failingSegments) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	if part == segment.GeneratePart || keep < 0 {
		return nil, f.err
	}
	return f.Store.Append(ctx, name, part, keep)
}
