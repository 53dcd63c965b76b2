package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/segment"
)

// delivered removes the note of a verb whose output was printed.
func (a *app) delivered(ctx context.Context, s *session) error {
	if err := a.printed(); err != nil {
		return err
	}
	return render.ClearPendingOutput(ctx, s.db.Crawl())
}

// reportSegments makes segments for fetch and prints their names. of identifies what they are
// made of; it is empty for what is due. If an earlier run of the verb made segments of the same
// and could not print their names, it prints those and makes none.
func (a *app) reportSegments(ctx context.Context, s *session, verb, of string, make func() (generate.Report, error), print func(*generate.Report) error) error {
	u, err := render.ReadPendingOutput(ctx, s.db.Crawl(), verb)
	if err != nil {
		return err
	}
	if u.Of != of {
		u = render.PendingOutput{}
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
		waiting, n, err := s.awaitsFetch(ctx, name)
		if err != nil {
			return err
		}
		if waiting {
			r.Segments, r.Selected = append(r.Segments, name), r.Selected+n
			fmt.Fprintf(a.err, "recrawl: %s was already made, by a %s that could not report it\n", name, verb)
		}
	}
	if len(r.Segments) == 0 {
		if err := (render.PendingOutput{Verb: verb, After: newest, Of: of}).Save(ctx, s.db.Crawl()); err != nil {
			return err
		}
		if r, err = make(); err != nil {
			return err
		}
	}
	if err := print(&r); err != nil {
		return err
	}
	return a.delivered(ctx, s)
}

// awaitsFetch reports whether a segment is complete and no fetch of it has started, and how
// many URLs are on its list.
func (s *session) awaitsFetch(ctx context.Context, name string) (ok bool, urls int, err error) {
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
