package update

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

// SweepOptions say what a pass over the whole crawl db does. The zero value asks
// for nothing.
type SweepOptions struct {
	// PurgeGone drops the records of gone pages, PurgeOrphans those of orphans.
	// A page that is linked to again comes back as new. (Nutch:
	// db.update.purge.404, db.update.purge.orphans.)
	PurgeGone, PurgeOrphans bool
	// Normalize brings the URL of each record to its normal form, Filter drops the
	// records whose URLs do not belong to the crawl, both by the Rules in the
	// given Scope. (Nutch: crawldb.url.normalizers, crawldb.url.filters.)
	Normalize, Filter bool
	// Rules are required for Normalize and Filter. Their MaxLength has no effect
	// here.
	Rules *urlfilter.Rules
	// Scope is the scope of the normalizers; empty means urlfilter.CrawlDB.
	// (Nutch: crawldb.url.normalizers.scope.)
	Scope urlfilter.Scope
	// Orphans asks Scoring about each record that no segment touched. (Nutch:
	// always.)
	Orphans bool
	// Scoring decides what becomes of orphans, and how records that are merged
	// share what they have. Nil means none.
	Scoring scoring.Filter
	// Schedule gives changed records their priority. Nil means the priority given
	// by Scoring.
	Schedule schedule.FetchSchedule
	// Since leaves alone pages visited then or later: such a page was not gone
	// before, and is not an orphan. Zero leaves nothing alone.
	Since time.Time
	// NutchCompat does as Nutch does: records on a fetch list are swept, too,
	// and of merged records the one due last stays, while the others are lost
	// with their score.
	NutchCompat bool
	// Now is the current time; nil means time.Now.
	Now func() time.Time

	clock time.Time // see scoring.Flow
	chunk int       // records in one Update
}

// Asked reports whether there is anything to do.
func (o SweepOptions) Asked() bool {
	return o.PurgeGone || o.PurgeOrphans || o.Normalize || o.Filter || o.Orphans
}

// SweepReport says what a sweep did.
type SweepReport struct {
	// Records counts the records that were looked at, Leased those left alone
	// because they are on a fetch list.
	Records, Leased int
	// Gone and Orphans were purged, Filtered were rejected by a filter, and Invalid
	// refused by a normalizer.
	Gone, Orphans, Filtered, Invalid int
	// Moved now have a different URL, and Merged of these found a record there.
	Moved, Merged int
	// Changed were changed by Scoring.
	Changed int
	// Troubled are records for which a rule panicked; the rule was then
	// skipped. Trouble is the first such panic.
	Troubled int
	Trouble  error
	// Resumed says that this sweep resumed one that had died.
	Resumed bool
}

func (r *SweepReport) add(s SweepReport) {
	r.Records += s.Records
	r.Leased += s.Leased
	r.Gone += s.Gone
	r.Orphans += s.Orphans
	r.Filtered += s.Filtered
	r.Invalid += s.Invalid
	r.Moved += s.Moved
	r.Merged += s.Merged
	r.Changed += s.Changed
	r.Troubled += s.Troubled
	r.Trouble = cmp.Or(r.Trouble, s.Trouble)
	r.Resumed = r.Resumed || s.Resumed
}

// mark is the name of the progress mark. A sweep with other options has another.
func (o SweepOptions) mark() string {
	name := []byte("sweep/")
	for i, on := range []bool{o.PurgeGone, o.PurgeOrphans, o.Normalize, o.Filter, o.Orphans, o.NutchCompat} {
		if on {
			name = append(name, "gonfsN"[i])
		}
	}
	return string(name)
}

