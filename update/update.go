// Package update folds a segment into the crawl db: what became of each visit,
// and what its links give to whom. [Next] decides for one record; [Run] does so
// for all of them, exactly once, whatever dies in between.
package update

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/internal/nutchvisit"
	"github.com/recrawl/recrawl/protocol"
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
	// SortMemory bounds the memory in which the links are sorted, in bytes; zero
	// means 64 MiB. What exceeds it goes to files in TempDir, by default that of
	// the system.
	SortMemory int
	TempDir    string
	// Now is the time to record; nil means time.Now.
	Now func() time.Time

	now   time.Time // of one run
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

const chunk = 10_000

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
// there yet, and parsing it later will not add them.
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
	before, after := o.sweeps()
	if cursor == "" && before.Asked() {
		if report.Swept, err = Sweep(ctx, crawl, before); err != nil {
			return report, err
		}
	}
	if cursor == folded {
		report.Resumed = true
	} else if err := fold(ctx, crawl, segments, name, cursor, &report, o); err != nil {
		return report, err
	}
	if after.Asked() {
		if cursor != folded {
			if err := crawl.Update(ctx, crawldb.Batch{Job: Job(name), Cursor: folded}); err != nil {
				return report, err
			}
		}
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
	after.Scoring, after.NutchCompat = o.Scoring, o.NutchCompat
	after.Now = func() time.Time { return o.now }
	if o.NutchCompat {
		before, after = after, SweepOptions{Orphans: after.Orphans, Scoring: after.Scoring, NutchCompat: true, Now: after.Now, chunk: after.chunk}
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

// fold applies the segment from where the cursor says on.
func fold(ctx context.Context, crawl crawldb.Store, segments segment.Store, name, cursor string, report *Report, o Options) error {
	reached, resumed := strings.CutPrefix(cursor, at)
	report.Resumed = resumed
	sites := sites{crawl: crawl, segment: name, o: &o, visits: map[string]int64{}, damaged: map[string]struct{}{}}
	defer func() { report.Damaged = len(sites.damaged) }()
	sorter := extsort.New(extsort.Options{MemoryBytes: o.SortMemory, Dir: o.TempDir})
	defer sorter.Close()
	var counted *tally
	if o.Hosts != nil && !o.NutchCompat {
		counted = &tally{}
	}
	shared, err := sortSegment(ctx, segments, name, o.NutchCompat, sorter, counted, report, &sites)
	if err != nil {
		return err
	}
	if err := counted.keep(ctx, o.Hosts, name); err != nil {
		return err
	}
	trust := trust{}
	if counted != nil {
		trust.hosts, trust.claims = o.Hosts, counted.hints
	}

	inputs := make([]Input, 0, o.chunk)
	changes := make([]change, o.chunk)
	flush := func() error {
		urls := make([]string, len(inputs))
		for i := range inputs {
			urls[i] = inputs[i].URL
		}
		step, err := sites.step(ctx, inputs)
		if err != nil {
			return err
		}
		err = crawl.Update(ctx, crawldb.Batch{
			URLs: urls,
			Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
				d := step.next(i, old)
				changes[i] = changed(old, d, inputs[i], o)
				return d, nil
			},
			Job: Job(name), Cursor: at + crawldb.Key(urls[len(urls)-1]),
			Marks: step.marks,
		})
		if err != nil {
			return err
		}
		report.Overgrown += step.overgrown()
		for i := range inputs {
			report.Sitemaps.count(changes[i])
		}
		inputs = inputs[:0]
		return nil
	}
	g := grouper{segment: name, maxLinks: o.MaxInlinks, worst: o.NutchCompat, shared: shared}
	var left unvisited
	for pair, err := range sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		report.Unvisited += left.add(pair)
		if resumed && string(pair.Key) <= reached {
			continue
		}
		in, full, err := g.add(pair)
		if err != nil {
			return err
		}
		if !full {
			continue
		}
		report.count(in)
		if in.Hint != nil {
			if in.Trusted, err = trust.believes(ctx, in.URL); err != nil {
				return err
			}
		}
		if inputs = append(inputs, in); len(inputs) == o.chunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if in, ok := g.last(); ok {
		report.count(in)
		if in.Hint != nil {
			if in.Trusted, err = trust.believes(ctx, in.URL); err != nil {
				return err
			}
		}
		inputs = append(inputs, in)
	}
	if len(inputs) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) count(in Input) {
	if len(in.Links) > 0 {
		r.Targets++
	}
}

// What the sorter holds under the key of a URL. The kinds sort in this order.
const (
	kindListed = 'g'
	kindLink   = 'l'
	kindParse  = 'p'
	kindVisit  = 'v'
)

// sortSegment puts all that a segment says of any URL under the key of that
// URL. What comes out is a pure function of the segment. The records of the fetch
// list are among it if whole, else only that they are listed. It returns what
// each visit gets of the gifts that no link received.
func sortSegment(ctx context.Context, s segment.Store, name string, whole bool, sorter *extsort.Sorter, counted *tally, report *Report, sites *sites) (shared float64, err error) {
	var key, value []byte
	add := func(url string) error {
		key = crawldb.AppendKey(key[:0], url)
		return sorter.Add(key, value)
	}
	for d, err := range segment.Records[crawldb.Datum](ctx, s, name) {
		if err != nil {
			return 0, err
		}
		counted.listed(&d)
		value = append(value[:0], kindListed)
		if whole {
			if _, err := segment.Unmark(&d); err != nil { // of the list, not of the record
				return 0, err
			}
			if value, err = segment.AppendRecord(value, &d); err != nil {
				return 0, err
			}
		}
		if err := add(d.URL); err != nil {
			return 0, err
		}
	}
	success := 0
	for v, err := range segment.Records[segment.Visit](ctx, s, name) {
		if err != nil {
			return 0, err
		}
		report.Visits++
		counted.visited(&v)
		sites.visit(&v)
		if v.ContentType != "" && v.Outcome.Code == protocol.Success {
			success++
		}
		if value, err = segment.AppendRecord(append(value[:0], kindVisit), &v); err != nil {
			return 0, err
		}
		if err := add(v.URL); err != nil {
			return 0, err
		}
	}
	parsed, err := segment.Has[segment.Parse](ctx, s, name)
	if err != nil {
		return 0, err
	}
	if !parsed {
		report.Unparsed = success
		return 0, nil
	}
	var gifts pot
	for p, err := range segment.Records[segment.Parse](ctx, s, name) {
		if err != nil {
			return 0, err
		}
		if p.Signature != nil || p.Error != "" {
			success--
		}
		counted.parsed(&p)
		gifts.add(&p)
		links := p.Links
		p.Links = nil
		if value, err = segment.AppendRecord(append(value[:0], kindParse), &p); err != nil {
			return 0, err
		}
		if err := add(p.URL); err != nil {
			return 0, err
		}
		report.Links += len(links)
		for _, l := range links {
			counted.linked(&l)
			value = binary.BigEndian.AppendUint64(append(value[:0], kindLink), math.Float64bits(l.Score))
			meta := l.Meta.Encoded()
			head := uint64(len(meta)) << 1
			if p.Gave > 0 {
				head |= 1
			}
			value = binary.AppendUvarint(value, head)
			value = append(append(value, meta...), p.URL...)
			if err := add(l.URL); err != nil {
				return 0, err
			}
		}
	}
	report.Unparsed = success
	return gifts.share(report.Visits), nil
}

// unvisited counts the URLs of the list without a visit. There are visits besides,
// of pages that a fetch was led to.
type unvisited struct {
	key  []byte
	open bool // that key is listed, and no visit was seen
}

// add returns what the next pair changes.
func (u *unvisited) add(pair extsort.Pair) int {
	if len(pair.Value) == 0 {
		return 0
	}
	switch kind := pair.Value[0]; {
	case kind == kindListed && !(u.open && bytes.Equal(u.key, pair.Key)):
		u.key, u.open = append(u.key[:0], pair.Key...), true
		return 1
	case kind == kindVisit && u.open && bytes.Equal(u.key, pair.Key):
		u.open = false
		return -1
	}
	return 0
}

// grouper gathers the sorted pairs of one URL.
type grouper struct {
	segment  string
	maxLinks int
	worst    bool    // of too many links the worst are kept
	shared   float64 // what a visit gets of gifts to no one
	key      []byte
	in       Input
	some     bool
}

var errSorted = errors.New("update: sorted data is damaged")

// add takes the next pair and returns the input before it once that is full.
func (g *grouper) add(pair extsort.Pair) (in Input, full bool, err error) {
	if !g.some || !bytes.Equal(pair.Key, g.key) {
		in, full = g.last()
		g.key = append(g.key[:0], pair.Key...)
		g.in, g.some = Input{URL: crawldb.URLOf(string(pair.Key)), Segment: g.segment}, true
	}
	if len(pair.Value) == 0 {
		return in, full, errSorted
	}
	kind, value := pair.Value[0], pair.Value[1:]
	switch kind {
	case kindListed:
		if len(value) == 0 {
			break
		}
		d, err := segment.DecodeRecord[crawldb.Datum](value)
		if err != nil {
			return in, full, err
		}
		g.in.Listed = &d
	case kindVisit:
		v, err := segment.DecodeRecord[segment.Visit](value)
		if err != nil {
			return in, full, err
		}
		// Of several visits in one segment the latest counts.
		if g.in.Visit == nil || !v.Time.Before(g.in.Visit.Time) {
			g.in.Visit = &v
		}
		g.in.Shared += g.shared
	case kindParse:
		p, err := segment.DecodeRecord[segment.Parse](value)
		if err != nil {
			return in, full, err
		}
		g.in.Parse = &p
	case kindLink:
		if len(value) < 8 {
			return in, full, errSorted
		}
		n, size := binary.Uvarint(value[8:])
		rest, gave := value[8+max(size, 0):], n&1 != 0
		n >>= 1
		if size <= 0 || n > uint64(len(rest)) {
			return in, full, errSorted
		}
		meta, err := crawldb.DecodeMeta(string(rest[:n]))
		if err != nil {
			return in, full, errSorted
		}
		link := scoring.Link{
			From: string(rest[n:]), URL: g.in.URL, Meta: meta,
			Score: math.Float64frombits(binary.BigEndian.Uint64(value)),
		}
		if g.in.told(meta) && link.Score == 0 {
			break // that is all it is for
		}
		g.in.gave = g.in.gave || gave
		g.in.Links = append(g.in.Links, link)
		if len(g.in.Links) >= 2*g.maxLinks+1000 {
			g.best()
		}
	default:
		return in, full, errSorted
	}
	return in, full, nil
}

// best orders the links, best first, and drops what is too much: of the worst, or
// in Nutch's way of the best. Of equal ones Nutch meets those first that are in the
// larger of its files. As a rule that is what its parser wrote, and not the
// redirects of its fetcher, which have metadata of the visit.
func (g *grouper) best() {
	slices.SortFunc(g.in.Links, func(a, b scoring.Link) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		if g.worst {
			if x, y := nutchvisit.Noted(a.Meta), nutchvisit.Noted(b.Meta); x != y {
				if y {
					return -1
				}
				return 1
			}
		}
		return crawldb.Compare(a.From, b.From) // dear, and seldom needed
	})
	if over := len(g.in.Links) - g.maxLinks; over > 0 && g.worst {
		g.in.Links = g.in.Links[over:]
	} else if over > 0 {
		g.in.Links = g.in.Links[:g.maxLinks]
	}
}

// last returns what was gathered.
func (g *grouper) last() (Input, bool) {
	if !g.some {
		return Input{}, false
	}
	g.best()
	g.some = false
	return g.in, true
}
