// Package update folds a segment into the crawl db: what became of each visit,
// and what its links give to whom. [Next] decides for one record; [Run] does so
// for all of them, exactly once, whatever dies in between.
package update

import (
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// Options say how records change.
type Options struct {
	// Schedule says when pages are fetched again. Nil means schedule.Default
	// with its defaults.
	Schedule schedule.FetchSchedule
	// Scoring moves importance along the links. Nil means none.
	Scoring scoring.Filter
	// MaxRetries is how many failures in a row make a page gone; zero means 3.
	// (Nutch: db.fetch.retry.max.)
	MaxRetries int
	// NoAdditions adds no record: neither for what is known only by a link nor for
	// a page whose record was deleted while it was fetched. What links give to such a
	// page is lost. (Nutch: db.update.additions.allowed.)
	NoAdditions bool
	// MaxGrowth is how many records links may add to a registered domain for each
	// of its pages that was visited, so that a site without end cannot fill the
	// crawl db: a URL that is new and of a kind that can be made without end (it has
	// a query, or a segment that is a number or looks like a session id, or is the
	// start page of another host of the domain) is left out while the links of the
	// crawl have added as many. It is taken up when a page that links to it is
	// updated later and there is room. The first FreeGrowth of a domain are free, and
	// of the other URLs, which are plain, five times as many. Zero means 10 and 2000,
	// a negative MaxGrowth no bound. Seeds, pages that are visited and what sitemaps
	// name are never left out and do not count, and NutchCompat bounds nothing. What
	// links give to a page that is left out goes to the next visit of its domain.
	MaxGrowth, FreeGrowth int
	// MaxInlinks is how many links to a page count, the best ones; zero means
	// 10,000. (Nutch: db.update.max.inlinks.)
	MaxInlinks int
	// VisitMeta keeps what the last visit said in Meta, under Nutch's names:
	// Content-Type, the media type; nutch.protocol.code, the HTTP status; _rs_, the
	// milliseconds that the answer took; _pst_, Nutch's word for the outcome, such
	// as "notfound(14), lastModified=0: http://example.org/". It costs about a
	// hundred bytes a record. (Nutch: always, the time by http.store.responsetime.)
	VisitMeta bool
	// ParseFailed gives a page that could not be parsed the status
	// db_parse_failed, where it would be db_fetched. Only NutchCompat asks: without
	// it such a page always has that status. (Nutch: parser.delete.failed.parse,
	// with fetcher.parse.)
	ParseFailed bool
	// MaxInterval is the interval above which NutchCompat forgets a page that was
	// fetched, to have it fetched as if it were new. Zero means the Horizon of the
	// schedule, or 90 days. (Nutch: db.fetch.interval.max.)
	MaxInterval time.Duration
	// NutchCompat makes of each record exactly what Nutch's updatedb would, its
	// faults included. Schedule and Scoring have a field of that name too. What
	// differs:
	//
	//   - score, interval and retries begin with those of the fetch list;
	//   - a page that was not parsed counts as not modified;
	//   - signatures survive a redirect or a gone page, so that its return is not
	//     news;
	//   - only what was fetched resets Retries, which wrap at 128 (128 to 255 stand
	//     for -128 to -1);
	//   - intervals above MaxInterval make a page unfetched;
	//   - of too many links the worst are kept;
	//   - a link, like a visit, ends the lease of any segment; a page that was
	//     listed but not visited keeps its lease;
	//   - an older visit is applied like any other;
	//   - outcomes are read in Nutch's way: a 403 is to be tried again, and so is
	//     what a success other than 200 brings;
	//   - validators are Modified as If-Modified-Since, and no ETag;
	//   - VisitMeta is on, and properties of a page are kept under their own names.
	//
	// A segment is applied once all the same.
	NutchCompat bool
	// Hosts keeps for each host whether what sitemaps say of changes was true, which
	// Run counts once for each segment, and believes accordingly
	// ([hostdb.Lastmod]). Nil counts nothing and believes all. NutchCompat does not
	// use it.
	Hosts hostdb.Store
	// Sitemaps says what becomes of sitemaps and of what they say.
	Sitemaps SitemapOptions
	// Sweep is what Run does to all records of the crawl db besides, once the
	// segment is in it; those that the segment visited are left alone, and Scoring,
	// Now and NutchCompat are those here. With NutchCompat it purges, normalizes and
	// filters before that. (Nutch: every updatedb.)
	Sweep SweepOptions
	// SortMemory bounds the memory in which the links are sorted and gathered for a
	// batch, in bytes; zero means 64 MiB. What exceeds it goes to files in TempDir,
	// by default that of the system. What Run takes beside it does not grow with the
	// segment, but for some bytes for each domain that was visited; the garbage
	// collector lets a heap grow to twice what is in use (see runtime/debug).
	SortMemory int
	TempDir    string
	// Now is the time to record; nil means time.Now.
	Now func() time.Time

	now   time.Time // of one run
	clock time.Time // see scoring.Flow
	chunk int       // URLs in one Update
}

func (o Options) withDefaults() Options {
	if o.Schedule == nil {
		o.Schedule = &schedule.Default{NutchCompat: o.NutchCompat}
	}
	if o.Scoring == nil {
		o.Scoring = scoring.Base{}
	}
	if o.MaxRetries <= 0 {
		o.MaxRetries = 3
	}
	if o.MaxGrowth == 0 {
		o.MaxGrowth = 10
	}
	if o.FreeGrowth <= 0 {
		o.FreeGrowth = 2000
	}
	if o.MaxInlinks <= 0 {
		o.MaxInlinks = 10_000
	}
	if o.SortMemory <= 0 {
		o.SortMemory = 64 << 20
	}
	if o.chunk <= 0 {
		o.chunk = chunk
	}
	if o.now.IsZero() {
		if o.Now == nil {
			o.Now = time.Now
		}
		o.now = o.Now()
	}
	return o
}

// Report says what a segment did to the crawl db.
type Report struct {
	// Visits counts the visits, Unvisited the URLs of the fetch list that were
	// not visited, Unparsed the pages with content that no one has parsed.
	Visits, Unvisited, Unparsed int
	// Links counts the links, Targets the pages they lead to.
	Links, Targets int
	// Overgrown counts the targets that were left out by Options.MaxGrowth.
	Overgrown int
	// Damaged counts the domains whose account (records added, visits, what was new)
	// could not be read. It was begun anew.
	Damaged int
	// Sitemaps is what came of what sitemaps say.
	Sitemaps SitemapReport
	// Swept is what Options.Sweep came to.
	Swept SweepReport
	// Resumed says that a run that had died was continued, Already that the
	// segment had been applied before.
	Resumed, Already bool
}

// Job is the name of the progress mark of a segment.
func Job(segment string) string { return "update/" + segment }

// Done reports whether a segment was applied.
func Done(ctx context.Context, crawl crawldb.Store, segment string) (bool, error) {
	cursor, err := crawl.Progress(ctx, Job(segment))
	return cursor == done, err
}

// The cursor of a job is "at" and the key it has reached, "folded" when there is
// but the sweep to do, or "done".
const (
	at     = "at "
	folded = "folded"
	done   = "done"
)

// Run applies a segment that was fetched. The progress mark is written in the
// same step as the records, so a run that died is continued by the next, and
// one that is repeated changes nothing. When it returns without an error, all is
// durable.
//
// A segment that was fetched but not parsed can be applied; its links are not
// there yet, and parsing it later will not add them. Two Runs of a segment at the same time
// would both apply it.
func Run(ctx context.Context, crawl crawldb.Store, segments segment.Store, name string, o Options) (Report, error) {
	r, err := run(ctx, crawl, segments, name, o.withDefaults())
	if err != nil {
		err = fmt.Errorf("update %s: %w", name, err)
	}
	return r, err
}

func run(ctx context.Context, crawl crawldb.Store, segments segment.Store, name string, o Options) (Report, error) {
	var report Report
	cursor, err := crawl.Progress(ctx, Job(name))
	if err != nil {
		return report, err
	}
	if cursor == done {
		report.Already = true
		return report, nil
	}
	if fetched, err := segment.Has[segment.Visit](ctx, segments, name); err != nil {
		return report, err
	} else if !fetched {
		return report, fmt.Errorf("it is not fetched yet: %w", segment.ErrNotFound)
	}
	if o.clock, err = watched(ctx, crawl, o.Scoring, o.NutchCompat, o.now); err != nil {
		return report, err
	}
	before, after := o.sweeps()
	if cursor == "" && before.Asked() {
		if report.Swept, err = Sweep(ctx, crawl, before); err != nil {
			return report, err
		}
	}
	last := done
	if after.Asked() {
		last = folded
	}
	if cursor == folded {
		report.Resumed = true
	} else {
		err := fold(ctx, crawl, segments, name, cursor, last, &report, o)
		if err != nil || last == done {
			return report, err
		}
	}
	if after.Asked() {
		if after.Since, err = firstVisit(ctx, segments, name); err != nil {
			return report, err
		}
		swept, err := Sweep(ctx, crawl, after)
		report.Swept.add(swept)
		if err != nil {
			return report, err
		}
	}
	if err := crawl.Update(ctx, crawldb.Batch{Job: Job(name), Cursor: done}); err != nil {
		return report, err
	}
	return report, crawl.Sync(ctx)
}

// sweeps returns what to do with all records before the segment is folded in, and
// after.
func (o Options) sweeps() (before, after SweepOptions) {
	after = o.Sweep
	after.Scoring, after.Schedule, after.NutchCompat = o.Scoring, o.Schedule, o.NutchCompat
	after.Now, after.clock = func() time.Time { return o.now }, o.clock
	if o.NutchCompat {
		before, after = after, SweepOptions{Orphans: after.Orphans, Scoring: after.Scoring, Schedule: after.Schedule, NutchCompat: true, Now: after.Now, chunk: after.chunk}
		before.Orphans = false
	}
	return before, after
}

// firstVisit returns when the segment made its first visit; the zero time if it
// made none.
func firstVisit(ctx context.Context, s segment.Store, name string) (first time.Time, err error) {
	for v, err := range segment.Records[segment.Visit](ctx, s, name) {
		if err != nil {
			return first, err
		}
		if first.IsZero() || v.Time.Before(first) {
			first = v.Time
		}
	}
	return first, nil
}

func (r *Report) count(in *Input) {
	if len(in.Links) > 0 {
		r.Targets++
	}
}
