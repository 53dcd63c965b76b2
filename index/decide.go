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

// Input is what is known of one page: its record, and what one segment has of
// it. All but Visit may be nil.
type Input struct {
	Record *crawldb.Datum
	Visit  *segment.Visit
	Text   *segment.Text
	Data   *segment.Data
	Parse  *segment.Parse
}

// Decision says what happens to a page in the index, and why.
type Decision uint8

const (
	// Add writes a document.
	Add Decision = iota + 1
	// Older consults the next older segment with a visit to the page.
	Older
	// Leave leaves the index as it is: there is nothing to change, or deletions
	// are switched off.
	Leave
	// LeaveUnparsed: there is content, but it was not parsed.
	LeaveUnparsed
	// LeaveNotModified: the content is what it was. (Nutch:
	// indexer.skip.notmodified.)
	LeaveNotModified
	// The others delete the document: because the page is gone, redirects, has the
	// content of a page with a better claim, is linked from nowhere, could not be
	// parsed, or asks not to be indexed.
	DeleteGone
	DeleteRedirect
	DeleteDuplicate
	DeleteOrphan
	DeleteFailedParse
	DeleteNoIndex
)

// Deletes reports whether the document is deleted.
func (d Decision) Deletes() bool { return d >= DeleteGone }

// Decide says what happens to a page. It is a pure function. By default the
// record decides whether the page exists at all:
//
//	record                   visit                        decision
//	none, db_gone            any                          DeleteGone
//	db_redir_*               any                          DeleteRedirect
//	db_duplicate             any                          DeleteDuplicate
//	db_orphan                any                          DeleteOrphan
//	db_parse_failed          any                          DeleteFailedParse
//	another                  not modified, failed for now Older
//	another, visited since   gone, redirect               Leave
//	another                  gone                         DeleteGone
//	another                  redirect                     DeleteRedirect
//	another                  success, not parsable        DeleteFailedParse
//	another                  success, not parsed          LeaveUnparsed
//	another                  success, asks not to be      DeleteNoIndex
//	db_notmodified           success                      Add, or LeaveNotModified if that is wanted
//	another                  success                      Add
//
// A deletion that is switched off becomes Leave, except that a page that asks not
// to be indexed is then indexed. A page that asks for this from some time on
// counts as asking if it was visited after that, modified or not.
//
// With NutchCompat the rules are those of Nutch's indexer, in its order: see
// [Options].
func Decide(in Input, o Options) Decision {
	if o.NutchCompat {
		return decideAsNutch(in, o)
	}
	d := decide(in, o)
	on := true
	switch d {
	case DeleteGone, DeleteRedirect, DeleteDuplicate, DeleteOrphan:
		on = o.DeleteGone.on(true)
	case DeleteFailedParse:
		on = o.DeleteFailedParse.on(true)
	}
	if !on {
		return Leave
	}
	return d
}

func decide(in Input, o Options) Decision {
	rec, v := in.Record, in.Visit
	if rec != nil && rec.IsSitemap() || in.Parse != nil && in.Parse.Sitemap {
		return Leave // it is not a page
	}
	if d := decideByRecord(rec); d != Add {
		return d
	}
	code := v.Outcome.Code
	switch {
	case o.older(code):
		return Older
	case code != protocol.Success && v.Time.Before(rec.LastFetch):
		return Leave // the time has passed
	case code.Redirect():
		return DeleteRedirect
	case code != protocol.Success:
		return DeleteGone
	case in.Parse != nil && in.Parse.Error != "":
		return DeleteFailedParse
	case in.Data == nil:
		return LeaveUnparsed
	case o.DeleteRobotsNoIndex.on(true) && !in.Data.Parsed.Indexable(later(v.Time, rec.LastFetch)):
		return DeleteNoIndex
	case o.SkipNotModified && rec.Status == crawldb.NotModified:
		return LeaveNotModified
	}
	return Add
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// decideByRecord returns Add for a record whose page exists.
func decideByRecord(rec *crawldb.Datum) Decision {
	if rec == nil {
		return DeleteGone
	}
	switch rec.Status {
	case crawldb.Fetched, crawldb.NotModified, crawldb.Unfetched:
		return Add
	case crawldb.RedirTemp, crawldb.RedirPerm:
		return DeleteRedirect
	case crawldb.Duplicate:
		return DeleteDuplicate
	case crawldb.Orphan:
		return DeleteOrphan
	case crawldb.ParseFailed:
		return DeleteFailedParse
	}
	return DeleteGone
}

// decideAsNutch makes Nutch's checks in Nutch's order.
func decideAsNutch(in Input, o Options) Decision {
	code := in.Visit.Outcome.Code
	fetched := !o.older(code) // else Nutch drops the fetch datum
	failed := code == protocol.Success && in.Parse != nil && in.Parse.Error != ""
	gone := !code.Redirect() && !code.Transient() && code != protocol.Success
	var status crawldb.Status // none
	if in.Record != nil {
		status = in.Record.Status
	}
	deleteGone := o.DeleteGone.on(false)
	switch {
	case o.DeleteRobotsNoIndex.on(false) && in.Data != nil && in.Data.Parsed.NoIndex:
		return DeleteNoIndex
	case !fetched:
		return Older
	case o.DeleteFailedParse.on(false) && (failed || status == crawldb.ParseFailed):
		return DeleteFailedParse
	case deleteGone && (gone || status == crawldb.Gone):
		return DeleteGone
	case deleteGone && (code.Redirect() || status == crawldb.RedirTemp || status == crawldb.RedirPerm):
		return DeleteRedirect
	case in.Text == nil || in.Data == nil:
		if code == protocol.Success && !failed {
			return LeaveUnparsed
		}
		return Leave
	case deleteGone && status == crawldb.Duplicate:
		return DeleteDuplicate
	case o.SkipNotModified && status == crawldb.NotModified:
		return LeaveNotModified
	case failed || code != protocol.Success:
		return Leave
	}
	return Add
}
