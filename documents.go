package recrawl

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/segment"
)

// IndexOptions say how [Consumer.Index] keeps an index up to date. The fields Segments, NoCommit,
// SortMemory and TempDir of index.Options have no effect; Scoring is by default that of the crawler.
type IndexOptions struct {
	index.Options
	// Follow waits for more at the end of the feed, until the context ends.
	Follow bool
	// Batch is the number of changes that are committed and acknowledged together; zero means
	// 10,000. A batch also ends after 32 MiB of text, and at the end of the feed.
	Batch int
	// Clean calls [index.Reconcile] at the end of the feed, if the writer is an index.Lister: it
	// finds the pages that became duplicates or orphans without a visit. It takes the time of
	// listing the index.
	Clean bool
	// OnCommit, if not nil, is called after each commit that is acknowledged, with what was done so far.
	OnCommit func(IndexReport)
}

// IndexReport counts what [Consumer.Index] passed to the writer.
type IndexReport struct {
	Documents, Deleted, Commits int
}

// Index applies the changes that the consumer has not acknowledged to an index. A change is
// acknowledged once Commit has returned: after a kill at any instant some are applied again, and none is
// left out. The consumer should have been added with EveryVisit, because a page may begin to ask not
// to be indexed without any other change. After a snapshot the index has what is kept of each
// page, and, if the writer is an index.Lister, no other page. An error of the writer ends Index; a
// writer is to retry what may succeed later.
func (k *Consumer) Index(ctx context.Context, w index.Writer, o IndexOptions) (IndexReport, error) {
	f := indexFeed{k: k, w: w, o: o}
	for {
		news := k.c.feedNews.wait()
		if err := f.catchUp(ctx); err != nil || !o.Follow {
			return f.report, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return f.report, ctx.Err()
		}
	}
}

// indexFeed is one run of Consumer.Index.
type indexFeed struct {
	k      *Consumer
	w      index.Writer
	o      IndexOptions
	report IndexReport

	changes, bytes int    // since the last commit
	position       string // of the last change, empty if it is acknowledged
}

const (
	indexBatch      = 10_000
	indexBatchBytes = 32 << 20
)

// catchUp applies all changes up to the end of the feed.
func (f *indexFeed) catchUp(ctx context.Context) error {
	batch := f.o.Batch
	if batch <= 0 {
		batch = indexBatch
	}
	applied := false
	for change, err := range f.k.Documents(ctx, f.o.Options) {
		if err == nil {
			err = f.apply(ctx, &change)
		}
		if err == nil && (f.changes >= batch || f.bytes >= indexBatchBytes) {
			err = f.commit(ctx)
		}
		if err != nil {
			return err
		}
		applied = true
	}
	if f.o.Clean && applied {
		if err := f.reconcile(ctx); err != nil {
			return err
		}
	}
	return f.commit(ctx)
}

func (f *indexFeed) apply(ctx context.Context, change *index.Change) error {
	if err := change.Apply(ctx, f.w); err != nil {
		return fmt.Errorf("recrawl: index: %w", err)
	}
	switch {
	case change.Document != nil:
		f.report.Documents++
		f.bytes += len(change.Document.Text) + len(change.Document.BinaryContent)
	case change.URL != "":
		f.report.Deleted++
	}
	f.changes++
	if change.Position != "" {
		f.position = change.Position
	}
	if change.Reconcile {
		return f.reconcile(ctx)
	}
	return nil
}

// reconcile deletes the documents of pages that are not in the crawl.
func (f *indexFeed) reconcile(ctx context.Context) error {
	w, ok := f.w.(index.Lister)
	if !ok {
		return nil
	}
	if err := f.w.Commit(ctx); err != nil { // only what is committed is listed
		return fmt.Errorf("recrawl: index: %w", err)
	}
	n, err := f.k.c.ReconcileIndex(ctx, w)
	f.changes += n
	f.report.Deleted += n
	return err
}

// ReconcileIndex deletes the documents of pages that the crawl does not have any more: see
// [index.Reconcile].
func (c *Crawler) ReconcileIndex(ctx context.Context, w index.Lister) (deleted int, err error) {
	if deleted, err = index.Reconcile(ctx, c.stores.Crawl, w); err != nil {
		err = fmt.Errorf("recrawl: %w", err)
	}
	return deleted, err
}

func (f *indexFeed) commit(ctx context.Context) error {
	if f.changes == 0 {
		return nil
	}
	if err := f.w.Commit(ctx); err != nil {
		return fmt.Errorf("recrawl: index: %w", err)
	}
	if f.position != "" {
		if err := f.k.Ack(ctx, f.position); err != nil {
			return err
		}
	}
	f.changes, f.bytes, f.position = 0, 0, ""
	f.report.Commits++
	if f.o.OnCommit != nil {
		f.o.OnCommit(f.report)
	}
	return nil
}

