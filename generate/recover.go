package generate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

// A DamagedError names segments whose generate may have died, which is unknown. It
// wraps the errors that say why.
type DamagedError struct {
	Segments []string
	Errs     []error // one a segment
}

// Error names each segment and what is wrong with it.
func (e *DamagedError) Error() string { return errors.Join(e.Errs...).Error() }

// Unwrap returns the causes.
func (e *DamagedError) Unwrap() []error { return e.Errs }

var errNoList = errors.New("pages were visited, but the fetch list is missing")

// Recover releases the leases of every generate that died before its segment was
// complete, and removes the remains of those segments. It returns their names.
// Call it when a store is opened, before anything is selected; a generate
// running in this process is left alone.
//
// So is a segment whose fetch list or note of leases is damaged, or whose list is lost though pages were visited:
// its leases expire by themselves, and the rest of it stays. The error is then a *[DamagedError], after
// everything else was done: a crawl can go on without a segment it may never need again.
//
// If crawl is nil, Recover looks for such segments and changes nothing.
func Recover(ctx context.Context, crawl crawldb.Store, segments segment.Store) ([]string, error) {
	var dead, names []string
	for name, err := range segments.List(ctx) {
		if err != nil {
			return nil, fmt.Errorf("generate: recover: %w", err)
		}
		names = append(names, name)
	}
	damaged := &DamagedError{}
	for _, name := range names {
		died, err := unlisted(ctx, segments, name)
		switch {
		case err != nil && stopped(ctx, err):
			return dead, fmt.Errorf("generate: recover %s: %w", name, err)
		case err != nil:
			damaged.Segments = append(damaged.Segments, name)
			damaged.Errs = append(damaged.Errs, fmt.Errorf("generate: recover %s: %w", name, err))
			continue
		case !died || crawl == nil:
			continue
		}
		err = release(ctx, crawl, segments, name)
		if errors.Is(err, segment.ErrBusy) {
			continue
		}
		if note := new(noteError); errors.As(err, &note) && errors.As(note.error, new(*segment.CorruptError)) {
			damaged.Segments = append(damaged.Segments, name)
			damaged.Errs = append(damaged.Errs, fmt.Errorf("generate: recover %s: %w", name, err))
			continue
		}
		if dead = append(dead, name); err != nil {
			return dead, fmt.Errorf("generate: recover %s: %w", name, err)
		}
	}
	if len(damaged.Segments) > 0 {
		return dead, damaged
	}
	return dead, nil
}

// stopped reports whether an error says nothing about the contents of a
// segment.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, segment.ErrClosed)
}

// unlisted reports whether a segment never got a fetch list. It is an error if
// it had one that is missing or cannot be read.
func unlisted(ctx context.Context, s segment.Store, name string) (bool, error) {
	info, err := s.Stat(ctx, name, segment.GeneratePart)
	if err == nil {
		return !info.Committed, nil
	}
	if !errors.Is(err, segment.ErrNotFound) {
		return false, err
	}
	// Nobody writes visits before the list is named; a merge opens it first.
	visits := []string{segment.FetchPart, segment.ContentPart}
	for i := range mostLists {
		visits = append(visits, segment.ListPart(segment.FetchPart, i))
	}
	for _, part := range visits {
		switch info, err := s.Stat(ctx, name, part); {
		case errors.Is(err, segment.ErrNotFound):
		case err != nil && stopped(ctx, err):
			return false, err
		case err != nil || info.Committed || info.Blocks > 0:
			return false, errNoList
		}
	}
	return true, nil
}

// noteError is an error in the note of what a segment has leased, not in the crawl db.
type noteError struct{ error }

func (e *noteError) Unwrap() error { return e.error }

// release releases what a segment without a fetch list has leased, and removes
// the segment.
func release(ctx context.Context, crawl crawldb.Store, segments segment.Store, name string) error {
	if done, err := segment.Has[crawldb.Datum](ctx, segments, name); err != nil || done {
		return err
	}
	// If the note has a writer, its generate is alive.
	w, err := segments.Append(ctx, name, leasePart, -1)
	switch {
	case errors.Is(err, segment.ErrCommitted):
	case err != nil:
		return &noteError{err}
	default:
		if err := w.Close(); err != nil {
			return err
		}
	}
	for block, err := range segments.Read(ctx, name, leasePart, 0) {
		if err != nil {
			return &noteError{err}
		}
		var urls []string
		for len(block) > 0 {
			n, size := binary.Uvarint(block)
			if size <= 0 || n > uint64(len(block)-size) {
				return &noteError{&segment.CorruptError{File: name + "/" + leasePart, Err: errors.New("not a list of URLs")}}
			}
			urls = append(urls, string(block[size:size+int(n)]))
			block = block[size+int(n):]
		}
		slices.SortFunc(urls, crawldb.Compare)
		err := crawl.Update(ctx, crawldb.Batch{URLs: slices.Compact(urls), Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			return released(old, name), nil
		}})
		if err != nil {
			return err
		}
	}
	if err := crawl.Sync(ctx); err != nil {
		return err
	}
	return segments.Remove(ctx, name)
}

// released returns the record without the lease of a segment, or the record
// itself if it has none.
func released(old *crawldb.Datum, segment string) *crawldb.Datum {
	if old == nil || old.LeasedBy != segment {
		return old
	}
	d := *old
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	return &d
}

// ReleaseOrphans releases every lease whose segment does not exist, because the
// segment store was lost or only temporary. It reads the whole crawl db and
// returns how many leases it released. No generate may run at the same time.
func ReleaseOrphans(ctx context.Context, crawl crawldb.Store, segments segment.Store) (int, error) {
	released, err := releaseOrphans(ctx, crawl, segments)
	if err != nil {
		err = fmt.Errorf("generate: release orphans: %w", err)
	}
	return released, err
}

func releaseOrphans(ctx context.Context, crawl crawldb.Store, segments segment.Store) (int, error) {
	there := map[string]bool{}
	for name, err := range segments.List(ctx) {
		if err != nil {
			return 0, err
		}
		there[name] = true
	}
	n := 0
	var urls []string
	flush := func() error {
		err := crawl.Update(ctx, crawldb.Batch{URLs: urls, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old == nil || there[old.LeasedBy] {
				return old, nil
			}
			return released(old, old.LeasedBy), nil
		}})
		n += len(urls)
		urls = urls[:0]
		return err
	}
	for d, err := range crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return n, err
		}
		if d.LeasedBy == "" || there[d.LeasedBy] {
			continue
		}
		if urls = append(urls, d.URL); len(urls) == chunk {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
	if len(urls) > 0 {
		if err := flush(); err != nil {
			return n, err
		}
	}
	return n, crawl.Sync(ctx)
}