// Sweep goes over all records of the crawl db, in chunks, each of which is applied
// whole and with its mark: so a sweep that died is resumed by the next one that
// asks for the same, with the time at which it began. A second sweep finds nothing
// to do.
//
// A record whose URL has another normal form moves there, in one step. If there
// is a record already, or several move to one URL, the one visited last stays,
// and of equal ones the first in key order; the others pass on what they have,
// as by Scoring.Distribute and Updated, so that no importance is lost.
//
// Records on a fetch list are left for a later sweep.
//
// If a normalizer refuses a URL, its record is dropped; if a normalizer or filter
// panics, it is kept. (Nutch: a MalformedURLException drops, any other exception
// keeps.)
func Sweep(ctx context.Context, crawl crawldb.Store, o SweepOptions) (SweepReport, error) {
	s, err := newSweep(crawl, o)
	if err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		return s.report, fmt.Errorf("update: sweep: %w", err)
	}
	return s.report, nil
}

type sweep struct {
	o      SweepOptions
	crawl  crawldb.Store
	now    time.Time
	names  urlfilter.Rules // only the normalizers
	admits urlfilter.Rules // only the filters
	report SweepReport
}

func newSweep(crawl crawldb.Store, o SweepOptions) (*sweep, error) {
	s := &sweep{o: o, crawl: crawl}
	if o.Normalize || o.Filter {
		if o.Rules == nil {
			return s, errors.New("SweepOptions.Rules is required to normalize and filter")
		}
		s.names, s.admits = *o.Rules, *o.Rules
		s.names.Filters, s.names.MaxLength = nil, -1
		s.admits.Normalizers, s.admits.MaxLength = nil, -1
	}
	if s.o.Scope == "" {
		s.o.Scope = urlfilter.CrawlDB
	}
	if s.o.Scoring == nil {
		s.o.Scoring = scoring.Base{}
	}
	if s.o.chunk <= 0 {
		s.o.chunk = chunk
	}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	return s, nil
}

func (s *sweep) run(ctx context.Context) error {
	if !s.o.Asked() {
		return nil
	}
	mark := s.o.mark()
	cursor, err := s.crawl.Mark(ctx, mark)
	if err != nil {
		return err
	}
	from, err := s.resume(cursor)
	if err != nil {
		return err
	}
	if (s.o.Orphans || s.o.Normalize) && s.o.clock.IsZero() {
		if s.o.clock, err = watched(ctx, s.crawl, s.o.Scoring, s.o.NutchCompat, s.now); err != nil {
			return err
		}
	}
	var todo []candidate
	flush := func() error {
		if len(todo) == 0 {
			return nil
		}
		err := s.apply(ctx, todo, mark, s.cursor(todo[len(todo)-1].d.URL))
		todo = todo[:0]
		return err
	}
	for d, err := range s.crawl.Scan(ctx, crawldb.Range{From: from}) {
		if err != nil {
			return err
		}
		c := s.judge(d)
		if c.ruled == stays {
			// Most records are as they should be and cost no more than the
			// scan.
			is := s.verdictFor(&c.d, stays)
			if is == leased || is == stays && !(s.o.Orphans && s.rescored(d)) {
				s.count(&slot{verdict: is}, true)
				continue
			}
		}
		if todo = append(todo, c); len(todo) == s.o.chunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if err := s.crawl.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(mark, "")}); err != nil {
		return err
	}
	return s.crawl.Sync(ctx)
}

// cursor is the mark of a sweep that has reached a URL: when it began, and the key to resume from.
func (s *sweep) cursor(reached string) string {
	return strconv.FormatInt(s.now.UnixMilli(), 10) + " " + crawldb.Key(reached) + "\x00"
}

// resume sets when the sweep began, given its mark, and returns the key from which it goes on.
func (s *sweep) resume(cursor string) (from string, err error) {
	began, from, ok := strings.Cut(cursor, " ")
	if !ok {
		s.now = s.o.Now()
		return "", nil
	}
	ms, err := strconv.ParseInt(began, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the mark %q is damaged: %w", cursor, err)
	}
	s.now, s.report.Resumed = time.UnixMilli(ms).UTC(), true
	return from, nil
}

// verdict is what the rules say about a URL, and what was done with its record.
type verdict uint8

const (
	stays verdict = iota
	filtered
	invalid
	gone
	orphan
	moves
	leased
)

// candidate is a record that was found, and what the rules say about its URL.
type candidate struct {
	d       crawldb.Datum
	ruled   verdict
	target  string // where it belongs, if it moves
	missing bool   // it no longer exists
}