// Documents yields what the events that are not acknowledged change in an index, up to the end of
// the feed: for an index that is not in this process. See [Consumer.Index], which applies them. A
// document is valid until the next one. A snapshot begins with all pages in the segments that are
// kept. These changes have no position: they cannot be acknowledged before the first event that follows them.
func (k *Consumer) Documents(ctx context.Context, o index.Options) iter.Seq2[index.Change, error] {
	if o.Scoring == nil {
		o.Scoring = k.c.opts.Scoring
	}
	return func(yield func(index.Change, error) bool) {
		for e, err := range k.Events(ctx) {
			var change index.Change
			switch {
			case err != nil:
			case e.Kind == SnapshotBegin:
				if err = k.c.keptDocuments(ctx, o, yield); errors.Is(err, errStopped) {
					return
				}
			case e.Kind == SnapshotEnd:
				change.Reconcile = true
			case e.Segment == "":
				change, err = k.c.snapshotChange(ctx, &e, o)
			default:
				change, err = k.c.eventChange(ctx, &e, o)
			}
			change.Position = e.Position
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// eventChange returns the change of an index by the visit of an event.
func (c *Crawler) eventChange(ctx context.Context, e *PageEvent, o index.Options) (index.Change, error) {
	p := index.Page{Segment: e.Segment, Visit: &e.Visit, Parse: &segment.Parse{URL: e.URL, Signature: e.Signature, Error: e.ParseError}}
	data, err := partOf(ctx, e, &e.parts.data, &e.parts.from.data, func(d *segment.Data) string { return d.URL })
	if err != nil {
		return index.Change{}, err
	}
	if data.URL != "" {
		text, err := e.Text(ctx)
		if err != nil {
			return index.Change{}, err
		}
		p.Data, p.Text = &data, &segment.Text{URL: e.URL, Text: text}
	}
	if o.AddBinaryContent {
		content, err := e.Content(ctx)
		if err != nil {
			return index.Change{}, err
		}
		p.Content = content.Body
	}
	change, err := index.ChangeOf(ctx, c.stores.Crawl, c.stores.Links, p, o)
	if err != nil {
		return index.Change{}, fmt.Errorf("recrawl: %w", err)
	}
	return change, c.addUsage(ctx, change.Document, e.URL)
}

// addUsage adds what the robots.txt of its site says to the document of a page.
func (c *Crawler) addUsage(ctx context.Context, d *index.Document, url string) error {
	if d == nil {
		return nil
	}
	u := robots.ParseUsage(d.Usage)
	if err := c.addSiteUsage(ctx, u, url); err != nil {
		return err
	}
	d.Usage = u.String()
	return nil
}

// addSiteUsage adds what the last robots.txt of the site says, if it is known.
func (c *Crawler) addSiteUsage(ctx context.Context, u robots.Usage, url string) error {
	rules, known, err := c.robots.Cached(ctx, url)
	if err != nil {
		return fmt.Errorf("recrawl: page %s: %w", url, err)
	}
	if known {
		u.Add(rules.Usage(url))
	}
	return nil
}

// keptDocuments yields the documents of all pages in the segments that are kept.
func (c *Crawler) keptDocuments(ctx context.Context, o index.Options, yield func(index.Change, error) bool) error {
	var err error
	if o.Segments, err = c.DoneSegments(ctx); err != nil || len(o.Segments) == 0 {
		return err
	}
	o.NoCommit = true
	if _, err := index.Run(ctx, c.stores.Crawl, c.stores.Links, c.stores.Segments, changeWriter(func(change index.Change, err error) bool {
		if change.Document != nil && err == nil {
			err = c.addUsage(ctx, change.Document, change.URL)
		}
		return yield(change, err) && err == nil
	}), o); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	return nil
}

// snapshotChange returns the change of an index by the state of a page in a snapshot: the page may
// have to be deleted. keptDocuments has yielded its document, if there is one.
func (c *Crawler) snapshotChange(ctx context.Context, e *PageEvent, o index.Options) (index.Change, error) {
	url := e.URL
	if o.Accept != nil {
		var ok bool
		if url, ok = o.Accept(url); !ok {
			return index.Change{}, nil
		}
	}
	d, err := c.stores.Crawl.Get(ctx, e.URL)
	if errors.Is(err, crawldb.ErrNotFound) {
		return index.Change{URL: url}, nil
	}
	if err != nil {
		return index.Change{}, fmt.Errorf("recrawl: %w", err)
	}
	if !index.Deletes(&d, o) {
		return index.Change{}, nil
	}
	return index.Change{URL: url}, nil
}

// changeWriter is an index.Writer that yields what is written.
type changeWriter func(index.Change, error) bool

func (w changeWriter) Write(_ context.Context, d *index.Document) error {
	return w.change(index.Change{URL: d.URL, Document: d})
}

func (w changeWriter) Delete(_ context.Context, url string) error {
	return w.change(index.Change{URL: url})
}

func (w changeWriter) Commit(context.Context) error { return nil }

func (w changeWriter) change(c index.Change) error {
	if !w(c, nil) {
		return errStopped
	}
	return nil
}
