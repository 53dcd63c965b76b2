package recrawl_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/webtest"
)

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
