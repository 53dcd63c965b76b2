package update

import (
	"bytes"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/nutchvisit"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// Input is what one segment knows of one URL.
type Input struct {
	URL string
	// Segment names the segment, whose lease on the record ends.
	Segment string
	// Listed is the record as the fetch list has it; nil if it is not on the list.
	// Only NutchCompat looks at it.
	Listed *crawldb.Datum
	// Visit is how the visit ended; nil if none was made.
	Visit *segment.Visit
	// Parse is what was parsed; nil if nothing was, or not yet. Its Links are
	// not used here.
	Parse *segment.Parse
	// Links are what other pages give to this one, best first.
	Links []scoring.Link
	// Sitemap marks the URL as that of a sitemap, merged from all links in the
	// segment; nil if none does. SitemapEntry is what sitemaps say of the page; nil if
	// nothing. Trusted says that the signals of its host are believed, Signals how
	// often they were true.
	Sitemap      *crawldb.Sitemap
	SitemapEntry *crawldb.SitemapEntry
	Trusted      bool
	Signals      hostdb.SignalStats
	// Shared is this page's part of what the segment gave away and no link
	// received: see scoring.Flow.
	Shared float64

	gave bool // a page that links to this one gave cash away
}

// Next is the heart of the crawl: it applies one segment to one record. It is a
// pure function. old is nil if there is no record, and is not changed; the
// result is nil if there should be none, and old itself if it stays as it is.
//
// The visit decides:
//
//	outcome                     status          schedule    signature, validators
//	success, other signature    db_fetched      changed     new
//	success, same signature     db_notmodified  unchanged   same
//	success, nothing to compare db_fetched      unknown     new; none if neither parsed nor signed
//	success, not parsable       db_parse_failed gone        none
//	not_modified                db_notmodified  unchanged   kept, but for validators that it brought
//	moved_perm, moved_temp      db_redir_*      unknown     none
//	not_found, gone, denied,
//	robots_denied, refused      db_gone         gone        none
//	busy, failed                db_unfetched    retry       kept
//	the same, MaxRetries times  db_gone         gone        none
//	robots_failed, skipped      unchanged       later       kept
//
// A page that has come back gets the interval of a new one, unless its own is shorter: that
// grew with each visit that found nothing.
//
// The schedule decides what "later" means, unless a skipped visit says when the host
// may be asked again (Outcome.RetryAfter), and that is not beyond its horizon; a refused
// one that says so is due by then. What sitemaps say comes last. A mark makes the record
// one of a sitemap, read at its own interval. A signal that the page has changed since its
// last visit, if its host is trusted, makes it due at once, or at the end of the day if
// only the day is given; a visit that finds such a signal false leaves interval and next
// fetch as they were. A schedule that knows what a signal is worth (schedule.Signalled)
// moves the next fetch by that instead.
//
// What the page says of itself (segment.Parse.Meta) is kept in Meta under "page." and
// the name, until a visit finds it gone. A visit older than the record's last one
// changes nothing but the lease, unless that one lies in the future because a clock
// was wrong. Links alone create a new record (db_unfetched), or add to its score.
func Next(old *crawldb.Datum, in Input, o Options) *crawldb.Datum {
	o = o.withDefaults()
	return next(old, &in, &o, new(crawldb.Datum))
}

// next is Next for options with their defaults filled in. It builds the record in d,
// and changes nothing else.
func next(old *crawldb.Datum, in *Input, o *Options, d *crawldb.Datum) *crawldb.Datum {
	visit := in.Visit
	switch {
	case visit == nil:
	case o.NutchCompat:
		if visit.Outcome.Code.Deferred() { // Nutch's fetcher writes nothing
			visit = nil
		}
	case old != nil && visit.Time.Before(old.LastFetch) && !old.LastFetch.After(o.now):
		visit = nil
	}
	flow := scoring.Flow{In: in.Links, Shared: in.Shared, Time: o.now, Clock: o.clock, Visited: visit != nil}
	if in.Parse != nil {
		flow.Gave = in.Parse.Gave
	}
	if visit != nil {
		flow.Time = visit.Time
	}
	if o.NutchCompat {
		return applySitemapEntryCompat(old, nutchNext(old, in, flow, o), in, o)
	}

	switch {
	case old != nil:
		*d = *old
		if d.LeasedBy == in.Segment {
			d.LeasedUntil, d.LeasedBy = time.Time{}, ""
		}
		if visit == nil && len(in.Links) == 0 && flow.Gave == 0 && flow.Shared == 0 {
			if hinted := applySitemapEntry(d, in, o); !hinted && old.LeasedBy != in.Segment {
				return old
			}
			d.Priority = o.priority(d)
			return d
		}
	case visit == nil && len(in.Links) == 0 && in.Sitemap == nil && in.SitemapEntry == nil, o.NoAdditions:
		return nil
	default:
		*d = crawldb.Datum{URL: in.URL, Status: crawldb.Unfetched}
		if len(in.Links) > 0 {
			d.Meta = in.Links[0].Meta
		}
		born(d, in, o)
		*d = o.Schedule.Init(*d, o.now)
		o.Scoring.Discovered(d)
	}
	if visit != nil {
		*d = applyVisit(*d, visit, in.Parse, o)
	}
	applySitemapEntry(d, in, o)
	o.Scoring.Updated(old, d, flow)
	d.Priority = o.priority(d)
	return d
}

// maxPutOff limits how long a page waits for its host.
const maxPutOff = 30 * 24 * time.Hour

// applyVisit applies a visit to a record.
func applyVisit(d crawldb.Datum, v *segment.Visit, p *segment.Parse, o *Options) crawldb.Datum {
	code := v.Outcome.Code
	if code.Deferred() { // no request for the page was sent
		retries := d.Retries
		d = o.Schedule.Retry(d, schedule.Visit{Time: v.Time, PrevFetch: d.LastFetch, PrevModified: d.Modified, Skipped: true})
		d.Retries = retries
		if after := v.Outcome.RetryAfter; code == protocol.Skipped && after > 0 {
			// The fetch knows when the host may be asked again: within its hours, or
			// on a new day. A time that the schedule takes for the mistake of a clock
			// would make the page due at once, and be no pause at all.
			later := d.FetchTime
			if ahead, _ := schedule.Horizon(o.Schedule); ahead > 0 {
				after = min(after, ahead)
			}
			d.FetchTime = v.Time.Add(min(after, maxPutOff))
			if o.Schedule.Due(&d, v.Time) {
				d.FetchTime = later
			}
		}
		return d
	}
	sv := schedule.Visit{
		Time: v.Time, PrevFetch: d.LastFetch, PrevModified: d.Modified,
		Modified: v.Modified, ContentType: v.ContentType,
	}
	d.LastFetch = v.Time
	if code == protocol.Success {
		setSitemapInterval(&d, p, o)
	}
	if o.VisitMeta {
		nutchvisit.Note(&d.Meta, v, false)
	}
	switch {
	case code == protocol.Success && p != nil && p.Error != "":
		forget(&d)
		d.Status = crawldb.ParseFailed
		d.Retries = 0
		return o.Schedule.Gone(d, sv)

	case code == protocol.Success:
		return applyContent(d, v, p, sv, o)

	case code == protocol.NotModified:
		d.Status = crawldb.NotModified
		sv.Change = schedule.Unchanged
		if v.ETag != "" {
			d.ETag = v.ETag
		}
		if v.LastModified != "" {
			d.LastModified = v.LastModified
		}
		return fetched(d, sv, o)

	case code.Redirect():
		forget(&d)
		d.Status = crawldb.RedirTemp
		if code == protocol.MovedPerm {
			d.Status = crawldb.RedirPerm
		}
		return o.Schedule.Fetched(d, sv)

	case code.Transient():
		d.Status = crawldb.Unfetched
		d = o.Schedule.Retry(d, sv)
		if d.Retries < o.MaxRetries {
			return d
		}

	case code.Asked(): // an answer ends a series of failures
		d.Retries = 0
	}
	forget(&d)
	d.Status = crawldb.Gone
	d = o.Schedule.Gone(d, sv)
	if after := v.Outcome.RetryAfter; code == protocol.Refused && after > 0 {
		// The host seems to be down for good: the page is due when the host may be asked again.
		if at := v.Time.Add(min(after, maxPutOff)); at.Before(d.FetchTime) {
			d.FetchTime = at
		}
	}
	return d
}

// applyContent applies a visit that brought content which could be parsed, or was not to be.
func applyContent(d crawldb.Datum, v *segment.Visit, p *segment.Parse, sv schedule.Visit, o *Options) crawldb.Datum {
	sum := v.Signature
	if p != nil {
		sum = p.Signature
		properties(&d.Meta, p.Meta)
	}
	if d.Status == crawldb.Gone || d.Status == crawldb.ParseFailed {
		// Its interval has grown while the page was gone, and a schedule that keeps intervals
		// would keep that one forever.
		d.Interval = min(d.Interval, o.Schedule.Init(crawldb.Datum{URL: d.URL, Meta: d.Meta}, v.Time).Interval)
	}
	d.Status = crawldb.Fetched
	switch {
	case sum == nil || d.Signature == nil:
		sv.Change = schedule.Unknown
	case bytes.Equal(sum, d.Signature):
		sv.Change = schedule.Unchanged
		d.Status = crawldb.NotModified
	default:
		sv.Change = schedule.Changed
	}
	d.Signature, d.ETag, d.LastModified = sum, v.ETag, v.LastModified
	return fetched(d, sv, o)
}

// pagePrefix begins the names of what a page says about itself, so that this
// cannot set anything else.
const pagePrefix = "page."

// properties keeps what a page says about itself, and drops what it said
// before.
func properties(m *crawldb.Meta, said crawldb.Meta) {
	for name := range m.All() {
		if of, ok := strings.CutPrefix(name, pagePrefix); ok {
			if _, ok := said.Get(of); !ok {
				m.Delete(name)
			}
		}
	}
	var pairs []string
	for name, value := range said.All() {
		pairs = append(pairs, pagePrefix+name, value)
	}
	m.SetAll(pairs...)
}

// fetched asks the schedule about a visit that brought content or news of it.
// Content that is the same counts as not modified, whatever the schedule makes
// of it. A visit made because of a signal that turned out to be false counts as
// if it had not been made: the page is due when it was before.
func fetched(d crawldb.Datum, sv schedule.Visit, o *Options) crawldb.Datum {
	due, interval := planned(&d), d.Interval
	d = o.Schedule.Fetched(d, sv)
	if sv.Change == schedule.Unchanged && due.After(sv.Time) {
		d.Interval, d.FetchTime = interval, due
	}
	if sv.Change == schedule.Unchanged && !sv.PrevModified.After(sv.Time) {
		d.Modified = sv.PrevModified
	}
	return d
}

// forget drops what is known about the content: if it comes back, that is a
// change.
func forget(d *crawldb.Datum) {
	planned(d)
	d.Signature, d.ETag, d.LastModified = nil, "", ""
}
