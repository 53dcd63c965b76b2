package merge

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
)

// LinkDBOptions say which links are merged. The zero value takes all, within
// limits.
type LinkDBOptions struct {
	// Accept says which URLs are kept at both ends of a link, and how they are
	// spelled. A page that is rejected loses its inlinks. Nil keeps all as they
	// are. It is not applied to what the destination already has. (Nutch:
	// -normalize, -filter.)
	Accept AcceptFunc
	// MaxInlinks limits the links kept for one page; zero means 10,000, negative
	// no limit. Which are kept depends on the links alone, see linkdb.Union.
	// (Nutch: linkdb.max.inlinks.)
	MaxInlinks int
}

// LinkDBReport counts what a merge of link dbs read. It may count a page of many
// links more than once.
type LinkDBReport struct {
	// Pages and Inlinks count what the sources have, Rejected the inlinks that
	// were left out.
	Pages, Inlinks, Rejected int
}

// linkBytes is about the most bytes of links in one Merge of a store, unless a
// single page has more.
const linkBytes = 8 << 20

// LinkDBs adds the inlinks of several link dbs to another, which may already have
// some. Each page gets the union of all. It may be repeated.
func LinkDBs(ctx context.Context, dst linkdb.Store, srcs []linkdb.Store, o LinkDBOptions) (LinkDBReport, error) {
	o.MaxInlinks = cmp.Or(o.MaxInlinks, linkdb.DefaultMaxInlinks)
	var r LinkDBReport
	for n, src := range srcs {
		if err := mergeLinks(ctx, dst, src, o, &r); err != nil {
			return r, fmt.Errorf("merge: link dbs: source %d: %w", n+1, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("merge: link dbs: %w", err)
	}
	return r, nil
}

func mergeLinks(ctx context.Context, dst, src linkdb.Store, o LinkDBOptions, r *LinkDBReport) error {
	var batch []linkdb.Entry
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := dst.Merge(ctx, mergeSame(batch, o.MaxInlinks), o.MaxInlinks)
		clear(batch)
		batch, size = batch[:0], 0
		return err
	}
	for e, err := range src.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		r.Pages++
		r.Inlinks += len(e.Inlinks)
		kept := accepted(e, o.Accept)
		r.Rejected += len(e.Inlinks) - len(kept.Inlinks)
		if len(kept.Inlinks) == 0 {
			continue
		}
		batch = append(batch, kept)
		for _, l := range kept.Inlinks {
			size += len(l.From) + len(l.Anchor) + 32
		}
		if len(batch) == chunk || size > linkBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// accepted returns the links to a page that are kept.
func accepted(e linkdb.Entry, accept AcceptFunc) linkdb.Entry {
	if accept == nil {
		return e
	}
	u, ok := accept(e.URL)
	if !ok {
		return linkdb.Entry{}
	}
	out := linkdb.Entry{URL: u}
	for _, l := range e.Inlinks {
		if l.From, ok = accept(l.From); ok {
			out.Inlinks = append(out.Inlinks, l)
		}
	}
	return out
}

// mergeSame sorts entries and merges those that have become the same page.
func mergeSame(batch []linkdb.Entry, limit int) []linkdb.Entry {
	compare := func(a, b linkdb.Entry) int { return crawldb.Compare(a.URL, b.URL) }
	if !slices.IsSortedFunc(batch, compare) {
		slices.SortStableFunc(batch, compare)
	}
	out := batch[:0:0]
	for _, e := range batch {
		if n := len(out); n > 0 && out[n-1].URL == e.URL {
			out[n-1].Inlinks = linkdb.Union(out[n-1].Inlinks, e.Inlinks, limit)
			continue
		}
		out = append(out, e)
	}
	return out
}
