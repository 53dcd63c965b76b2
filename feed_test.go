package recrawl_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/segment"
)

// Segments that are done by hand are in the feed in the order in which that happened, with numbers of their own;
// merged ones are not in it.
func TestFeedOfStagesByHand(t *testing.T) {
	s := changingWeb()
	c := s.seeded(t)
	defer c.Close()
	ctx := t.Context()
	k := s.consumer(t, c, "index", recrawl.ConsumerOptions{})
	for range 3 {
		g, err := c.Generate(ctx)
		if err != nil {
			t.Fatal(err)
		}
		name := g.Segments[0]
		_, err1 := c.Fetch(ctx, name)
		_, err2 := c.Update(ctx, name)
		if err := errors.Join(err1, err2, c.Finish(ctx, name), c.Finish(ctx, name)); err != nil {
			t.Fatal(err)
		}
	}
	var of []string
	positions := map[string]bool{}
	for _, e := range unacknowledged(t, k) {
		if len(of) == 0 || of[len(of)-1] != e.Segment {
			of = append(of, e.Segment)
		}
		if positions[e.Position] {
			t.Errorf("two events at %s", e.Position)
		}
		positions[e.Position] = true
		if text, err := e.Text(ctx); err != nil || e.Kind == recrawl.PageNew && text == "" {
			t.Errorf("%s: text %q, %v", e.URL, text, err)
		}
	}
	if !slices.Equal(of, segments(t, s)) {
		t.Errorf("events of %v, want %v", of, segments(t, s))
	}
	var number int64
	for _, name := range of {
		mark, err := s.db.Crawl().Mark(ctx, segment.RoundMark(name))
		r, err2 := segment.ParseRound(mark)
		if err := errors.Join(err, err2); err != nil || !r.Done || r.Number != number+1 {
			t.Errorf("%s: %q, %v", name, mark, err)
		}
		number = r.Number
	}
}
