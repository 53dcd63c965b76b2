// Package inject puts seeds into a crawl db: the URLs a crawl starts from.
//
// It touches only the records that seeds name. To pass over the others, to
// normalize and filter them anew or to remove what is gone (Nutch:
// -filterNormalizeAll, db.update.purge.404), is for package update.
package inject

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

// Seed is one URL to start from.
type Seed struct {
	URL string
	// Meta are pairs "name=value", white space around name and value left out.
	// Three names are not kept as metadata but mean something: nutch.score, the
	// score; nutch.fetchInterval, the seconds between fetches;
	// nutch.fetchInterval.fixed, the same and never to be adapted. Policies may
	// know more, such as _maxdepth_ for scoring.Depth.
	Meta []string
	// File and Line say where the seed stands, from line 1; empty and zero if it
	// is from none.
	File string
	Line int
}

// Options say how seeds become records. The zero value takes every seed as it
// is and makes it due at once.
type Options struct {
	// Rules normalize and filter the seeds, in the scope urlfilter.Inject. Nil
	// takes them as they are.
	Rules *urlfilter.Rules
	// NoNormalize and NoFilter take seeds without the normalizers or the filters
	// of Rules. (Nutch: inject -noNormalize, -noFilter.)
	NoNormalize, NoFilter bool
	// Schedule sets the first interval. Nil means schedule.Default with its
	// defaults. (Nutch: db.fetch.interval.default.)
	Schedule schedule.FetchSchedule
	// Scoring sees every new record. Nil means none.
	Scoring scoring.Filter
	// Score is the score of a seed that names none; zero means 1. (Nutch:
	// db.score.injected.)
	Score float32
	// Overwrite replaces records that exist and forgets all that is known of
	// them. (Nutch: inject -overwrite; db.injector.overwrite, which has no
	// effect there.)
	Overwrite bool
	// Update gives records that exist the metadata of the seed, and the score and
	// interval it names. (Nutch: inject -update; db.injector.update, which has no
	// effect there.) Overwrite goes first.
	Update bool
	// PurgeGone takes a record that is gone for none: the seed begins anew.
	// (Nutch: db.update.purge.404.)
	PurgeGone bool
	// NutchCompat reads seeds as Nutch does. White space around a name or a value
	// is part of it, so that " nutch.score" is no score; a pair without "=" is
	// ignored, and so is a number that cannot be read, instead of the seed; a
	// seed without a URL is no seed. An interval may be zero, or negative, which
	// is taken for zero. The length of a seed is not bounded. Of several seeds
	// for one URL the last counts, where by default each is injected as if it
	// were a run of its own. With Update, a score or interval that is the default
	// one is taken for none, and what policies put into a new record replaces
	// what they keep in the old one.
	NutchCompat bool
	// Now is the time to record; nil means time.Now.
	Now func() time.Time
}

// Report says what became of the seeds, with Nutch's names of the counters.
type Report struct {
	// Seeds counts all; New, Merged and Known those that made a record, changed
	// one, or had one already; Duplicate those that named the same URL as another.
	// (New, Merged and Known together: urls_injected_unique_total; Merged and
	// Known: urls_merged_total; these and Duplicate: urls_injected_total.)
	Seeds, New, Merged, Known, Duplicate int
	// Purged counts the records that were gone and began anew. They are in New,
	// too. (urls_purged_404_total.)
	Purged int
	// Filtered and Invalid count those that the rules rejected, and those that
	// are not URLs to crawl or have metadata that cannot be read. Bad names the
	// first hundred of both. (Together: urls_filtered_total.)
	Filtered, Invalid int
	Bad               []Bad
}

// Bad is a seed that was left out, and why.
type Bad struct {
	Seed Seed
	Err  error
}

// Error returns file, line, URL and reason.
func (b Bad) Error() string {
	switch at := b.Seed; {
	case at.Line > 0 && at.File != "":
		return fmt.Sprintf("inject: %s:%d: %q: %v", at.File, at.Line, clip(at.URL), b.Err)
	case at.Line > 0:
		return fmt.Sprintf("inject: line %d: %q: %v", at.Line, clip(at.URL), b.Err)
	}
	return fmt.Sprintf("inject: %q: %v", clip(b.Seed.URL), b.Err)
}

// Unwrap returns the reason.
func (b Bad) Unwrap() error { return b.Err }

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

const (
	chunk  = 20_000
	maxBad = 100
)

// Run puts the seeds into the store and syncs it. Seeds that cannot be used are
// counted and named in the report and do no harm to the others; an error of the
// sequence or the store ends the run, and what was put in before stays.
func Run(ctx context.Context, store crawldb.Store, seeds iter.Seq2[Seed, error], o Options) (Report, error) {
	j := job{store: store, o: o, now: time.Now()}
	if o.Now != nil {
		j.now = o.Now()
	}
	if j.o.Schedule == nil {
		j.o.Schedule = &schedule.Default{}
	}
	if j.o.Scoring == nil {
		j.o.Scoring = scoring.Base{}
	}
	if j.o.Score == 0 {
		j.o.Score = 1
	}
	j.o.Rules = j.o.rules()
	j.usual = j.o.Schedule.Init(crawldb.Datum{Status: crawldb.Unfetched}, j.now).Interval
	for s, err := range seeds {
		if err != nil {
			return j.report, fmt.Errorf("inject: read seeds: %w", err)
		}
		j.add(s)
		// For Nutch the last of equal seeds counts, so all have to be there.
		if len(j.chunk) == chunk && !o.NutchCompat {
			if err := j.flush(ctx); err != nil {
				return j.report, err
			}
		}
	}
	if err := j.flush(ctx); err != nil {
		return j.report, err
	}
	if err := store.Sync(ctx); err != nil {
		return j.report, fmt.Errorf("inject: %w", err)
	}
	return j.report, nil
}

