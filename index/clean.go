package index

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl/crawldb"
)

// CleanOptions say what [Clean] deletes.
type CleanOptions struct {
	// NutchCompat deletes pages that are db_gone or db_duplicate only. (Nutch:
	// CleaningJob.)
	NutchCompat bool
	// NoCommit leaves the Commit to the caller. (Nutch: -noCommit.)
	NoCommit bool
}

// CleanReport counts what [Clean] deleted, by the status of the record.
type CleanReport struct {
	Deleted map[crawldb.Status]int
}

// Total returns how many deletions there were.
func (r *CleanReport) Total() int {
	n := 0
	for _, c := range r.Deleted {
		n += c
	}
	return n
}

// Clean deletes the documents of all pages in the crawl db that are not there any
// more or should not be found: those that are gone, redirect, are duplicates or
// orphans, or could not be parsed. It needs no segments, so it finds pages whose
// segments were removed before they were marked, which Run cannot. It commits if
// there was anything to delete.
//
// A document is deleted under the URL of its record. So Clean is not for an index in
// which Options.Accept has changed URLs: another page, one that is there, may have
// become the document of a URL that is gone.
func Clean(ctx context.Context, crawl crawldb.Store, w Writer, o CleanOptions) (CleanReport, error) {
	r := CleanReport{Deleted: map[crawldb.Status]int{}}
	err := clean(ctx, crawl, w, o, r.Deleted)
	if err != nil {
		err = fmt.Errorf("index: clean: %w", err)
	}
	return r, err
}

func clean(ctx context.Context, crawl crawldb.Store, w Writer, o CleanOptions, deleted map[crawldb.Status]int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for d, err := range crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		dead := decideByRecord(&d).deletes()
		if o.NutchCompat {
			dead = d.Status == crawldb.Gone || d.Status == crawldb.Duplicate
		}
		if !dead {
			continue
		}
		if err := w.Delete(ctx, d.URL); err != nil {
			return err
		}
		deleted[d.Status]++
	}
	if len(deleted) == 0 || o.NoCommit {
		return nil
	}
	return w.Commit(ctx)
}
