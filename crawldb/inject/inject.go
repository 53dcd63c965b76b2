// Package inject puts seeds into a crawl db: the URLs a crawl starts from. It changes only
// the records of the seeds; normalizing and filtering all records again, or removing gone
// ones (Nutch: -filterNormalizeAll, db.update.purge.404), is done by package update. Start
// with [Run], and read seeds with [Read], [Files] or [URLs].
package inject

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

// Seed is one URL to start from.
type Seed struct {
	URL string
	// Meta are pairs "name=value", white space around name and value left out.
	// Three names are not kept as metadata but have a meaning: nutch.score, the
	// score; nutch.fetchInterval, the seconds between fetches;
	// nutch.fetchInterval.fixed, the same but never adapted. Policies may know
	// more, such as _maxdepth_ for scoring.Depth.
	Meta []string
	// File and Line say where the seed comes from, counting lines from 1; empty
	// and zero if not from a file.
	File string
	Line int

	err error // the seed cannot be read
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
	// Score is the score of seeds that name none; zero means 1. (Nutch:
	// db.score.injected.)
	Score float32
	// Overwrite replaces existing records and forgets everything known about
	// them. (Nutch: inject -overwrite; db.injector.overwrite, which has no
	// effect there.)
	Overwrite bool
	// Update gives existing records the metadata of the seed, and the score and
	// interval it names. (Nutch: inject -update; db.injector.update, which has no
	// effect there.) Overwrite takes precedence.
	Update bool
	// PurgeGone treats a gone record as missing: the seed starts over. (Nutch:
	// db.update.purge.404.)
	PurgeGone bool
	// NutchCompat reads seeds as Nutch does. White space around a name or a value
	// is part of it, so that " nutch.score" is not a score. A pair without "=" or
	// with a malformed number is ignored, instead of the whole seed; a seed
	// without a URL is ignored. An interval may be zero, or negative, which means
	// zero. The length of a seed is not limited. Of several seeds for one URL the
	// last counts, whereas by default each is injected as if in a separate run.
	// With Update, a default score or interval counts as not given, and what
	// policies put into a new record replaces what they keep in the old one.
	NutchCompat bool
	// Now is the time to record; nil means time.Now.
	Now func() time.Time
	// SortMemory limits the bytes of seeds held in memory; zero means 64 MiB. What
	// exceeds it goes to files in TempDir, by default the system's, which are
	// removed afterwards.
	SortMemory int
	TempDir    string
}

// Report says what became of the seeds, with Nutch's names for the counters.
type Report struct {
	// Seeds counts all seeds; New, Merged and Known those that created a record,
	// changed one, or had one already; Duplicate those that named the same URL as
	// another. (New, Merged and Known together: urls_injected_unique_total; Merged
	// and Known: urls_merged_total; these and Duplicate: urls_injected_total.)
	Seeds, New, Merged, Known, Duplicate int
	// Purged counts the gone records that started over. They are in New, too.
	// (urls_purged_404_total.)
	Purged int
	// Filtered and Invalid count those that the rules rejected, and those that
	// are not URLs to crawl or have metadata that cannot be read. Bad names the
	// first hundred of both. (Together: urls_filtered_total.)
	Filtered, Invalid int
	Bad               []BadSeed
}

// Err returns the errors of Bad, joined; nil if no seed was left out.
func (r Report) Err() error {
	errs := make([]error, len(r.Bad))
	for i, b := range r.Bad {
		errs[i] = b
	}
	return errors.Join(errs...)
}

// BadSeed is a seed that was left out, and why.
type BadSeed struct {
	Seed Seed
	Err  error
}

// Error returns file, line, URL and reason, without the user information of the URL.
func (b BadSeed) Error() string {
	switch at := b.Seed; {
	case at.Line > 0 && at.File != "":
		return fmt.Sprintf("inject: %s:%d: %q: %v", at.File, at.Line, clip(withoutPassword(at.URL)), b.Err)
	case at.Line > 0:
		return fmt.Sprintf("inject: line %d: %q: %v", at.Line, clip(withoutPassword(at.URL)), b.Err)
	}
	return fmt.Sprintf("inject: %q: %v", clip(withoutPassword(b.Seed.URL)), b.Err)
}

// Unwrap returns the reason.
func (b BadSeed) Unwrap() error { return b.Err }

// withoutPassword replaces the user information of a URL, which may hold a password.
func withoutPassword(url string) string {
	scheme, rest, ok := strings.Cut(url, "//")
	if !ok {
		return url
	}
	end := strings.IndexAny(rest, "/?#\\")
	if end < 0 {
		end = len(rest)
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		return scheme + "//…" + rest[at:]
	}
	return url
}

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

const maxBad = 100

// Run puts the seeds into the store and syncs it: it reads them all, sorts them,
// and gives them to [crawldb.UpdateAll]. Unusable seeds are counted and named in
// the report and do not affect the others. An error from the sequence ends the run
// before anything is stored; after an error from the store some of the seeds may
// be there, and a second run adds the others.
func Run(ctx context.Context, store crawldb.Store, seeds iter.Seq2[Seed, error], o Options) (Report, error) {
	j := job{o: o, now: time.Now(), sorter: extsort.New(extsort.Options{MemoryBytes: o.SortMemory, Dir: o.TempDir})}
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
	err := j.run(ctx, store, seeds)
	if cerr := j.sorter.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return j.report, fmt.Errorf("inject: %w", err)
	}
	return j.report, nil
}

func (j *job) run(ctx context.Context, store crawldb.Store, seeds iter.Seq2[Seed, error]) error {
	for s, err := range seeds {
		if err != nil {
			return fmt.Errorf("read seeds: %w", err)
		}
		if j.report.Seeds%256 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := j.add(s); err != nil {
			return err
		}
	}
	return crawldb.UpdateAll(ctx, store, j.batches(ctx))
}

type job struct {
	o      Options
	now    time.Time
	usual  time.Duration // the interval of a seed that names none
	report Report
	sorter *extsort.Sorter
	key    []byte
	sorted []byte
}

// rules are the rules that apply.
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

// merge returns the record with a seed merged into it; old is nil if there is none yet. What
// policies keep in the record is theirs: a seed replaces it only by an overwrite.
func (j *job) merge(old *crawldb.Datum, e *entry) *crawldb.Datum {
	if old == nil || j.o.Overwrite {
		return &e.d
	}
	d, meta := *old, e.meta
	scoreGiven, timeGiven := e.scoreGiven, e.timeGiven
	if j.o.NutchCompat {
		meta = e.d.Meta
		scoreGiven, timeGiven = e.d.Score != j.o.Score, e.d.Interval != j.usual
	}
	d.Meta.Merge(meta)
	if !j.o.NutchCompat {
		d.Meta.Set(crawldb.SeedKey, "")
	}
	if scoreGiven {
		scoring.SetScore(&d, e.d.Score)
	}
	if timeGiven {
		d.Interval = e.d.Interval
	}
	d.Priority = schedule.Priority(j.o.Schedule, &d, j.o.Scoring.Priority(&d, d.Score))
	return &d
}
