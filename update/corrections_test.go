package update_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// What follows is where the state machine departs from Nutch's, or where Nutch's
// own tests look.

// life applies visits to one record, a schedule's interval apart.
type life struct {
	d  *crawldb.Datum
	o  update.Options
	at time.Time
}

func newLife(s schedule.FetchSchedule) *life {
	l := &life{at: noon, o: update.Options{Schedule: s, Now: func() time.Time { return noon }}}
	l.d = update.Next(nil, update.Input{URL: page, Segment: seg, Links: []scoring.Link{{From: page, URL: page}}}, l.o)
	return l
}

func (l *life) visit(code protocol.Code, sum string) crawldb.Datum {
	in := update.Input{URL: page, Segment: seg, Visit: visitAt(l.at, code)}
	if code == protocol.Success && sum != "" {
		in.Parse = parsed(sum)
	}
	l.d = update.Next(l.d, in, l.o)
	l.at = l.d.FetchTime
	return *l.d
}

func TestPageThatComesBackIsNews(t *testing.T) {
	away := map[string]func(*life) crawldb.Datum{
		"gone":      func(l *life) crawldb.Datum { return l.visit(protocol.Gone, "") },
		"not found": func(l *life) crawldb.Datum { return l.visit(protocol.NotFound, "") },
		"moved":     func(l *life) crawldb.Datum { return l.visit(protocol.MovedTemp, "") },
		"unparsed":  func(l *life) crawldb.Datum { return l.visit(protocol.Success, "") },
		"failing": func(l *life) crawldb.Datum {
			l.visit(protocol.Failed, "")
			l.visit(protocol.Failed, "")
			return l.visit(protocol.Failed, "")
		},
		"parse failure": func(l *life) crawldb.Datum {
			l.d = update.Next(l.d, update.Input{URL: page, Segment: seg, Visit: visitAt(l.at, protocol.Success), Parse: &segment.Parse{URL: page, Error: "no"}}, l.o)
			l.at = l.d.FetchTime
			return *l.d
		},
	}
	for name, leave := range away {
		t.Run(name, func(t *testing.T) {
			l := newLife(schedule.Default{})
			l.visit(protocol.Success, "A")
			if d := l.visit(protocol.Success, "A"); d.Status != crawldb.NotModified {
				t.Fatalf("the same content: %v", d.Status)
			}
			if d := leave(l); d.Signature != nil {
				t.Errorf("the signature survives: %+v", d)
			}
			if d := l.visit(protocol.Success, "A"); d.Status != crawldb.Fetched || string(d.Signature) != "A" || d.ETag != `"new"` {
				t.Errorf("back again: %v, signature %q", d.Status, d.Signature)
			}
		})
	}
}

func TestUnparsedPageIsNotUnmodified(t *testing.T) {
	old := known(crawldb.Fetched, 0, "A")
	d := update.Next(&old, update.Input{URL: page, Segment: seg, Visit: visitAt(noon, protocol.Success)}, update.Options{})
	if d.Status != crawldb.Fetched || d.Signature != nil {
		t.Errorf("%v, signature %q", d.Status, d.Signature)
	}
}

func TestSkippedHostCostsNoRetries(t *testing.T) {
	for _, code := range []protocol.Code{protocol.Skipped, protocol.RobotsFailed} {
		l := newLife(schedule.Default{})
		l.visit(protocol.Success, "A")
		l.visit(protocol.Failed, "")
		for range 20 {
			if d := l.visit(code, ""); d.Retries != 1 || d.Status != crawldb.Unfetched || string(d.Signature) != "A" {
				t.Fatalf("%v: %v, %d retries", code, d.Status, d.Retries)
			}
		}
	}
}

// A page that was not asked for is put off by the retry delay, however long the
// host has to be left alone between visits; one that failed was a visit.
func TestSkippedPageWaitsTheRetryDelay(t *testing.T) {
	for code, want := range map[protocol.Code]time.Duration{protocol.Skipped: day, protocol.RobotsFailed: day, protocol.Failed: 10 * day, protocol.Busy: 10 * day} {
		l := newLife(schedule.Adaptive{MinInterval: 10 * day})
		at := l.at
		if d := l.visit(code, ""); d.FetchTime.Sub(at) != want {
			t.Errorf("%v: %v, want %v", code, d.FetchTime.Sub(at), want)
		}
	}
}