// errMoved says that a record to be moved has changed since it was read.
var errMoved = errors.New("update: a record has changed")

// apply sweeps the records that were found, which may have changed since.
func (s *sweep) apply(ctx context.Context, found []candidate, mark, cursor string) error {
	for {
		err := s.try(ctx, found, mark, cursor)
		if !errors.Is(err, errMoved) {
			return err
		}
		// Somebody else is writing: judge again what has to move.
		for i := range found {
			c := &found[i]
			if c.ruled != moves {
				continue
			}
			d, err := s.crawl.Get(ctx, c.d.URL)
			if c.missing = errors.Is(err, crawldb.ErrNotFound); !c.missing {
				if err != nil {
					return err
				}
				c.d = d
			}
		}
	}
}

// slot is the result for one record; Next fills it, and may do so again.
type slot struct {
	verdict verdict
	merged  int
	changed bool
}

// entry is a URL in a step of a sweep: one that was found, or to which records move.
type entry struct {
	url    string
	found  int   // index of its candidate, or -1
	arrive []int // those of the candidates that move there
}

// entries returns the URLs that a step touches, in key order.
func (s *sweep) entries(found []candidate) []entry {
	entries := make([]entry, len(found), len(found)+16)
	for i := range found {
		entries[i] = entry{url: found[i].d.URL, found: i}
	}
	at := map[string]int{} // the entries of targets
	for i := range found {
		c := &found[i]
		if c.ruled != moves || c.missing || s.verdictFor(&c.d, moves) != moves {
			continue
		}
		k, ok := at[c.target]
		if !ok {
			k, ok = slices.BinarySearchFunc(entries[:len(found)], c.target, func(e entry, u string) int { return crawldb.Compare(e.url, u) })
			if !ok {
				k = len(entries)
				entries = append(entries, entry{url: c.target, found: -1})
			}
			at[c.target] = k
		}
		entries[k].arrive = append(entries[k].arrive, i)
	}
	if len(entries) > len(found) {
		slices.SortFunc(entries, func(a, b entry) int { return crawldb.Compare(a.url, b.url) })
	}
	return entries
}

// try applies the judgements in one step.
func (s *sweep) try(ctx context.Context, found []candidate, mark, cursor string) error {
	entries := s.entries(found)
	urls := make([]string, len(entries))
	for i := range entries {
		urls[i] = entries[i].url
	}
	slots := make([]slot, len(entries))
	last := found[len(found)-1].d.URL
	err := s.crawl.Update(ctx, crawldb.Batch{URLs: urls, Marks: crawldb.Mark(mark, cursor), Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		e := &entries[i]
		slots[i] = slot{}
		ruled := stays
		if e.found >= 0 {
			c := &found[e.found]
			if ruled = c.ruled; ruled == moves && (c.missing != (old == nil) || old != nil && !same(old, &c.d)) {
				return nil, errMoved
			}
		}
		d := old
		if old != nil {
			slots[i].verdict = s.verdictFor(old, ruled)
			if is := slots[i].verdict; is != stays && is != leased {
				d = nil
			}
		}
		for _, j := range e.arrive {
			if d != nil {
				slots[i].merged++
			}
			d = s.mergeAt(d, &found[j].d, e.url)
		}
		// The scan will reach it later and score it then.
		if slots[i].verdict != leased && crawldb.Compare(e.url, last) <= 0 {
			d = s.scored(d, e.url)
		}
		slots[i].changed = len(e.arrive) == 0 && d != nil && d != old
		return d, nil
	}})
	if err != nil {
		return err
	}
	for i := range slots {
		s.count(&slots[i], entries[i].found >= 0)
	}
	return nil
}

func (s *sweep) count(c *slot, found bool) {
	r := &s.report
	r.Merged += c.merged
	if found {
		r.Records++
	} else if c.verdict == leased {
		return // counted when the scan reaches it
	}
	switch c.verdict {
	case filtered:
		r.Filtered++
	case invalid:
		r.Invalid++
	case gone:
		r.Gone++
	case orphan:
		r.Orphans++
	case moves:
		r.Moved++
	case leased:
		r.Leased++
	}
	if c.changed {
		r.Changed++
	}
}

