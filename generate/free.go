package generate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// Free makes one segment of the given URLs, in any order, each once. It does not
// change the crawl db, which learns of them only when the segment is fetched and
// updated. Nothing is leased, and the same URL may be on another list.
//
// Of the options Rules (in the scope urlfilter.Inject), NoFilter, NoNormalize,
// Known, Scoring, Schedule, By, Hosts, HostDelay, Lists, Partition, Seed, Lookup,
// Taken, Now and NutchCompat count. The report has no segment if there was no URL that
// could be used. (Nutch: freegen.)
func Free(ctx context.Context, segments segment.Store, urls iter.Seq2[string, error], o Options) (Report, error) {
	o.HostLimit, o.MaxPerHost, o.TopN = nil, 0, 0
	j := newJob(nil, segments, o)
	err := j.free(ctx, urls)
	if err == nil {
		return j.report, nil
	}
	clean, done := grace.Context(ctx)
	defer done()
	for _, m := range j.makes {
		m.leases.Close()
		if e := segments.Remove(clean, m.name); e != nil {
			err = errors.Join(err, e)
		}
	}
	j.report.Segments, j.report.Selected = nil, 0
	return j.report, fmt.Errorf("generate: %w", err)
}

func (j *job) free(ctx context.Context, urls iter.Seq2[string, error]) error {
	filter := j.o.Scoring
	if filter == nil {
		filter = scoring.Base{}
	}
	var list []crawldb.Datum
	seen := map[string]struct{}{}
	for url, err := range urls {
		if err != nil {
			return err
		}
		normal, why := j.freeURL(url)
		if why != "" {
			j.report.Rejected[why]++
			continue
		}
		if _, ok := seen[normal]; ok {
			continue
		}
		seen[normal] = struct{}{}
		d, ok, err := j.recordOf(ctx, normal)
		if err != nil {
			return err
		}
		if !ok {
			d = j.o.Schedule.Init(crawldb.Datum{URL: normal, Status: crawldb.Unfetched}, j.now)
			filter.Injected(&d)
			d.Priority = filter.Priority(&d, d.Score)
		}
		list = append(list, d)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	if err := j.open(ctx, 0); err != nil {
		return err
	}
	m := j.makes[0]
	m.list = list
	// A note beside a complete list is durable.
	if err := m.leases.Sync(ctx); err != nil {
		return err
	}
	if err := j.write(ctx, m); err != nil {
		return err
	}
	j.makes = nil // complete: not to be cleaned up
	j.report.Segments, j.report.Selected = []string{m.name}, len(m.list)
	return m.leases.Close()
}

// recordOf returns the record, for a fetch list, of a URL that Options.Known has.
func (j *job) recordOf(ctx context.Context, url string) (d crawldb.Datum, ok bool, err error) {
	if j.o.Known == nil || j.o.NutchCompat {
		return d, false, nil
	}
	d, err = j.o.Known.Get(ctx, url)
	if errors.Is(err, crawldb.ErrNotFound) {
		return d, false, nil
	}
	d.ETag, d.LastModified = "", ""
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	return d, true, err
}

// freeURL returns the normal form of a URL, or why it cannot be used.
func (j *job) freeURL(url string) (string, Reason) {
	switch r := j.o.Rules; {
	case r == nil:
	case !j.o.NoFilter && !j.o.NoNormalize:
		u, err := r.Apply(urlfilter.Inject, url)
		if errors.Is(err, urlfilter.ErrRejected) {
			return "", URLFilters
		}
		if err != nil {
			return "", Malformed
		}
		url = u
	case !j.o.NoFilter:
		if !accepted(r, url) {
			return "", URLFilters
		}
	case !j.o.NoNormalize:
		u, ok := j.spelling(urlfilter.Inject, url)
		if !ok {
			return "", Malformed
		}
		url = u
	}
	raw := *j
	raw.o.Rules = nil
	if _, ok := raw.spelling(urlfilter.Inject, url); !ok {
		return "", Malformed
	}
	return url, ""
}