// However long a host is to be left alone, its pages are not put off to a time that the
// schedule takes for the mistake of a clock: they would be due again at once, without end.
func TestSkippedPageIsNotDueAtOnce(t *testing.T) {
	week := schedule.Adaptive{Default: schedule.Default{MaxInterval: 7 * day}}
	for _, c := range []struct {
		schedule    schedule.FetchSchedule
		after, want time.Duration
	}{
		{week, 3 * day, 3 * day},
		{week, 20 * day, 7 * day},
		{schedule.Learned{Default: week.Default}, 20 * day, 7 * day},
		{schedule.Default{}, 20 * day, 20 * day},
		{struct{ schedule.FetchSchedule }{week}, 3 * day, 3 * day},
		{struct{ schedule.FetchSchedule }{week}, 20 * day, day}, // without a Horizon: the retry delay
	} {
		l := newLife(c.schedule)
		l.visit(protocol.Success, "A")
		v := visitAt(l.at, protocol.Skipped)
		v.Outcome.RetryAfter = c.after
		d := update.Next(l.d, update.Input{URL: page, Segment: seg, Visit: v}, l.o)
		if got := d.FetchTime.Sub(l.at); got != c.want || c.schedule.Due(d, l.at) {
			t.Errorf("%#v: put off by %v for a host to be left alone for %v, want %v; due: %v", c.schedule, got, c.after, c.want, c.schedule.Due(d, l.at))
		}
	}
}

// A page that is refused because its host has been down for long is gone, and due when the host may be asked
// again, or sooner if the schedule says so.
func TestRefusedPageIsDueWithItsHost(t *testing.T) {
	for _, c := range []struct {
		schedule    schedule.FetchSchedule
		code        protocol.Code
		after, want time.Duration
	}{
		{schedule.Default{}, protocol.Refused, 0, 45 * day},
		{schedule.Default{}, protocol.Refused, 20 * day, 20 * day},
		{schedule.Default{}, protocol.Refused, 400 * day, 30 * day},
		{schedule.Default{}, protocol.NotFound, 20 * day, 45 * day},
		{schedule.Default{DefaultInterval: 10 * day}, protocol.Refused, 20 * day, 15 * day},
		{schedule.Default{MaxInterval: 7 * day}, protocol.Refused, 20 * day, 7 * day},
	} {
		l := newLife(c.schedule)
		l.visit(protocol.Success, "A")
		v := visitAt(l.at, c.code)
		v.Outcome.RetryAfter = c.after
		d := update.Next(l.d, update.Input{URL: page, Segment: seg, Visit: v}, l.o)
		if got := d.FetchTime.Sub(l.at); got != c.want || c.schedule.Due(d, l.at) || d.Status != crawldb.Gone || d.Signature != nil {
			t.Errorf("%#v, %v for %v: %v for %v, want %v", c.schedule, c.code, c.after, d.Status, got, c.want)
		}
	}
}

func TestRetrySequence(t *testing.T) {
	l := newLife(schedule.Default{})
	var got string
	for range 5 {
		at := l.at
		d := l.visit(protocol.Failed, "")
		got += fmt.Sprintf("%v %d +%gd\n", d.Status, d.Retries, d.FetchTime.Sub(at).Hours()/24)
	}
	want := "db_unfetched 1 +1d\ndb_unfetched 2 +1d\ndb_gone 3 +45d\ndb_gone 4 +67.5d\ndb_gone 5 +90d\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnswerEndsARowOfFailures(t *testing.T) {
	for _, code := range []protocol.Code{protocol.Success, protocol.NotFound, protocol.Gone, protocol.Denied, protocol.MovedPerm, protocol.NotModified} {
		l := newLife(schedule.Default{})
		l.visit(protocol.Failed, "")
		l.visit(protocol.Failed, "")
		if d := l.visit(code, "A"); d.Retries != 0 {
			t.Errorf("%v: %d retries", code, d.Retries)
		}
		if d := l.visit(protocol.Failed, ""); d.Retries != 1 || d.Status != crawldb.Unfetched {
			t.Errorf("a failure after %v: %v, %d retries", code, d.Status, d.Retries)
		}
	}
}

func TestGoneForTwoYears(t *testing.T) {
	l := newLife(schedule.Default{})
	visits := 0
	for ; l.at.Before(noon.Add(2 * 365 * day)); visits++ {
		if d := l.visit(protocol.Gone, ""); d.Status != crawldb.Gone {
			t.Fatalf("visit %d: %v", visits, d.Status)
		}
	}
	if visits != 9 { // 0, 45, 112.5, 202.5 and then every 90 days
		t.Errorf("%d visits", visits)
	}
}

