package update

import (
	"bytes"
	"net/http"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/nutchvisit"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
)

// This file is Nutch's state machine, that of its CrawlDbReducer. Where it
// looks odd, Nutch's is odd. Otherwise the comment of Next applies: it is pure,
// and nil and old have the same meaning.
//
// Nutch folds a copy of the record that was made when the page was selected,
// and merely consults the current record: so score, interval and retries start
// with those of the fetch list.

func nutchNext(old *crawldb.Datum, in *Input, flow scoring.Flow, o *Options) *crawldb.Datum {
	var d crawldb.Datum
	switch {
	case old == nil && o.NoAdditions:
		return nil
	case flow.Visited:
		d = nutchVisited(old, in, o)
	case len(in.Links) > 0 && old != nil:
		d = *old
	case len(in.Links) > 0:
		best := in.Links[0]
		d = crawldb.Datum{URL: in.URL, Status: crawldb.Unfetched, Score: float32(best.Score), Meta: best.Meta}
		d = o.Schedule.Init(d, o.now)
		o.Scoring.Discovered(&d)
	case old == nil:
		return nil
	case flow.Gave == 0 && flow.Shared == 0:
		return old // and it keeps its lease
	default:
		d = *old
		o.Scoring.Updated(old, &d, flow)
		d.Priority = o.priority(&d)
		return &d
	}
	d.LeasedUntil, d.LeasedBy = time.Time{}, "" // whichever segment holds it
	o.Scoring.Updated(old, &d, flow)
	d.Priority = o.priority(&d)
	return &d
}

// nutchVisited applies a visit.
func nutchVisited(old *crawldb.Datum, in *Input, o *Options) crawldb.Datum {
	v := in.Visit
	d := nutchListed(old, in, o)
	listed := d.Modified
	sum := d.Signature // of the page as it was: content that was not parsed looks the same
	switch {
	case in.Parse != nil && in.Parse.Signature != nil:
		sum = in.Parse.Signature
	case v.Signature != nil:
		sum = v.Signature
	}
	nutchvisit.Note(&d.Meta, v, true)
	sv := schedule.Visit{Time: v.Time, PrevFetch: d.LastFetch, PrevModified: listed, Modified: v.Modified, ContentType: v.ContentType}
	if old != nil {
		d.Meta = overlay(old.Meta, d.Meta)
		if nutchTime(old.Modified) && !nutchTime(d.Modified) {
			d.Modified = old.Modified
		}
		sv.PrevFetch = old.LastFetch
	}
	d.LastFetch, d.FetchTime = v.Time, v.Time

	kind := nutchvisit.Of(v).Fetch
	parseFailed := kind == nutchvisit.Success && o.ParseFailed && in.Parse != nil && in.Parse.Error != ""
	if kind == nutchvisit.Retry || kind == nutchvisit.Gone || parseFailed {
		d = nutchFailed(d, old, sv, kind, parseFailed, o)
	} else {
		d = nutchFetched(d, old, in, sv, kind, sum, o)
	}
	// Nutch's requests carry the time from which it takes the content to be,
	// and no ETag.
	d.ETag, d.LastModified = "", ""
	if nutchTime(d.Modified) {
		d.LastModified = d.Modified.UTC().Format(http.TimeFormat)
	}
	return d
}

// nutchListed returns the record as it is in the fetch list.
func nutchListed(old *crawldb.Datum, in *Input, o *Options) crawldb.Datum {
	var d crawldb.Datum
	switch {
	case in.Listed != nil:
		d = *in.Listed
	case in.Visit.Via != "": // the fetcher has made it a separate record
		for _, l := range in.Links {
			if l.From == in.Visit.Via && nutchvisit.Noted(l.Meta) { // not the link that its parser created
				d.Score, d.Meta = float32(l.Score), l.Meta
				break
			}
		}
		d.URL = in.URL
		d = o.Schedule.Init(d, in.Visit.Time)
		o.Scoring.Discovered(&d)
	case old != nil:
		d = *old
	default:
		d = o.Schedule.Init(crawldb.Datum{}, in.Visit.Time)
	}
	d.URL = in.URL
	return d
}

// nutchFailed applies a visit that failed, now or for good, or whose content could not
// be parsed.
func nutchFailed(d crawldb.Datum, old *crawldb.Datum, sv schedule.Visit, kind nutchvisit.Fetch, parseFailed bool, o *Options) crawldb.Datum {
	if old != nil {
		d.Signature = old.Signature
	}
	if kind == nutchvisit.Retry {
		d.Status = crawldb.Unfetched
		d = o.Schedule.Retry(d, sv)
		if int(int8(d.Retries)) < o.MaxRetries {
			return d
		}
	}
	if d.Status = crawldb.Gone; parseFailed {
		d.Status = crawldb.ParseFailed
	}
	return o.Schedule.Gone(d, sv)
}

// nutchFetched applies a visit that brought a page, a redirect or the news that nothing
// has changed.
func nutchFetched(d crawldb.Datum, old *crawldb.Datum, in *Input, sv schedule.Visit, kind nutchvisit.Fetch, sum []byte, o *Options) crawldb.Datum {
	if in.Parse != nil {
		d.Meta = overlay(d.Meta, in.Parse.Meta)
	}
	switch {
	case kind == nutchvisit.NotModified:
		sv.Change = schedule.Unchanged
	case kind != nutchvisit.Success || old == nil || old.Signature == nil || sum == nil:
		sv.Change = schedule.Unknown
	case bytes.Equal(sum, old.Signature):
		sv.Change = schedule.Unchanged
	default:
		sv.Change = schedule.Changed
	}
	d = o.Schedule.Fetched(d, sv)
	switch {
	case sv.Change == schedule.Unchanged:
		d.Status, d.Modified = crawldb.NotModified, time.Time{}
		if old != nil {
			d.Modified, d.Signature = old.Modified, old.Signature
		}
	case kind == nutchvisit.RedirTemp:
		d.Status, d.Signature = crawldb.RedirTemp, sum
	case kind == nutchvisit.RedirPerm:
		d.Status, d.Signature = crawldb.RedirPerm, sum
	default:
		d.Status, d.Signature = crawldb.Fetched, sum
	}
	if d.Interval > o.maxInterval() {
		next := d.FetchTime
		d = o.Schedule.Force(d, in.Visit.Time)
		d.FetchTime = next
	}
	return d
}

// maxInterval is Nutch's db.fetch.interval.max.
func (o *Options) maxInterval() time.Duration {
	if o.MaxInterval > 0 {
		return o.MaxInterval
	}
	if ahead, ok := schedule.Horizon(o.Schedule); ok && ahead > 0 {
		return ahead
	}
	return 90 * 24 * time.Hour
}

// nutchTime reports whether a time is known to Nutch, where zero means unknown.
func nutchTime(t time.Time) bool { return t.UnixMilli() > 0 }

// overlay returns the pairs of both; those of the second win.
func overlay(under, over crawldb.Meta) crawldb.Meta {
	if over.Len() == 0 {
		return under
	}
	for n, v := range over.All() {
		under.Set(n, v)
	}
	return under
}
