package index

import (
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

var start = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// pageInput is a page with a status and the outcome of a visit; what was parsed is
// one of "text", "noindex", "failed" and nothing.
func pageInput(status crawldb.Status, code protocol.Code, parsed string) input {
	in := input{Visit: &segment.Visit{Time: start, Outcome: protocol.Outcome{Code: code}}}
	if status != 0 {
		in.Record = &crawldb.Datum{Status: status}
	}
	switch parsed {
	case "text", "noindex":
		in.Text, in.Data, in.Parse = &segment.Text{}, &segment.Data{Parsed: page.Parsed{Directives: page.Directives{NoIndex: parsed == "noindex"}}}, &segment.Parse{}
	case "failed":
		in.Parse = &segment.Parse{Error: "no PDF"}
	}
	return in
}

func TestDecide(t *testing.T) {
	const none = crawldb.Status(0)
	all := Options{DeleteGone: On, DeleteRobotsNoIndex: On, DeleteFailedParse: On, SkipNotModified: true}
	off := Options{DeleteGone: Off, DeleteRobotsNoIndex: Off, DeleteFailedParse: Off}
	for _, c := range []struct {
		status crawldb.Status
		code   protocol.Code
		parsed string
		// By default; with all switches on, and off; in Nutch by default, and with
		// all switches on.
		zero, on, off, nutch, nutchOn decision
	}{
		{crawldb.Fetched, protocol.Success, "text", add, add, add, add, add},
		{crawldb.Unfetched, protocol.Success, "text", add, add, add, add, add},
		{crawldb.NotModified, protocol.Success, "text", add, leaveNotModified, add, add, leaveNotModified},
		{crawldb.Fetched, protocol.Success, "noindex", deleteNoIndex, deleteNoIndex, add, add, deleteNoIndex},
		{crawldb.Fetched, protocol.Success, "", leaveUnparsed, leaveUnparsed, leaveUnparsed, leaveUnparsed, leaveUnparsed},
		{crawldb.Fetched, protocol.Success, "failed", deleteFailedParse, deleteFailedParse, leave, leave, deleteFailedParse},
		// Nutch's TestIndexerMapReduce: no document.
		{crawldb.ParseFailed, protocol.Success, "failed", deleteFailedParse, deleteFailedParse, leave, leave, deleteFailedParse},
		{crawldb.ParseFailed, protocol.Success, "text", deleteFailedParse, deleteFailedParse, leave, add, deleteFailedParse},
		{crawldb.Gone, protocol.NotFound, "", deleteGone, deleteGone, leave, leave, deleteGone},
		{crawldb.Gone, protocol.Failed, "", deleteGone, deleteGone, leave, leave, deleteGone},
		{crawldb.Gone, protocol.Success, "text", deleteGone, deleteGone, leave, add, deleteGone},
		{crawldb.Gone, protocol.Success, "noindex", deleteGone, deleteGone, leave, add, deleteNoIndex},
		{crawldb.Fetched, protocol.Gone, "", deleteGone, deleteGone, leave, leave, deleteGone},
		{crawldb.Fetched, protocol.RobotsDenied, "", deleteGone, deleteGone, leave, leave, deleteGone},
		{crawldb.RedirPerm, protocol.MovedPerm, "", deleteRedirect, deleteRedirect, leave, leave, deleteRedirect},
		{crawldb.RedirTemp, protocol.Success, "text", deleteRedirect, deleteRedirect, leave, add, deleteRedirect},
		{crawldb.RedirPerm, protocol.Success, "text", deleteRedirect, deleteRedirect, leave, add, deleteRedirect},
		{crawldb.Fetched, protocol.MovedTemp, "", deleteRedirect, deleteRedirect, leave, leave, deleteRedirect},
		{crawldb.Duplicate, protocol.Success, "text", deleteDuplicate, deleteDuplicate, leave, add, deleteDuplicate},
		{crawldb.Duplicate, protocol.NotModified, "", deleteDuplicate, deleteDuplicate, leave, older, older},
		{crawldb.Duplicate, protocol.Success, "", deleteDuplicate, deleteDuplicate, leave, leaveUnparsed, leaveUnparsed},
		{crawldb.Orphan, protocol.Success, "text", deleteOrphan, deleteOrphan, leave, add, add},
		{none, protocol.Success, "text", deleteGone, deleteGone, leave, add, add},
		{crawldb.NotModified, protocol.NotModified, "", older, older, older, older, older},
		{crawldb.Unfetched, protocol.Failed, "", older, older, older, leave, leave},
		{crawldb.Fetched, protocol.Skipped, "", older, older, older, leave, leave},
	} {
		in := pageInput(c.status, c.code, c.parsed)
		compat := func(o Options) Options { o.NutchCompat = true; return o }
		for i, got := range []decision{decide(in, Options{}), decide(in, all), decide(in, off), decide(in, compat(Options{})), decide(in, compat(all))} {
			want := []decision{c.zero, c.on, c.off, c.nutch, c.nutchOn}[i]
			if got != want {
				t.Errorf("%v, %v, %q: case %d is decision %d, want %d", c.status, c.code, c.parsed, i, got, want)
			}
		}
	}
	// What an old segment says of a page that was visited since has passed.
	in := pageInput(crawldb.Fetched, protocol.NotFound, "")
	in.Record.LastFetch = start.AddDate(0, 0, 1)
	if d := decide(in, Options{}); d != leave {
		t.Errorf("a page that is back: %d", d)
	}
}

// A page that has a time after which it must not be shown is deleted once it was
// visited after that time, even if nothing came.
func TestDecideUnavailableAfter(t *testing.T) {
	for _, c := range []struct {
		visit, last time.Duration
		o           Options
		want        decision
	}{
		{0, 0, Options{}, add},
		{0, time.Hour - 1, Options{}, add},
		{0, time.Hour, Options{}, deleteNoIndex},
		{time.Hour, 0, Options{}, deleteNoIndex},
		{0, time.Hour, Options{DeleteRobotsNoIndex: Off}, add},
	} {
		in := pageInput(crawldb.Fetched, protocol.Success, "text")
		in.Data.Parsed.UnavailableAfter = start.Add(time.Hour)
		in.Visit.Time, in.Record.LastFetch = start.Add(c.visit), start.Add(c.last)
		if got := decide(in, c.o); got != c.want {
			t.Errorf("visited after %v, last after %v: %v, want %v", c.visit, c.last, got, c.want)
		}
	}
}

// A sitemap is no page, whatever became of it; what is known as both is one if it
// was read as one.
func TestDecideSitemap(t *testing.T) {
	for _, status := range crawldb.Statuses() {
		in := pageInput(status, protocol.Success, "failed")
		crawldb.Sitemap{}.Set(&in.Record.Meta)
		if d := decide(in, Options{}); d != leave {
			t.Errorf("%v: %v", status, d)
		}
	}
	in := pageInput(crawldb.Fetched, protocol.Success, "text")
	crawldb.Sitemap{Page: true}.Set(&in.Record.Meta)
	if d := decide(in, Options{}); d != add {
		t.Errorf("a page that is listed as a sitemap: %v", d)
	}
	if in.Parse.Sitemap = true; decide(in, Options{}) != leave {
		t.Error("a sitemap that is linked as a page is indexed")
	}
}

func TestReportAdd(t *testing.T) {
	gone := pageInput(crawldb.Gone, protocol.Gone, "")
	for on, want := range map[bool]decision{true: deleteGone, false: leave} {
		for _, compat := range []bool{false, true} {
			if got := decide(gone, Options{DeleteGone: SwitchOf(on), NutchCompat: compat}); got != want {
				t.Errorf("DeleteGone %t, NutchCompat %t: %v, want %v", on, compat, got, want)
			}
		}
	}
}