// Nutch's testCrawlDbReducerNotModified: content that changes for a year and then
// never again.
func TestChangesForAYearThenNone(t *testing.T) {
	for name, s := range map[string]schedule.FetchSchedule{"default": schedule.Default{}, "adaptive": schedule.Adaptive{}} {
		t.Run(name, func(t *testing.T) {
			l := newLife(s)
			sum, changed, visits := "0", time.Time{}, 0
			for ; l.at.Before(noon.Add(2 * 365 * day)); visits++ {
				at := l.at
				if at.Before(noon.Add(365 * day)) {
					sum, changed = fmt.Sprint(visits), at
				}
				d := l.visit(protocol.Success, sum)
				want := crawldb.NotModified
				if changed.Equal(at) {
					want = crawldb.Fetched
				}
				if d.Status != want || !d.Modified.Equal(changed) || string(d.Signature) != sum {
					t.Fatalf("visit %d: %v, want %v; modified %v, want %v", visits, d.Status, want, d.Modified, changed)
				}
				if gap := l.at.Sub(at); gap <= 0 || gap > 90*day {
					t.Fatalf("visit %d: the next one %v later", visits, gap)
				}
			}
			if visits < 20 {
				t.Errorf("%d visits", visits)
			}
		})
	}
}

func TestLeaseOfAnotherSegment(t *testing.T) {
	for _, e := range events() {
		old := known(crawldb.Fetched, 0, "A")
		old.LeasedBy = "20260105090000-000"
		d := update.Next(&old, update.Input{URL: page, Segment: seg, Visit: e.visit, Parse: e.parse, Links: e.links}, update.Options{})
		if d.LeasedBy != old.LeasedBy || !d.LeasedUntil.Equal(old.LeasedUntil) {
			t.Errorf("%s ends it", e.name)
		}
		if e.name == "nothing" || e.name == "stale success" {
			if d != &old {
				t.Errorf("%s: the record is written again", e.name)
			}
		}
	}
}

func TestNoAdditions(t *testing.T) {
	for _, e := range events() {
		in := update.Input{URL: page, Segment: seg, Visit: e.visit, Parse: e.parse, Links: e.links}
		if d := update.Next(nil, in, update.Options{NoAdditions: true}); d != nil {
			t.Errorf("%s: a record was made: %+v", e.name, d)
		}
		old := known(crawldb.Fetched, 0, "A")
		a, b := update.Next(&old, in, update.Options{NoAdditions: true}), update.Next(&old, in, update.Options{})
		if !sameRecord(*a, *b) {
			t.Errorf("%s: a record that is there is treated differently", e.name)
		}
	}
}

func TestStaleVisitStillMovesImportance(t *testing.T) {
	old := known(crawldb.Fetched, 0, "A")
	(scoring.OPIC{}).Injected(&old)
	had := scoring.Cash(&old)
	in := update.Input{URL: page, Segment: seg, Visit: visitAt(noon.Add(-31*day), protocol.Gone),
		Parse: &segment.Parse{URL: page, Gave: had}}
	d := update.Next(&old, in, update.Options{Scoring: scoring.OPIC{}})
	if d.Status != old.Status || string(d.Signature) != "A" || !d.FetchTime.Equal(old.FetchTime) {
		t.Errorf("a stale visit was applied: %+v", d)
	}
	// Its links still received their share.
	if got := scoring.Cash(d); got != 0 {
		t.Errorf("%g of %g are left", got, had)
	}
}

func TestVisitAtTheSameMomentIsApplied(t *testing.T) {
	old := known(crawldb.Unfetched, 0, "")
	old.LastFetch = noon
	if d := update.Next(&old, update.Input{URL: page, Visit: visitAt(noon, protocol.Success), Parse: parsed("A")}, update.Options{}); d.Status != crawldb.Fetched {
		t.Errorf("%v", d.Status)
	}
}

// A clock that was a year ahead for a day: what was visited then is visited again
// once, and all is well. If the visits of that day counted as the latest, no other would
// count and the page would be due forever.
func TestClockThatWasWrong(t *testing.T) {
	for name, s := range map[string]schedule.FetchSchedule{"default": schedule.Default{}, "adaptive": schedule.Adaptive{}} {
		for _, code := range []protocol.Code{protocol.Success, protocol.NotModified, protocol.NotFound, protocol.Failed, protocol.MovedPerm} {
			old := known(crawldb.Fetched, 0, "A")
			wrong := noon.Add(365 * day)
			old.LastFetch, old.Modified, old.FetchTime = wrong, wrong, wrong.Add(30*day)
			if !s.Due(&old, noon) {
				t.Fatalf("%s: a fetch time that cannot be is not due", name)
			}
			in := update.Input{URL: page, Segment: seg, Visit: visitAt(noon, code)}
			if code == protocol.Success {
				in.Parse = parsed("A")
			}
			d := update.Next(&old, in, update.Options{Schedule: s, Now: func() time.Time { return noon.Add(time.Hour) }})
			if !d.LastFetch.Equal(noon) || s.Due(d, noon.Add(time.Hour)) || d.FetchTime.After(noon.Add(90*day)) {
				t.Errorf("%s, %v: %+v", name, code, d)
			}
			if code != protocol.Failed && code != protocol.NotFound && d.Modified.After(noon) {
				t.Errorf("%s, %v: modified at %v", name, code, d.Modified)
			}
		}
	}
}
