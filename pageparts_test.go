package recrawl_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
)

// countingReads counts how often parts are opened to be read, and which blocks that
// looks at.
type countingReads struct {
	segment.Store
	mu     sync.Mutex
	opened map[string]int
	passed map[string]int
}

func (s *countingReads) Read(ctx context.Context, name, part string, from int) iter.Seq2[[]byte, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[part]++
	s.passed[part] += from
	return s.Store.Read(ctx, name, part, from)
}

// Events that ask for the parts of their pages read each part once, not from its
// beginning for each block; those that ask when all is over get theirs, too.
func TestPageEventsReadEachPartOnce(t *testing.T) {
	testlevel.SkipInRace(t)
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 1500, Calm: true})
			counted := &countingReads{Store: s.db.Segments()}
			check := func(e *recrawl.PageEvent) {
				c, err := e.Content(t.Context())
				text, err2 := e.Text(t.Context())
				p, err3 := e.Parsed(t.Context())
				if err != nil || err2 != nil || err3 != nil || c.URL != e.URL || text == "" || p.Title == "" {
					t.Errorf("%s: %d bytes of %q, %d bytes of text, %q: %v, %v, %v", e.URL, len(c.Body), c.URL, len(text), p.Title, err, err2, err3)
				}
			}
			var events []recrawl.PageEvent
			s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
				if e.Kind == recrawl.PageNew {
					if events = append(events, e); !late {
						check(&e)
					}
				}
				return nil
			}
			stores := s.stores()
			stores.Segments = counted
			c, err := recrawl.New(stores, s.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
			most := 0
			for {
				counted.opened, counted.passed = map[string]int{}, map[string]int{}
				r, err := c.Round(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if r.Visited() == 0 {
					break
				}
				most = max(most, r.Visited())
				if o, p := counted.opened, counted.passed; o["content"] > 1 || o["parse_text"] > 1 || o["parse_data"] > 2 || p["content"]+p["parse_text"]+p["parse_data"] > 0 {
					t.Errorf("for %d visits: opened %v, passed over %v", r.Visited(), o, p)
				}
			}
			if most < 1000 || len(events) < 2500 {
				t.Errorf("%d events, %d visits in a round: that shows nothing", len(events), most)
			}
			if late {
				for i := range events {
					check(&events[i])
				}
			}
		})
	}
}