type job struct {
	store  crawldb.Store
	o      Options
	now    time.Time
	usual  time.Duration // the interval of a seed that names none
	report Report
	chunk  []entry
}

// rules are what is left of the rules.
func (o *Options) rules() *urlfilter.Rules {
	if o.Rules == nil || !o.NoNormalize && !o.NoFilter && !o.NutchCompat {
		return o.Rules
	}
	r := *o.Rules
	if o.NoNormalize {
		r.Normalizers = nil
	}
	if o.NoFilter {
		r.Filters = nil
	}
	if o.NutchCompat {
		r.MaxLength = -1
	}
	return &r
}

// entry is a seed as a record, and what of it the seed itself asked for.
type entry struct {
	d                     crawldb.Datum
	meta                  crawldb.Meta
	scoreGiven, timeGiven bool
}

func (j *job) add(s Seed) {
	if j.o.NutchCompat && strings.TrimSpace(s.URL) == "" {
		return
	}
	j.report.Seeds++
	e, err := j.entry(s)
	switch {
	case err == nil:
		j.chunk = append(j.chunk, e)
		return
	case errors.Is(err, urlfilter.ErrRejected):
		j.report.Filtered++
	default:
		j.report.Invalid++
	}
	if len(j.report.Bad) < maxBad {
		j.report.Bad = append(j.report.Bad, Bad{s, err})
	}
}

func (j *job) entry(s Seed) (entry, error) {
	url := strings.TrimSpace(s.URL)
	if url == "" {
		return entry{}, errNoURL
	}
	if j.o.Rules != nil {
		u, err := j.o.Rules.Apply(urlfilter.Inject, url)
		if err != nil {
			return entry{}, err
		}
		url = u
	}
	e := entry{d: crawldb.Datum{URL: url, Status: crawldb.Unfetched, Score: j.o.Score}}
	read := e.read
	if j.o.NutchCompat {
		read = e.nutchRead
	}
	if err := read(s.Meta); err != nil {
		return e, err
	}
	e.d.Meta = e.meta
	given := e.d.Interval
	e.d = j.o.Schedule.Init(e.d, j.now)
	if e.timeGiven && j.o.NutchCompat {
		e.d.Interval = given
	}
	j.o.Scoring.Injected(&e.d)
	e.d.Priority = j.o.Scoring.Priority(&e.d, e.d.Score)
	return e, nil
}

func (j *job) flush(ctx context.Context) error {
	// Stable, so that equal URLs are applied in the order they came in, each as if
	// it were a run of its own.
	slices.SortStableFunc(j.chunk, func(a, b entry) int { return crawldb.Compare(a.d.URL, b.d.URL) })
	var urls []string
	var first []int // where the seeds of each URL begin
	for i := range j.chunk {
		u := j.chunk[i].d.URL
		if n := len(urls); n > 0 && urls[n-1] == u {
			j.report.Duplicate++
			continue
		}
		urls, first = append(urls, u), append(first, i)
	}
	first = append(first, len(j.chunk))
	for len(urls) > 0 {
		n := min(len(urls), chunk)
		if err := j.put(ctx, urls[:n], first[:n+1]); err != nil {
			return err
		}
		urls, first = urls[n:], first[n:]
	}
	j.chunk = j.chunk[:0]
	return nil
}

// put merges the seeds of some URLs into their records; those of the i-th are in
// the chunk from first[i] to first[i+1].
func (j *job) put(ctx context.Context, urls []string, first []int) error {
	const (
		isNew = iota
		isMerged
		isKnown
	)
	outcome, purged := make([]int, len(urls)), make([]bool, len(urls))
	err := j.store.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		purged[i] = old != nil && j.o.PurgeGone && old.Status == crawldb.Gone
		if purged[i] {
			old = nil
		}
		switch {
		case old == nil:
			outcome[i] = isNew
		case j.o.Overwrite || j.o.Update:
			outcome[i] = isMerged
		default:
			outcome[i] = isKnown
		}
		d, k := old, first[i]
		if j.o.NutchCompat {
			k = first[i+1] - 1
		}
		for ; k < first[i+1]; k++ {
			d = j.merge(d, &j.chunk[k])
		}
		return d, nil
	}})
	if err != nil {
		return fmt.Errorf("inject: %w", err)
	}
	for i, o := range outcome {
		if purged[i] {
			j.report.Purged++
		}
		switch o {
		case isNew:
			j.report.New++
		case isMerged:
			j.report.Merged++
		case isKnown:
			j.report.Known++
		}
	}
	return nil
}

// merge returns what a seed makes of a record. What policies keep in the record
// is theirs: a seed replaces it only by an overwrite.
func (j *job) merge(old *crawldb.Datum, e *entry) *crawldb.Datum {
	switch {
	case old == nil || j.o.Overwrite:
		return &e.d
	case !j.o.Update:
		return old
	}
	d, meta := *old, e.meta
	scoreGiven, timeGiven := e.scoreGiven, e.timeGiven
	if j.o.NutchCompat {
		meta = e.d.Meta
		scoreGiven, timeGiven = e.d.Score != j.o.Score, e.d.Interval != j.usual
	}
	for name, value := range meta.All() {
		d.Meta.Set(name, value)
	}
	if scoreGiven {
		scoring.SetScore(&d, e.d.Score)
	}
	if timeGiven {
		d.Interval = e.d.Interval
	}
	d.Priority = j.o.Scoring.Priority(&d, d.Score)
	return &d
}
