package index

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// Page is one visit to a page, and what its segment has of it. All but Segment and Visit may be
// nil: a visit may have brought no content, or content that no parser reads.
type Page struct {
	Segment string
	Visit   *segment.Visit
	Text    *segment.Text
	Data    *segment.Data
	Parse   *segment.Parse
	Content []byte // for Options.AddBinaryContent
}

// Change is what a visit changes in an index: Document is to be written, or, if it is nil, the document
// of URL deleted. If URL is empty, there is nothing to do.
type Change struct {
	URL      string
	Document *Document
	// Position is that of the event in the change feed, to be acknowledged once the change, and
	// all before it, is committed; empty if there is nothing to acknowledge yet.
	Position string
	// Reconcile says that the index may have documents of pages that the crawl has forgotten:
	// see [Reconcile].
	Reconcile bool
}

// Apply passes the change on to a writer.
func (c *Change) Apply(ctx context.Context, w Writer) error {
	switch {
	case c.Document != nil:
		return w.Write(ctx, c.Document)
	case c.URL != "":
		return w.Delete(ctx, c.URL)
	}
	return ctx.Err()
}

// ChangeOf says what one visit changes in an index, by the rules of [Run]. It is for a caller that
// meets visits one by one, in their order: a visit that leaves the decision to an older one changes
// nothing. Of Options it does not use Segments, NoCommit, SortMemory and TempDir; Accept must not give
// two pages the same spelling. links may be nil.
func ChangeOf(ctx context.Context, crawl crawldb.Store, links linkdb.Store, p Page, o Options) (Change, error) {
	url := p.Visit.URL
	if o.Accept != nil {
		var ok bool
		if url, ok = o.Accept(url); !ok {
			return Change{}, nil
		}
	}
	var change Change
	j := job{crawl: crawl, links: links, w: (*recorder)(&change), o: o}
	if err := j.page(ctx, p.Segment, url, input{Visit: p.Visit, Text: p.Text, Data: p.Data, Parse: p.Parse}, p.Content); err != nil {
		return Change{}, fmt.Errorf("index: %w", err)
	}
	return change, nil
}

// recorder is a Writer that keeps the last change.
type recorder Change

func (r *recorder) Write(ctx context.Context, d *Document) error {
	r.URL, r.Document = d.URL, d
	return ctx.Err()
}

func (r *recorder) Delete(ctx context.Context, url string) error {
	r.URL, r.Document = url, nil
	return ctx.Err()
}

func (r *recorder) Commit(ctx context.Context) error { return ctx.Err() }

// A Lister is a Writer that can say which documents it has.
type Lister interface {
	Writer
	// URLs yields the URLs of all documents that were committed, in any order. Those that are
	// deleted meanwhile may be among them. An error ends the sequence.
	URLs(ctx context.Context) iter.Seq2[string, error]
}

// Reconcile deletes the documents whose pages are not in the crawl db, or which [Clean] would
// delete, and returns how many. It finds pages that Clean cannot, because the crawl has forgotten
// them, and takes the time of listing the index instead of the crawl. It does not commit. It is not
// for an index in which Options.Accept has changed URLs.
func Reconcile(ctx context.Context, crawl crawldb.Store, w Lister) (deleted int, err error) {
	for url, err := range w.URLs(ctx) {
		if err != nil {
			return deleted, fmt.Errorf("index: reconcile: %w", err)
		}
		d, err := crawl.Get(ctx, url)
		switch {
		case errors.Is(err, crawldb.ErrNotFound):
		case err != nil:
			return deleted, fmt.Errorf("index: reconcile: %w", err)
		case !d.IsSitemap() && !Deletes(&d, Options{}):
			continue
		}
		if err := w.Delete(ctx, url); err != nil {
			return deleted, fmt.Errorf("index: reconcile: %w", err)
		}
		deleted++
	}
	return deleted, nil
}