// judge applies the rules to the URL of a record.
func (s *sweep) judge(d crawldb.Datum) candidate {
	c := candidate{d: d, target: d.URL}
	if s.o.Normalize {
		u, err := s.ask(s.names.Apply, d.URL)
		switch {
		case errors.Is(err, errRule):
		case err != nil:
			c.ruled = invalid
			return c
		default:
			c.target = u
		}
	}
	if c.target != d.URL {
		c.ruled = moves
	}
	if s.o.Filter {
		admits := s.admits.Apply
		if _, marked := crawldb.SitemapOf(d.Meta); marked {
			admits = s.admits.ApplySitemap
		}
		if _, err := s.ask(admits, c.target); err != nil && !errors.Is(err, errRule) {
			c.ruled = filtered
		}
	}
	return c
}

// errRule says that a rule panicked.
var errRule = errors.New("a rule panicked")

func (s *sweep) ask(apply func(urlfilter.Scope, string) (string, error), url string) (target string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w over %q: %v", errRule, url, p)
			if s.report.Troubled++; s.report.Trouble == nil {
				s.report.Trouble = err
			}
		}
	}()
	return apply(s.o.Scope, url)
}

// verdictFor returns what happens to an existing record, given the rules' verdict on
// its URL.
func (s *sweep) verdictFor(d *crawldb.Datum, ruled verdict) verdict {
	purges := s.o.Since.IsZero() || d.LastFetch.Before(s.o.Since)
	switch {
	case !s.o.NutchCompat && d.Leased(s.now):
		return leased
	case purges && s.o.PurgeGone && d.Status == crawldb.Gone:
		return gone
	case purges && s.o.PurgeOrphans && d.Status == crawldb.Orphan:
		return orphan
	}
	return ruled
}

// scored returns the record after Scoring, under a URL: old itself if nothing
// changes. old may be nil.
func (s *sweep) scored(old *crawldb.Datum, url string) *crawldb.Datum {
	if old == nil {
		return nil
	}
	d := *old
	d.URL = url
	if s.o.Orphans && (s.o.Since.IsZero() || d.LastFetch.Before(s.o.Since)) {
		s.o.Scoring.Orphaned(&d, s.o.clock)
		d.Priority = priority(s.o.Schedule, s.o.Scoring, &d)
	}
	if d.URL == old.URL && same(old, &d) {
		return old
	}
	return &d
}

// rescored reports whether Scoring changes a record.
func (s *sweep) rescored(d crawldb.Datum) bool { return s.scored(&d, d.URL) != &d }

// mergeAt merges the record at a URL with one that moves there; either may be nil.
func (s *sweep) mergeAt(a, b *crawldb.Datum, url string) *crawldb.Datum {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	if s.o.NutchCompat {
		if b.FetchTime.After(a.FetchTime) {
			return b
		}
		return a
	}
	until, by := a.LeasedUntil, a.LeasedBy
	if c := cmp.Or(b.LastFetch.Compare(a.LastFetch), b.FetchTime.Compare(a.FetchTime)); c > 0 {
		a, b = b, a
	}
	// As if the other redirected to it.
	links := []scoring.Link{{From: b.URL, URL: url}}
	gave := s.o.Scoring.Distribute(scoring.Page{Datum: b, Found: 1}, links)
	d := *a
	d.LeasedUntil, d.LeasedBy = until, by
	if gave != 0 {
		s.o.Scoring.Updated(a, &d, scoring.Flow{In: links, Time: s.now, Clock: s.o.clock})
	}
	d.Priority = priority(s.o.Schedule, s.o.Scoring, &d)
	return &d
}

// same reports whether two records have the same encoding.
func same(a, b *crawldb.Datum) bool {
	x, err := a.AppendBinary(nil)
	y, err2 := b.AppendBinary(nil)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
