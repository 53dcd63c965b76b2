package recrawl_test

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// A segment that is updated twice at the same time is applied once.
func TestUpdateAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 20, Calm: true})
		stores := s.stores()
		stores.Crawl = slowMarks{s.db.Crawl()}
		c, err := recrawl.New(stores, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		g, err := c.Generate(t.Context())
		if err != nil || len(g.Segments) != 1 {
			t.Fatal(g, err)
		}
		if _, err := c.Fetch(t.Context(), g.Segments[0]); err != nil {
			t.Fatal(err)
		}
		var applied [2]bool
		var wg sync.WaitGroup
		for i := range applied {
			wg.Go(func() {
				r, err := c.Update(t.Context(), g.Segments[0])
				if err != nil {
					t.Error(err)
				}
				applied[i] = !r.Already
			})
		}
		wg.Wait()
		if applied[0] == applied[1] {
			t.Errorf("applied: %v, want it once", applied)
		}
		cash := 0.0
		for _, d := range s.records(t) {
			cash += scoring.Cash(&d)
		}
		if want := float64(len(s.web.Seeds())); math.Abs(cash-want) > 1e-9 {
			t.Errorf("there is %v of cash, %v was injected", cash, want)
		}
	})
}

// slowMarks takes a moment to tell of the mark of an update.
type slowMarks struct{ crawldb.Store }

func (s slowMarks) Mark(ctx context.Context, job string) (string, error) {
	cursor, err := s.Store.Mark(ctx, job)
	if strings.HasPrefix(job, "update/") {
		time.Sleep(time.Second)
	}
	return cursor, err
}

// Two selections at the same time make two segments.
func TestGenerateAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 20, Calm: true})
		stores := s.stores()
		stores.Segments = slowList{s.db.Segments()}
		s.opts.Generate.TopN = 2
		c, err := recrawl.New(stores, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var names []string
		selected := 0
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				g, err := c.Generate(t.Context())
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				names, selected = append(names, g.Segments...), selected+g.Selected
			})
		}
		wg.Wait()
		slices.Sort(names)
		if n := len(slices.Compact(names)); n != len(names) || n == 0 {
			t.Errorf("segments %v", names)
		}
		leased := 0
		for _, d := range s.records(t) {
			if d.LeasedBy == "" {
				continue
			}
			leased++
			if !slices.Contains(names, d.LeasedBy) {
				t.Errorf("%s is leased by %s", d.URL, d.LeasedBy)
			}
		}
		if leased != selected {
			t.Errorf("%d leases, and %d were selected", leased, selected)
		}
	})
}

// slowList takes a moment to list segments.
type slowList struct{ segment.Store }

func (s slowList) List(ctx context.Context) iter.Seq2[string, error] {
	names := slices.Collect(func(yield func(string) bool) {
		for name, err := range s.Store.List(ctx) {
			if err != nil || !yield(name) {
				return
			}
		}
	})
	time.Sleep(time.Second)
	return func(yield func(string, error) bool) {
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}
