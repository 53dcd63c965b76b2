package recrawl_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl"
)

// A page that is in two segments at once is compared with what the first has found when the second has been there.
func TestEventsOfAPageInTwoSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		c := s.crawler(t)
		defer c.Close()
		seed := s.web.Seeds()[0]
		if _, err := c.Inject(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
		s.live(t, c, 1)
		k := s.consumer(t, c, "index", recrawl.ConsumerOptions{EveryVisit: true})
		s.now = s.now.AddDate(0, 0, 2)
		for range 2 {
			if _, err := c.GenerateFree(t.Context(), func(yield func(string, error) bool) { yield(seed, nil) }); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := c.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var kinds []recrawl.PageKind
		for _, e := range unacknowledged(t, k) {
			kinds = append(kinds, e.Kind)
		}
		if want := []recrawl.PageKind{recrawl.PageChanged, recrawl.PageUnchanged}; !slices.Equal(kinds, want) {
			t.Errorf("%v, want %v", kinds, want)
		}
	})
}

// A visit whose clock was set back is older than the one before, so that the update leaves it out. It
// has no event either, and the feed and the crawl db agree.
func TestVisitThatTheUpdateLeavesOutHasNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		s.opts.Generate.TopN = 100
		c := s.seeded(t)
		defer c.Close()
		s.consumer(t, c, "index", recrawl.ConsumerOptions{})
		s.live(t, c, 4)
		right := s.now
		g, err := c.Generate(t.Context())
		if err != nil || len(g.Segments) != 1 {
			t.Fatal(g, err)
		}
		s.now = right.AddDate(0, 0, -3)
		if _, err := c.Fetch(t.Context(), g.Segments[0]); err != nil {
			t.Fatal(err)
		}
		s.now = right
		if _, err := c.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		var x signatures
		x.read(t, c, "index", -1)
		if want := s.signatures(t); len(want) < 12 || !maps.Equal(x.pages, want) {
			t.Errorf("%d pages in the index, want %d: %q", len(x.pages), len(want), differing(x.pages, want))
		}
	})
}
