package recrawl_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl/crawldb/merge"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// indexed returns the documents of a crawl as lines in order, without the names
// of their segments.
func (s *setup) indexed(t *testing.T) []string {
	t.Helper()
	var out bytes.Buffer
	if _, err := index.Run(t.Context(), s.db.Crawl(), s.db.Links(), s.db.Segments(), index.NewJSONL(&out), index.Options{}); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(strings.Lines(regexp.MustCompile(`,"segment":"[^"]*"`).ReplaceAllString(out.String(), "")))
}

// What a merge makes of the segments of a crawl indexes as they did, and no stage
// takes it for work.
func TestMergedSegmentsAreDone(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 25, Calm: true})
	s.opts.Generate = generate.Options{TopN: 10}
	s.run(t, s.web.Seeds()...)
	s.now = s.now.AddDate(0, 1, 0)
	s.run(t)
	c := s.crawler(t)
	defer c.Close()
	names, err := c.DoneSegments(t.Context())
	if err != nil || len(names) < 6 {
		t.Fatalf("%v, %v", names, err)
	}
	want := s.indexed(t)
	s.now = s.now.AddDate(0, 0, 1)
	r, err := c.MergeSegments(t.Context(), merge.SegmentOptions{Slice: 30}, names...)
	if err != nil || len(r.Segments) != 2 || r.Unparsed > 0 || r.Superseded == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := s.indexed(t); !slices.Equal(got, want) {
		t.Errorf("beside what it was merged of: %d documents, not the same %d", len(got), len(want))
	}
	for _, name := range names {
		if err := c.RemoveSegment(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.indexed(t); !slices.Equal(got, want) {
		t.Errorf("alone: %d documents, not the same %d", len(got), len(want))
	}
	if got, err := c.DoneSegments(t.Context()); err != nil || !slices.Equal(got, r.Segments) {
		t.Errorf("%v are left, want %v; %v", got, r.Segments, err)
	}
	if u, err := c.Update(t.Context(), r.Segments[0]); err != nil || !u.Already {
		t.Errorf("an update: %+v, %v", u, err)
	}
	if round, err := c.Round(t.Context()); err != nil || slices.Contains(round.Segments, r.Segments[0]) {
		t.Errorf("a round took it up: %+v, %v", round, err)
	}
}

// Visits that a merge moves to another segment cost nothing of the budget.
func TestMergedVisitsAreNotCharged(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 25, Calm: true})
	s.opts.Schedule = schedule.Learned{Budget: 60}
	s.run(t, s.web.Seeds()...)
	account := func() string {
		t.Helper()
		text, err := s.db.Crawl().Mark(t.Context(), "schedule/account")
		if err != nil || !strings.Contains(text, `"Visits":50`) {
			t.Fatalf("%q, %v", text, err)
		}
		return text
	}
	want := account()
	c := s.crawler(t)
	defer c.Close()
	names, err := c.DoneSegments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.MergeSegments(t.Context(), merge.SegmentOptions{}, names...); err != nil || r.URLs < 50 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := account(); got != want {
		t.Errorf("%s was %s", got, want)
	}
}

func TestSegmentsAtWorkAreNotMerged(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 5})
	c := s.crawler(t)
	defer c.Close()
	if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	g, err := c.Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.MergeSegments(t.Context(), merge.SegmentOptions{}, g.Segments...); err == nil || !strings.Contains(err.Error(), g.Segments[0]+" is not folded into the crawl db yet") {
		t.Error(err)
	}
	if _, err := c.MergeSegments(t.Context(), merge.SegmentOptions{}, "missing"); err == nil || errors.Is(err, segment.ErrBusy) {
		t.Error(err)
	}
}

// What is not there is not marked as done, and neither is what a merge did not bring to an end.
func TestSegmentThatIsMissingIsNotMarkedDone(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 5, Calm: true})
	s.run(t, s.web.Seeds()...)
	c := s.crawler(t)
	defer c.Close()
	unmarked := func(name string) {
		t.Helper()
		for _, job := range []string{"round/" + name, "update/" + name} {
			if mark, err := s.db.Crawl().Mark(t.Context(), job); err != nil || mark != "" {
				t.Errorf("mark %s is %q, %v", job, mark, err)
			}
		}
	}
	const missing = "20260101000000-000"
	if err := c.Finish(t.Context(), missing); !errors.Is(err, segment.ErrNotFound) || !strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
	unmarked(missing)

	names, err := c.DoneSegments(t.Context())
	if err != nil || len(names) < 2 {
		t.Fatalf("%v, %v", names, err)
	}
	if err := c.Finish(t.Context(), names[0]); err != nil {
		t.Error(err)
	}
	var made string
	fails := errors.New("fails")
	_, err = c.MergeSegments(t.Context(), merge.SegmentOptions{Complete: func(_ context.Context, name string) error {
		made = name
		return fails
	}}, names...)
	if !errors.Is(err, fails) || made == "" {
		t.Errorf("%v of %q", err, made)
	}
	unmarked(made)

	// The process dies behind the marks.
	w, err := s.db.Segments().Append(t.Context(), made, segment.GeneratePart, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(t.Context(), []byte("x")), w.Close(), update.MarkDone(t.Context(), s.db.Crawl(), made)); err != nil {
		t.Fatal(err)
	}
	s.crawler(t).Close()
	unmarked(made)
}

func TestKeepSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 30, LinksPerPage: 4, Calm: true})
		s.opts.Retention.Segments = 2
		s.opts.Generate.TopN = 5
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		r, err := c.Run(t.Context())
		if err != nil || r.Rounds < 4 || len(r.Segments) != r.Rounds {
			t.Fatalf("%+v, %v", r, err)
		}
		kept := segments(t, s)
		if len(kept) != 2 || kept[1] != r.Segments[r.Rounds-1] {
			t.Errorf("kept %v of %v", kept, r.Segments)
		}
		for i, name := range r.Segments {
			for _, job := range []string{update.SegmentMark(name), "round/" + name} {
				mark, err := s.db.Crawl().Mark(t.Context(), job)
				if gone := i < r.Rounds-2; err != nil || gone != (mark == "") {
					t.Errorf("segment %d of %d: mark %s is %q, %v", i, r.Rounds, job, mark, err)
				}
			}
			if i > 0 && name <= r.Segments[i-1] {
				t.Errorf("%s after %s", name, r.Segments[i-1])
			}
		}
	})
}
