// Package update folds a segment into the crawl db: the outcome of each visit becomes a status, a
// next fetch and a signature, and links become new records and scores, exactly once even if the
// process dies in between. It requests nothing and does not decide when a page is due or what a
// link is worth: packages schedule and scoring do. Start with [Next], the pure function for one
// record, and [Run], which applies it to a whole segment.
package update

import (
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
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
	// NoAdditions adds no records, neither for pages known only from links nor for a
	// page whose record was deleted while it was fetched. What links give to such
	// pages is lost. (Nutch: db.update.additions.allowed.)
	NoAdditions bool
	// MaxGrowth is how many records links may add to a registered domain for each of
	// its pages that was visited, so that an endless site cannot fill the crawl db.
	// Beyond that, new URLs of a kind that can be generated without end are left out:
	// those that have a query, or a path segment that is a number or looks like a
	// session id, or are the start page of another host of the domain. They are added
	// when a page that links to them is updated later and there is room. The first
	// FreeGrowth of a domain are free, and five times as many of the other, plain
	// URLs. Zero means 10 and 2000, a negative MaxGrowth no limit. Seeds, visited
	// pages and URLs named by sitemaps are never left out and do not count, and
	// NutchCompat has no limit. What links give to a page that is left out goes to
	// the next visit of its domain.
	MaxGrowth, FreeGrowth int
	// MaxInlinks is how many links to a page count, the best first; zero means
	// 10,000. (Nutch: db.update.max.inlinks.)
	MaxInlinks int
	// VisitMeta keeps facts about the last visit in Meta, under Nutch's names:
	// Content-Type, the media type; nutch.protocol.code, the HTTP status; _rs_, the
	// response time in milliseconds; _pst_, Nutch's word for the outcome, such as
	// "notfound(14), lastModified=0: http://example.org/". It costs about a hundred
	// bytes a record. (Nutch: always, the time by http.store.responsetime.)
	VisitMeta bool
	// ParseFailed gives a page that could not be parsed the status db_parse_failed
	// instead of db_fetched. It matters only with NutchCompat: without that such a
	// page always has this status. (Nutch: parser.delete.failed.parse, with
	// fetcher.parse.)
	ParseFailed bool
	// MaxInterval is the interval above which NutchCompat forgets that a page was
	// fetched, to have it fetched as if it were new. Zero means the Horizon of the
	// schedule, or 90 days. (Nutch: db.fetch.interval.max.)
	MaxInterval time.Duration
	// NutchCompat makes of each record exactly what Nutch's updatedb would, its
	// faults included. Schedule and Scoring have a field of that name too. What
	// differs:
	//
	//   - score, interval and retries begin with those of the fetch list;
	//   - a page that was not parsed counts as not modified;
	//   - signatures survive a redirect or a gone page, so that its return is not a
	//     change;
	//   - only a fetched page resets Retries, which wrap at 128 (128 to 255 stand
	//     for -128 to -1);
	//   - intervals above MaxInterval make a page unfetched;
	//   - of too many links the worst are kept;
	//   - a link, like a visit, ends the lease of any segment; a page that was
	//     listed but not visited keeps its lease;
	//   - an older visit is applied like any other;
	//   - outcomes are read in Nutch's way: a 403 is to be retried, and so is
	//     what a success other than 200 brings;
	//   - the only validator is Modified, as If-Modified-Since: no ETag;
	//   - VisitMeta is on, and properties of a page are kept under their own names.
	//
	// A segment is still applied only once.
	NutchCompat bool
	// Hosts keeps how often each host's sitemaps were right about changes, which Run
	// counts once for each segment and by which it judges new signals
	// ([hostdb.SignalStats]). Nil counts nothing and believes all signals. NutchCompat
	// does not use it.
	Hosts hostdb.Store
	// Sitemaps says how to treat sitemaps and what they say.
	Sitemaps SitemapOptions
	// Group is the group of slots whose crawl db this is. What a segment says of URLs of
	// other groups goes to the outbox, in the same steps. Nil means that the crawl is not
	// divided.
	Group *groups.Member
	// Sweep is what Run also does to all records of the crawl db, once the segment
	// is applied. Records that the segment visited are left alone, and Scoring, Now
	// and NutchCompat are those of these Options. With NutchCompat it purges,
	// normalizes and filters before the segment is applied. (Nutch: every updatedb.)
	Sweep SweepOptions
	// SortMemory limits the memory, in bytes, for sorting links and grouping them
	// for a batch; zero means 64 MiB. What exceeds it goes to files in TempDir, by
	// default the system's. The other memory of Run does not grow with the segment,
	// except for some bytes for each domain visited; the garbage collector lets a
	// heap grow to twice what is in use (see runtime/debug).
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
	// not visited, Unparsed the pages whose content was not parsed.
	Visits, Unvisited, Unparsed int
	// Links counts the links, Targets the pages they lead to.
	Links, Targets int
	// Overgrown counts the targets that were left out by Options.MaxGrowth.
	Overgrown int
	// Damaged counts the domains whose account (records added, visits, what was new)
	// could not be read and was started over.
	Damaged int
	// Sitemaps is what came of what sitemaps said.
	Sitemaps SitemapReport
	// Swept is what Options.Sweep did.
	Swept SweepReport
	// Resumed says that this run resumed one that had died, Already that the
	// segment had been applied before.
	Resumed, Already bool
}

// SegmentMark is the name of the progress mark of a segment.
func SegmentMark(segment string) string { return "update/" + segment }

// Done reports whether a segment was applied.
func Done(ctx context.Context, crawl crawldb.Store, segment string) (bool, error) {
	cursor, err := crawl.Mark(ctx, SegmentMark(segment))
	return cursor == done, err
}

// The cursor of a job is "at" and the key reached, "folded" when only the sweep
// is left, or "done".
const (
	at     = "at "
	folded = "folded"
	done   = "done"
)

// Run applies a fetched segment. The progress mark is written in the same step
// as the records, so the next run resumes one that died, and repeating a run
// changes nothing. When it returns without an error, everything is durable.
//
// A segment that was fetched but not parsed can be applied, but without its links, and
// parsing it later will not add them. Two concurrent Runs of the same segment would both
// apply it.
func Run(ctx context.Context, crawl crawldb.Store, segments segment.Store, name string, o Options) (Report, error) {
	r, err := run(ctx, crawl, segments, name, o.withDefaults())
	if err != nil {
		err = fmt.Errorf("update %s: %w", name, err)
	}
	return r, err
}

func run(ctx context.Context, crawl crawldb.Store, segments segment.Store, name string, o Options) (Report, error) {
	var report Report
	cursor, err := crawl.Mark(ctx, SegmentMark(name))
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
		return report, fmt.Errorf("not fetched yet: %w", segment.ErrNotFound)
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
	if err := crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(SegmentMark(name), done)}); err != nil {
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
