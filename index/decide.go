package index

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// Switch is a setting that is on, off, or the default.
type Switch uint8

const (
	Default Switch = iota
	On
	Off
)

// SwitchOf returns On or Off.
func SwitchOf(on bool) Switch {
	if on {
		return On
	}
	return Off
}

// on reports whether it is on, given its default.
func (s Switch) on(byDefault bool) bool { return s == On || s == Default && byDefault }

// input is what is known of one page: its record, and what one segment has of
// it. All but Visit may be nil.
type input struct {
	Record *crawldb.Datum
	Visit  *segment.Visit
	Text   *segment.Text
	Data   *segment.Data
	Parse  *segment.Parse
}

// decision says what happens to a page in the index, and why.
type decision uint8

const (
	// add writes a document.
	add decision = iota + 1
	// older consults the next older segment with a visit to the page.
	older
	// leave leaves the index as it is: there is nothing to change, or deletions
	// are switched off.
	leave
	// leaveUnparsed: there is content, but it was not parsed.
	leaveUnparsed
	// leaveNotModified: the content is what it was. (Nutch:
	// indexer.skip.notmodified.)
	leaveNotModified
	// The others delete the document: because the page is gone, redirects, has the
	// content of another page, the original, is linked from nowhere, could not be
	// parsed, or asks not to be indexed.
	deleteGone
	deleteRedirect
	deleteDuplicate
	deleteOrphan
	deleteFailedParse
	deleteNoIndex
)

// deletes reports whether the document is deleted.
func (d decision) deletes() bool { return d >= deleteGone }

// decide says what happens to a page, as the table of [Run] has it.
func decide(in input, o Options) decision {
	if o.NutchCompat {
		return decideAsNutch(in, o)
	}
	if d := decideByVisit(in, o); o.allows(d, true) {
		return d
	}
	return leave
}

// allows reports whether the switches, given their default, allow what was decided.
func (o *Options) allows(d decision, byDefault bool) bool {
	switch d {
	case deleteGone, deleteRedirect, deleteDuplicate, deleteOrphan:
		return o.DeleteGone.on(byDefault)
	case deleteFailedParse:
		return o.DeleteFailedParse.on(byDefault)
	}
	return true
}

// Deletes reports whether the record alone says that its page is to be deleted from an index.
func Deletes(d *crawldb.Datum, o Options) bool {
	byRecord := decideByRecord(d)
	return byRecord.deletes() && o.allows(byRecord, !o.NutchCompat)
}

func decideByVisit(in input, o Options) decision {
	rec, v := in.Record, in.Visit
	if rec != nil && rec.IsSitemap() || in.Parse != nil && in.Parse.Sitemap {
		return leave // it is not a page
	}
	if d := decideByRecord(rec); d != add {
		return d
	}
	code := v.Outcome.Code
	switch {
	case o.older(code):
		return older
	case code != protocol.Success && v.Time.Before(rec.LastFetch):
		return leave // the time has passed
	case code.Redirect():
		return deleteRedirect
	case code != protocol.Success:
		return deleteGone
	case in.Parse != nil && in.Parse.Error != "":
		return deleteFailedParse
	case in.Data == nil:
		return leaveUnparsed
	case o.DeleteRobotsNoIndex.on(true) && !in.Data.Parsed.Indexable(later(v.Time, rec.LastFetch)):
		return deleteNoIndex
	case o.SkipNotModified && rec.Status == crawldb.NotModified:
		return leaveNotModified
	}
	return add
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// decideByRecord returns add for a record whose page exists.
func decideByRecord(rec *crawldb.Datum) decision {
	if rec == nil {
		return deleteGone
	}
	switch rec.Status {
	case crawldb.Fetched, crawldb.NotModified, crawldb.Unfetched:
		return add
	case crawldb.RedirTemp, crawldb.RedirPerm:
		return deleteRedirect
	case crawldb.Duplicate:
		return deleteDuplicate
	case crawldb.Orphan:
		return deleteOrphan
	case crawldb.ParseFailed:
		return deleteFailedParse
	}
	return deleteGone
}

// decideAsNutch makes Nutch's checks in Nutch's order.
func decideAsNutch(in input, o Options) decision {
	code := in.Visit.Outcome.Code
	fetched := !o.older(code) // else Nutch drops the fetch datum
	failed := code == protocol.Success && in.Parse != nil && in.Parse.Error != ""
	gone := !code.Redirect() && !code.Transient() && code != protocol.Success
	var status crawldb.Status // none
	if in.Record != nil {
		status = in.Record.Status
	}
	wantsGone := o.DeleteGone.on(false)
	switch {
	case o.DeleteRobotsNoIndex.on(false) && in.Data != nil && in.Data.Parsed.NoIndex:
		return deleteNoIndex
	case !fetched:
		return older
	case o.DeleteFailedParse.on(false) && (failed || status == crawldb.ParseFailed):
		return deleteFailedParse
	case wantsGone && (gone || status == crawldb.Gone):
		return deleteGone
	case wantsGone && (code.Redirect() || status == crawldb.RedirTemp || status == crawldb.RedirPerm):
		return deleteRedirect
	case in.Text == nil || in.Data == nil:
		if code == protocol.Success && !failed {
			return leaveUnparsed
		}
		return leave
	case wantsGone && status == crawldb.Duplicate:
		return deleteDuplicate
	case o.SkipNotModified && status == crawldb.NotModified:
		return leaveNotModified
	case failed || code != protocol.Success:
		return leave
	}
	return add
}
