package update

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/internal/places"
	"github.com/recrawl/recrawl/segment"
)

// A batch has at most this many URLs, and about this many bytes including their
// results, or a quarter of SortMemory if that is less.
const (
	chunk         = 10_000
	maxBatchBytes = 16 << 20
	minBatchBytes = 64 << 10
)

// fold applies the segment from the cursor on, and finally sets the mark to last.
// Everything is durable then.
func fold(ctx context.Context, crawl crawldb.Store, segments segment.Store, name, cursor, last string, report *Report, o Options) error {
	reached, resumed := strings.CutPrefix(cursor, at)
	report.Resumed = resumed
	sites := sites{crawl: crawl, segment: name, o: &o, visits: map[string]*int64{}, damaged: map[string]struct{}{}}
	defer func() { report.Damaged = len(sites.damaged) }()
	from := places.Places{Room: o.SortMemory / 4, AppendKey: crawldb.AppendKey}
	batchBytes := max(min(o.SortMemory/4, maxBatchBytes), minBatchBytes)
	sorter := extsort.New(extsort.Options{MemoryBytes: max(o.SortMemory-from.Room-batchBytes, 1), Dir: o.TempDir})
	defer sorter.Close()
	var counted *tally
	if o.Hosts != nil && !o.NutchCompat {
		counted = &tally{}
	}
	all := segmentSorter{segments: segments, name: name, sorter: sorter, from: &from, counted: counted, sites: &sites, report: report}
	shared, err := all.all(ctx, o.NutchCompat)
	if err != nil {
		return err
	}
	if err := counted.keep(ctx, o.Hosts, name, o.now); err != nil {
		return err
	}
	trust := trust{}
	if counted != nil {
		trust.hosts, trust.entries = o.Hosts, counted.entries
	}

	g := grouper{segment: name, maxLinks: o.MaxInlinks, worst: o.NutchCompat, shared: shared, from: &from}
	f := folding{o: &o, mark: SegmentMark(name), sites: &sites, grouper: &g, trust: trust, batchBytes: batchBytes, report: report}
	if !o.Group.Alone() {
		f.outbox = groups.NewOutbox(o.Group, crawl)
	}
	if !resumed {
		reached = ""
	}
	return crawldb.UpdateAll(ctx, crawl, func(yield func(crawldb.Batch, error) bool) {
		f.yield = yield
		if err := f.run(ctx, sorter, reached); err != nil {
			yield(crawldb.Batch{}, err)
		} else if !f.stopped {
			yield(crawldb.Batch{Marks: crawldb.Mark(SegmentMark(name), last)}, nil)
		}
	})
}

// folding makes batches of what was sorted.
type folding struct {
	o          *Options
	mark       string
	sites      *sites
	grouper    *grouper
	trust      trust
	batchBytes int
	report     *Report
	outbox     *groups.Outbox    // of what is for other groups; nil if the crawl has one group
	key        []byte            // of the current URL; a batch has all up to it
	foreign    string            // the current URL, if it belongs to another group
	marks      map[string]string // to be written with each batch
	// What belongs to the current batch, and to the next once that is
	// requested.
	inputs  []Input
	urls    []string
	changes []change
	records []crawldb.Datum
	yield   func(crawldb.Batch, error) bool
	stopped bool // the caller takes no more batches
}

// run yields batches of what comes after the key that was reached.
func (f *folding) run(ctx context.Context, sorter *extsort.Sorter, reached string) error {
	g := f.grouper
	g.begin()
	var left unvisited
	var host ownHost
	for pair, err := range sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		f.report.Unvisited += left.add(pair)
		if string(pair.Key) <= reached {
			continue
		}
		if len(f.key) == 0 || !bytes.Equal(pair.Key, f.key) {
			if err := f.take(ctx); err != nil || f.stopped {
				return err
			}
			f.key = append(f.key[:0], pair.Key...)
			if f.outbox != nil {
				f.foreign = host.foreign(f.o.Group, g.keys.AppendURL(g.url[:0], f.key))
			}
		}
		if f.foreign != "" {
			err = g.forward(f.outbox, f.foreign, pair.Value)
		} else {
			err = g.add(pair)
		}
		if err != nil {
			return err
		}
	}
	if err := f.take(ctx); err != nil || f.stopped {
		return err
	}
	if len(f.inputs) > 0 || f.outbox != nil && f.outbox.Size() > 0 {
		return f.batch(ctx)
	}
	return nil
}

// take adds the collected URL to the batch, and yields the batch if it is full.
func (f *folding) take(ctx context.Context) (err error) {
	in, ok := f.grouper.last()
	if ok {
		if err := f.believe(ctx, &in); err != nil {
			return err
		}
		f.inputs = append(f.inputs, in)
	}
	if len(f.inputs) < f.o.chunk && f.grouper.size <= f.batchBytes && (f.outbox == nil || f.outbox.Size() <= f.batchBytes) {
		return nil
	}
	err = f.batch(ctx)
	f.grouper.begin()
	return err
}

// believe counts a URL with links, and notes whether its sitemap entry is trusted.
func (f *folding) believe(ctx context.Context, in *Input) (err error) {
	if len(in.Links) > 0 {
		f.report.Targets++
	}
	if in.SitemapEntry != nil {
		if in.Trusted, err = f.trust.believes(ctx, in.URL); err != nil {
			return err
		}
		in.Signals = f.trust.stats
	}
	return nil
}

// batch yields a batch, and counts its effects when the next is requested.
func (f *folding) batch(ctx context.Context) error {
	inputs := f.inputs
	f.urls = f.urls[:0]
	for i := range inputs {
		f.urls = append(f.urls, inputs[i].URL)
	}
	step, err := f.sites.step(ctx, inputs)
	if err != nil {
		return err
	}
	if len(f.changes) < len(inputs) {
		n := max(len(inputs), min(2*len(inputs), f.o.chunk))
		f.changes, f.records = make([]change, n), make([]crawldb.Datum, n)
	}
	var rows map[string]string // for other groups
	if f.outbox != nil {
		if rows, err = f.outbox.Cut(ctx); err != nil {
			return err
		}
	}
	cursor := at + string(f.key)
	f.stopped = !f.yield(crawldb.Batch{
		URLs: f.urls,
		Next: func(i int, old *crawldb.Datum) (d *crawldb.Datum, err error) {
			defer func() {
				if p := recover(); p != nil { // the store names the URL
					d, err = nil, fmt.Errorf("the schedule or the scoring panicked: %v", p)
				}
			}()
			d = step.next(i, old, &f.records[i])
			f.changes[i] = changed(old, d, &inputs[i], f.o)
			return d, nil
		},
		Marks: func() map[string]string {
			marks := step.marks()
			maps.Copy(marks, rows)
			maps.Copy(marks, f.marks)
			if f.mark != "" {
				marks[f.mark] = cursor
			}
			return marks
		},
	}, nil)
	if f.stopped {
		return nil
	}
	f.report.Overgrown += step.overgrown()
	for i := range inputs {
		f.report.Sitemaps.count(f.changes[i])
	}
	f.sites.done(step, cursor)
	f.inputs = f.inputs[:0]
	return nil
}
