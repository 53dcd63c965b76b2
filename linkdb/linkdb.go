// Package linkdb keeps inverted links: for each page, which pages link to it
// and with what words ([Inlink]). [Invert] computes them from the outlinks of a
// segment, and is where to start. Scores do not depend on it: the anchors are for an index and
// for people.
//
// The stock engines are stores/memstore and stores/pebblestore; a new one must
// pass linkdbtest.Run.
package linkdb

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
)

// ErrClosed says that the store was closed.
var ErrClosed = errors.New("linkdb: store is closed")

// ErrOrder says that the entries of a Merge are not strictly ascending.
var ErrOrder = errors.New("linkdb: entries are not in key order")

// Inlink is one link to a page.
type Inlink struct {
	// From is the page that links.
	From string
	// Anchor is the text of the link; empty if it has none.
	Anchor string
}

// Entry holds links to one page.
type Entry struct {
	// URL is the page that is linked to.
	URL string
	// Inlinks are distinct and in the order of [CompareInlinks].
	Inlinks []Inlink
}

// A Store keeps the inlinks of each page.
//
// Concurrency: every method may be called from many goroutines at once; merges
// that share a URL are applied one after the other.
//
// Order: pages are in the order of crawldb.Key, the inlinks of a page in that
// of [CompareInlinks].
//
// Atomicity: what Merge does to one page is done whole or not at all. A Merge
// that failed may have been applied to some pages; repeating it is harmless,
// since merging is idempotent and the order of merges does not matter.
//
// Durability: a Merge that returned survives any end of the process or machine.
//
// Ownership: the caller owns what it is given; the store retains nothing that
// it is given.
//
// Cancellation: a method whose context is done before it starts returns an
// error that is ctx.Err().
type Store interface {
	// Get returns the inlinks of a page; having none is not an error.
	Get(ctx context.Context, url string) ([]Inlink, error)

	// Scan yields the pages of the range that have inlinks. It is weak, as
	// crawldb.Store's is. The loop may write and may break. An error ends the
	// sequence.
	Scan(ctx context.Context, r crawldb.Range) iter.Seq2[Entry, error]

	// Merge adds links: each page then has the [Union] of what it had and what it
	// is given, up to limit. The entries are strictly ascending by
	// crawldb.Compare, otherwise the error is ErrOrder and nothing is changed; the
	// inlinks of an entry may be in any order and repeated. A page that has none
	// afterwards is not kept.
	Merge(ctx context.Context, entries []Entry, limit int) error

	// Close ends the use of the store. A second Close does nothing.
	Close() error
}

// CompareInlinks orders inlinks by the key of the page they are on, then by
// their anchor.
func CompareInlinks(a, b Inlink) int {
	if c := crawldb.Compare(a.From, b.From); c != 0 {
		return c
	}
	return strings.Compare(a.Anchor, b.Anchor)
}

// Union returns the distinct links of both in order, and only the first limit
// of them if limit is positive. Which ones are kept does not depend on the
// order or number of unions.
func Union(a, b []Inlink, limit int) []Inlink {
	a, b = inOrder(a), inOrder(b)
	n := len(a) + len(b)
	switch {
	case n == 0:
		return nil
	case n == 1: // as for most pages
		return slices.Concat(a, b)
	}
	if limit <= 0 || limit > n {
		limit = n
	}
	all := make([]Inlink, 0, limit)
	for len(all) < limit && len(a)+len(b) > 0 {
		next := &b
		if len(b) == 0 || len(a) > 0 && CompareInlinks(a[0], b[0]) < 0 {
			next = &a
		}
		l := (*next)[0]
		*next = (*next)[1:]
		if len(all) == 0 || l != all[len(all)-1] {
			all = append(all, l)
		}
	}
	return all
}

// inOrder returns links in order: the given ones if they are, as those of a
// store and of Invert are.
func inOrder(links []Inlink) []Inlink {
	if slices.IsSortedFunc(links, CompareInlinks) {
		return links
	}
	links = slices.Clone(links)
	slices.SortFunc(links, CompareInlinks)
	return links
}

// Anchors returns the anchor texts of links for an index, in the order of the
// links and without empty ones: each text once per host that uses it, as Nutch
// counts votes, or only once if distinct is set. (Nutch:
// anchorIndexingFilter.deduplicate.)
func Anchors(links []Inlink, distinct bool) []string {
	type vote struct{ host, anchor string }
	var out []string
	seen := map[vote]struct{}{}
	for _, l := range links {
		v := vote{anchor: l.Anchor}
		if !distinct {
			v.host = crawldb.Host(l.From)
		}
		if _, ok := seen[v]; !ok && l.Anchor != "" {
			seen[v] = struct{}{}
			out = append(out, l.Anchor)
		}
	}
	return out
}
