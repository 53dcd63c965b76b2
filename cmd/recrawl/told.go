package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/segment"
)

// A verb that prints the names of the segments it makes may be killed after making
// them and before printing: its caller knows nothing of them, and runs it again. So
// it notes in the crawl what it is about to make, and removes the note after printing;
// a verb that finds its own note resumes from there.
type untold struct {
	Verb string `json:"verb"`
	// After is the newest segment that existed before.
	After string `json:"after,omitempty"`
	// Of says what freegen makes a segment of: of anything else it makes another.
	Of string `json:"of,omitempty"`
	// Sources are the segments that mergesegs merges, Made those it has made of them,
	// and Whole says that these are all.
	Sources []string `json:"sources,omitempty"`
	Made    []string `json:"made,omitempty"`
	Whole   bool     `json:"whole,omitempty"`
}

// untoldJob is the progress mark that holds the note.
const untoldJob = "command/untold"

// untoldOf returns the note of a verb, or the zero untold.
func (s *session) untoldOf(ctx context.Context, verb string) (u untold, err error) {
	mark, err := s.db.Crawl().Mark(ctx, untoldJob)
	if err != nil || mark == "" {
		return u, err
	}
	if err := json.Unmarshal([]byte(mark), &u); err != nil || u.Verb != verb {
		return untold{}, nil
	}
	return u, nil
}

// note writes a note, and told removes it.
func (s *session) note(ctx context.Context, u untold) error {
	b, err := json.Marshal(u)
	if err == nil {
		err = s.db.Crawl().Update(ctx, crawldb.Batch{Marks: crawldb.Mark(untoldJob, string(b))})
	}
	if err == nil {
		err = s.db.Crawl().Sync(ctx)
	}
	return err
}

func (a *app) told(ctx context.Context, s *session) error {
	if err := a.printed(); err != nil {
		return err
	}
	return s.db.Crawl().Update(ctx, crawldb.Batch{Marks: crawldb.Mark(untoldJob, "")})
}

// generating runs a verb that makes segments for fetch, of something in particular or of
// what is due, and prints their names. If an earlier run made its segments of the same but
// could not print them, it prints those and makes none.
func (a *app) generating(ctx context.Context, s *session, verb, of string, make func() (generate.Report, error), print func(*generate.Report) error) error {
	u, err := s.untoldOf(ctx, verb)
	if err != nil {
		return err
	}
	if u.Of != of {
		u = untold{}
	}
	var r generate.Report
	newest := ""
	for name, err := range s.db.Segments().List(ctx) {
		if err != nil {
			return err
		}
		newest = name
		if u.Verb == "" || name <= u.After {
			continue
		}
		waiting, n, err := s.waiting(ctx, name)
		if err != nil {
			return err
		}
		if waiting {
			r.Segments, r.Selected = append(r.Segments, name), r.Selected+n
			fmt.Fprintf(a.err, "recrawl: %s was already made, by a %s that could not report it\n", name, verb)
		}
	}
	if len(r.Segments) == 0 {
		if err := s.note(ctx, untold{Verb: verb, After: newest, Of: of}); err != nil {
			return err
		}
		if r, err = make(); err != nil {
			return err
		}
	}
	if err := print(&r); err != nil {
		return err
	}
	return a.told(ctx, s)
}

// waiting reports whether a segment is complete and no fetch of it has started, and how
// many URLs are on its list.
func (s *session) waiting(ctx context.Context, name string) (ok bool, urls int, err error) {
	if ok, err = segment.Has[crawldb.Datum](ctx, s.db.Segments(), name); err != nil || !ok {
		return false, 0, err
	}
	if _, err := s.db.Segments().Stat(ctx, name, segment.FetchPart); !errors.Is(err, segment.ErrNotFound) {
		return false, 0, err
	}
	for block, err := range segment.Blocks[crawldb.Datum](ctx, s.db.Segments(), name, 0) {
		if err != nil {
			return false, 0, err
		}
		urls += len(block)
	}
	return true, urls, nil
}

// merging resumes a mergesegs that was killed: it removes what that made if it is
// incomplete, and reports it if it is complete and of these sources. No names stand for
// those named then.
func (s *session) merging(ctx context.Context, names []string) (untold, error) {
	u, err := s.untoldOf(ctx, "mergesegs")
	if err != nil {
		return u, err
	}
	sources := slices.Sorted(slices.Values(names))
	if u.Whole && (len(names) == 0 || slices.Equal(slices.Compact(sources), u.Sources)) {
		for _, name := range u.Made {
			if err := s.hasSegment(ctx, name); err != nil {
				return untold{}, nil // removed meanwhile
			}
		}
		return u, nil
	}
	if !u.Whole {
		for _, name := range u.Made {
			if err := s.crawler.RemoveSegment(ctx, name); err != nil {
				return u, err
			}
		}
	}
	return untold{}, nil
}
