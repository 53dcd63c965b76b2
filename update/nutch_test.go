package update_test

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// What follows are the facts of Nutch's CrawlDbReducer, found by running it, and
// the scenarios of its TestCrawlDbStates.

// The schedules that Nutch's tests run with.
func nutchSchedules() map[string]schedule.FetchSchedule {
	return map[string]schedule.FetchSchedule{
		"default":  schedule.Default{NutchCompat: true},
		"adaptive": schedule.Adaptive{Default: schedule.Default{NutchCompat: true}},
	}
}

func nutchOptions(s schedule.FetchSchedule) update.Options {
	return update.Options{Schedule: s, NutchCompat: true, Now: func() time.Time { return noon }}
}

// listed is a record and the copy of it in a fetch list.
func listed(d crawldb.Datum) (old *crawldb.Datum, in update.Input) {
	of := d
	return &d, update.Input{URL: page, Segment: seg, Listed: &of}
}

// Nutch's testCrawlDbStateTransitionMatrix: any status, any fetch, up to two links
// more, the record made by the schedule and no signature.
func TestNutchCompatTransitionMatrix(t *testing.T) {
	codes := map[protocol.Code]crawldb.Status{
		protocol.Success: crawldb.Fetched, protocol.Gone: crawldb.Gone,
		protocol.MovedTemp: crawldb.RedirTemp, protocol.MovedPerm: crawldb.RedirPerm,
		protocol.NotModified: crawldb.NotModified, protocol.Failed: crawldb.Unfetched, 0: crawldb.Unfetched,
	}
	for name, s := range nutchSchedules() {
		for _, from := range append(crawldb.Statuses(), 0) {
			for code, want := range codes {
				for links := range 3 {
					if code == 0 && links == 0 {
						continue
					}
					var old *crawldb.Datum
					in := update.Input{URL: page, Segment: seg}
					if from != 0 {
						old, in = listed(s.Init(crawldb.Datum{URL: page, Status: from}, noon))
					}
					if code != 0 {
						in.Visit = visitAt(noon, code)
					} else if from != 0 {
						want = from
					}
					for i := range links {
						in.Links = append(in.Links, scoring.Link{From: fmt.Sprint(i), URL: page, Score: 0.1})
					}
					d := update.Next(old, in, nutchOptions(s))
					if d == nil || d.Status != want {
						t.Errorf("%s: %v, %v and %d links: %+v, want %v", name, from, code, links, d, want)
					}
				}
			}
		}
	}
}

// Whatever the records and the fetch are: testdata/nutch-reducer.tsv.
func TestNutchCompatReducer(t *testing.T) {
	raw, err := os.ReadFile("testdata/nutch-reducer.tsv")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]protocol.Code{
		"success": protocol.Success, "parse_failed": protocol.Success, "retry": protocol.Failed, "gone": protocol.Gone,
		"redir_temp": protocol.MovedTemp, "redir_perm": protocol.MovedPerm, "notmodified": protocol.NotModified,
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	record := func(s string) *crawldb.Datum {
		f := strings.Fields(s)
		if len(f) == 1 {
			return nil
		}
		status, err := crawldb.ParseStatus(f[0])
		if err != nil {
			t.Fatal(err)
		}
		d := &crawldb.Datum{URL: page, Status: status, FetchTime: time.UnixMilli(number(f[1])).UTC(), Retries: int(uint8(number(f[2]))), Interval: time.Duration(number(f[3])) * time.Second}
		if f[4] != "0" {
			d.Modified = time.UnixMilli(number(f[4])).UTC()
		}
		if f[5] != "-" {
			d.Signature = []byte(f[5])
		}
		return d
	}
	rows := 0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		o := nutchOptions(nutchSchedules()[f[0]])
		o.ParseFailed = true
		old, want := record(f[1]), record(f[4])
		visit := strings.Fields(f[3])
		in := update.Input{URL: page, Segment: seg, Listed: record(f[2]), Visit: visitAt(time.UnixMilli(number(visit[1])).UTC(), codes[visit[0]])}
		switch {
		case visit[0] == "parse_failed":
			in.Parse = &segment.Parse{URL: page, Error: "no"}
		case visit[2] != "-":
			in.Parse = parsed(visit[2])
		}
		d := update.Next(old, in, o)
		if d.Status != want.Status || !d.FetchTime.Equal(want.FetchTime) || d.Retries != want.Retries || d.Interval != want.Interval ||
			!d.Modified.Equal(want.Modified) || string(d.Signature) != string(want.Signature) || (d.Signature == nil) != (want.Signature == nil) {
			t.Errorf("%s\ngot %+v", line, d)
		}
		rows++
	}
	if rows < 100 {
		t.Errorf("%d rows", rows)
	}
}

// crawl is the harness of Nutch's continuous crawl: one page for two years, looked
// at once a step. visit says what the server answers to the n-th visit.
type crawl struct {
	o     update.Options
	step  time.Duration
	visit func(n int, at time.Time, d crawldb.Datum) (protocol.Code, *segment.Parse)
	check func(n int, at time.Time, before, after crawldb.Datum)
}

func (c crawl) run(t *testing.T) (days []int, count map[crawldb.Status]int) {
	t.Helper()
	t0 := time.UnixMilli(1e12).UTC()
	count = map[crawldb.Status]int{}
	d := c.o.Schedule.Init(crawldb.Datum{URL: page, Status: crawldb.Unfetched}, t0)
	for at := t0; at.Before(t0.Add(2 * 365 * day)); at = at.Add(c.step) {
		if !c.o.Schedule.Due(&d, at) {
			continue
		}
		of := schedule.Selected(c.o.Schedule, d, at)
		in := update.Input{URL: page, Segment: seg, Listed: &of}
		var code protocol.Code
		code, in.Parse = c.visit(len(days), at, of)
		in.Visit = visitAt(at, code)
		before := d
		d = *update.Next(&before, in, c.o)
		if c.check != nil {
			c.check(len(days), at, before, d)
		}
		days = append(days, int(at.Sub(t0)/day))
		count[d.Status]++
	}
	return days, count
}

// sums are the signatures of content that changes a byte at a time.
func sums(changes int) *segment.Parse {
	sum := md5.Sum([]byte("nutch" + strings.Repeat("2", changes)))
	return &segment.Parse{URL: page, Signature: sum[:]}
}

// TestNutchCompatNotModifiedForTwoYears, both variants: content that changes at every
// fetch of the first year, and never again.
func TestNutchCompatNotModifiedForTwoYears(t *testing.T) {
	for _, c := range []struct {
		name                 string
		fetched, same, again int
	}{{"default", 13, 12, 0}, {"adaptive", 228, 8, 2}} {
		for _, conditional := range []bool{false, true} {
			name := fmt.Sprintf("%s, 304 %v", c.name, conditional)
			changes := 0
			var first, changed, last time.Time
			_, n := crawl{
				o: nutchOptions(nutchSchedules()[c.name]), step: day,
				visit: func(n int, at time.Time, d crawldb.Datum) (protocol.Code, *segment.Parse) {
					if n == 0 {
						first = at
					}
					year := at.Sub(first) >= 365*day
					if conditional && year && d.LastModified != "" && d.Signature != nil {
						return protocol.NotModified, nil
					}
					if !year {
						changes++
						changed = at
					}
					return protocol.Success, sums(changes)
				},
				check: func(n int, at time.Time, before, after crawldb.Datum) {
					if n > 0 && at.Sub(last) > 91*day {
						t.Errorf("%s: %v between two visits", name, at.Sub(last))
					}
					last = at
					ok := false
					switch after.Status {
					case crawldb.Fetched:
						ok = after.Modified.Equal(at)
					case crawldb.NotModified:
						ok = (before.Status == crawldb.Fetched || before.Status == crawldb.NotModified) &&
							string(before.Signature) == string(after.Signature) && after.Modified.Equal(before.Modified)
						if before.Status == crawldb.Fetched && !changed.IsZero() {
							ok = ok && !after.Modified.Before(changed)
						}
					case crawldb.Unfetched:
						ok = c.name == "adaptive" && after.Signature == nil && after.Interval == 6998400*time.Second
					}
					if !ok {
						t.Errorf("%s: visit %d makes %+v of %+v", name, n, after, before)
					}
				},
			}.run(t)
			if n[crawldb.Fetched] != c.fetched || n[crawldb.NotModified] != c.same || n[crawldb.Unfetched] != c.again {
				t.Errorf("%s: %v, want %d fetched, %d not modified and %d unfetched", name, n, c.fetched, c.same, c.again)
			}
		}
	}
}

func TestNutchCompatGoneForTwoYears(t *testing.T) {
	always := func(int, time.Time, crawldb.Datum) (protocol.Code, *segment.Parse) { return protocol.Gone, nil }
	want := []int{0, 45, 113, 194, 275, 356, 437, 518, 599, 680}
	intervals := []time.Duration{3888000, 5832000, 6998400, 6998400}
	for name, s := range nutchSchedules() {
		days, n := crawl{o: nutchOptions(s), step: day, visit: always, check: func(n int, _ time.Time, _, d crawldb.Datum) {
			if want := intervals[min(n, 3)] * time.Second; d.Interval != want {
				t.Errorf("%s: visit %d leads to %v, want %v", name, n, d.Interval, want)
			}
		}}.run(t)
		if !slices.Equal(days, want) || n[crawldb.Gone] != len(want) {
			t.Errorf("%s: days %v, %v", name, days, n)
		}
	}
	// testCrawlDbReducerPageGoneSchedule2: an interval far above the maximum.
	long := schedule.Default{NutchCompat: true, DefaultInterval: 11664003 * time.Second}
	for name, s := range map[string]schedule.FetchSchedule{"default": long, "adaptive": schedule.Adaptive{Default: long}} {
		days, n := crawl{o: nutchOptions(s), step: day, visit: always}.run(t)
		if len(days) == 0 || n[crawldb.Gone] != len(days) {
			t.Errorf("%s: days %v, %v", name, days, n)
		}
	}
}

func TestNutchCompatParseFailedForTwoYears(t *testing.T) {
	for name, s := range nutchSchedules() {
		o := nutchOptions(s)
		o.ParseFailed = true
		crawl{o: o, step: day,
			visit: func(n int, _ time.Time, _ crawldb.Datum) (protocol.Code, *segment.Parse) {
				if n%2 == 1 {
					return protocol.Success, &segment.Parse{URL: page, Error: "no"}
				}
				return protocol.Success, sums(0)
			},
			check: func(n int, _ time.Time, _, d crawldb.Datum) {
				if failed := d.Status == crawldb.ParseFailed; failed != (n%2 == 1) {
					t.Errorf("%s: visit %d: %v", name, n, d.Status)
				}
			},
		}.run(t)
	}
}

// TestNutchCompatAwayAndBack: a page that is away every second time is never "not
// modified" right after, which Nutch tests with content that has changed.
func TestNutchCompatAwayAndBack(t *testing.T) {
	away := []protocol.Code{protocol.MovedTemp, protocol.MovedPerm, protocol.Gone}
	for name, s := range nutchSchedules() {
		crawl{o: nutchOptions(s), step: day,
			visit: func(n int, _ time.Time, _ crawldb.Datum) (protocol.Code, *segment.Parse) {
				if n%2 == 1 {
					return away[n/2%3], nil
				}
				return protocol.Success, sums(n)
			},
			check: func(n int, _ time.Time, _, d crawldb.Datum) {
				if n%2 == 0 && d.Status == crawldb.NotModified {
					t.Errorf("%s: visit %d: %v", name, n, d.Status)
				}
			},
		}.run(t)
	}
}

func TestNutchCompatRetryForTwoYears(t *testing.T) {
	for name, s := range nutchSchedules() {
		crawl{o: nutchOptions(s), step: day,
			visit: func(int, time.Time, crawldb.Datum) (protocol.Code, *segment.Parse) { return protocol.Failed, nil },
			check: func(n int, _ time.Time, _, d crawldb.Datum) {
				want := crawldb.Gone
				if n < 2 {
					want = crawldb.Unfetched
				}
				if d.Status != want || d.Retries != n+1 {
					t.Errorf("%s: visit %d: %v, %d retries", name, n, d.Status, d.Retries)
				}
			},
		}.run(t)
	}
}

func TestNutchCompatSyncDelta(t *testing.T) {
	s := schedule.Adaptive{
		Default:     schedule.Default{NutchCompat: true, DefaultInterval: 2 * day, MaxInterval: 7 * day},
		MinInterval: day, AdaptiveMax: 7 * day,
	}
	changes := 0
	var first time.Time
	_, n := crawl{o: nutchOptions(s), step: 8 * time.Hour,
		visit: func(n int, at time.Time, _ crawldb.Datum) (protocol.Code, *segment.Parse) {
			if n == 0 {
				first = at
			}
			if at.Sub(first) < 365*day {
				changes++
			}
			return protocol.Success, sums(changes)
		},
		check: func(_ int, at time.Time, _, d crawldb.Datum) {
			if d.Status == crawldb.NotModified && at.Sub(d.FetchTime) > time.Second {
				t.Errorf("the next fetch lies %v back", at.Sub(d.FetchTime))
			}
		},
	}.run(t)
	if n[crawldb.Fetched] != 363 || n[crawldb.NotModified] != 61 || n[crawldb.Unfetched] != 0 {
		t.Errorf("%v", n)
	}
}

// TestNutchCompatRetrySequence, and what comes after it.
func TestNutchCompatRetrySequence(t *testing.T) {
	var got []string
	old := schedule.Default{NutchCompat: true}.Init(crawldb.Datum{URL: page, Status: crawldb.Unfetched}, noon)
	for range 6 {
		d, in := listed(old)
		in.Visit = visitAt(noon, protocol.Failed)
		old = *update.Next(d, in, nutchOptions(nutchSchedules()["default"]))
		got = append(got, fmt.Sprintf("%v %d %d +%d", old.Status, old.Retries, old.Interval/time.Second, old.FetchTime.Sub(noon)/time.Second))
	}
	want := []string{
		"db_unfetched 1 2592000 +86400", "db_unfetched 2 2592000 +86400",
		"db_gone 3 3888000 +3888000", "db_gone 4 5832000 +5832000", "db_gone 5 6998400 +6998400", "db_gone 6 6998400 +6998400",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// difference is one place where ours and Nutch's part.
type difference struct {
	name        string
	old         func(d *crawldb.Datum)    // what the record is, beside known(Fetched, 0, "A")
	listed      func(d *crawldb.Datum)    // in what the fetch list differs from it
	input       func(in *update.Input)    // what the segment brings
	options     func(o *update.Options)   // beside Nutch's default schedule
	show        func(d crawldb.Datum) any // what to look at
	ours, nutch any
}

func TestNutchCompatDifferences(t *testing.T) {
	status := func(d crawldb.Datum) any { return d.Status.String() }
	signature := func(d crawldb.Datum) any { return string(d.Signature) }
	visit := func(code protocol.Code) func(*update.Input) {
		return func(in *update.Input) { in.Visit = visitAt(noon, code) }
	}
	httpVisit := func(code protocol.Code, status int) func(*update.Input) {
		return func(in *update.Input) {
			in.Visit = visitAt(noon, code)
			in.Visit.Outcome.Status = status
		}
	}
	success := func(sum string) func(*update.Input) {
		return func(in *update.Input) { in.Visit, in.Parse = visitAt(noon, protocol.Success), parsed(sum) }
	}
	for _, c := range []difference{
		{name: "UnparsedIsNotModified", input: visit(protocol.Success), show: status, ours: "db_fetched", nutch: "db_notmodified"},
		{name: "SignatureSurvivesGone", input: visit(protocol.Gone), show: signature, ours: "", nutch: "A"},
		{name: "SignatureSurvivesRedirect", input: visit(protocol.MovedPerm), show: signature, ours: "", nutch: "A"},
		{name: "RedirectTakesTheSignatureOfTheList", listed: func(d *crawldb.Datum) { d.Signature = []byte("L") },
			input: visit(protocol.MovedTemp), show: signature, ours: "", nutch: "L"},
		{name: "GoneKeepsRetries", old: func(d *crawldb.Datum) { d.Retries = 2 }, input: visit(protocol.NotFound),
			show: func(d crawldb.Datum) any { return d.Retries }, ours: 0, nutch: 2},
		{name: "RetriesWrap", old: func(d *crawldb.Datum) { d.Retries = 127 }, input: visit(protocol.Failed), show: status, ours: "db_gone", nutch: "db_unfetched"},
		{name: "RetriesWrapToZero", old: func(d *crawldb.Datum) { d.Retries = 255 }, input: visit(protocol.Failed),
			show: func(d crawldb.Datum) any { return d.Retries }, ours: 256, nutch: 0},
		{name: "ForcedRefetch", old: func(d *crawldb.Datum) { d.Interval = 9999999 * time.Second }, input: success("B"),
			options: func(o *update.Options) { o.MaxInterval = 7776000 * time.Second },
			show: func(d crawldb.Datum) any {
				return fmt.Sprintf("%v %d +%d %q mod %v", d.Status, d.Interval/time.Second, d.FetchTime.Sub(noon)/time.Second, d.Signature, d.Modified.IsZero())
			},
			ours: `db_fetched 7776000 +7776000 "B" mod false`, nutch: `db_unfetched 6998400 +9999999 "" mod true`},
		{name: "ForcedRefetchIsNotForPagesThatAreGone", old: func(d *crawldb.Datum) { d.Interval = 9999999 * time.Second }, input: visit(protocol.Failed),
			show: func(d crawldb.Datum) any { return int(d.Interval / time.Second) }, ours: 7776000, nutch: 9999999},
		{name: "ParseFailedIsFetched", input: func(in *update.Input) {
			in.Visit, in.Parse = visitAt(noon, protocol.Success), &segment.Parse{URL: page, Error: "no", Signature: []byte("B")}
		}, show: status, ours: "db_parse_failed", nutch: "db_fetched"},
		{name: "ParseFailedKeepsTheSignature", input: func(in *update.Input) {
			in.Visit, in.Parse = visitAt(noon, protocol.Success), &segment.Parse{URL: page, Error: "no"}
		}, options: func(o *update.Options) { o.ParseFailed = true },
			show: func(d crawldb.Datum) any { return fmt.Sprintf("%v %q", d.Status, d.Signature) }, ours: `db_parse_failed ""`, nutch: `db_parse_failed "A"`},
		{name: "ScoreIsThatOfTheList", listed: func(d *crawldb.Datum) { d.Score = 1 }, input: success("B"),
			show: func(d crawldb.Datum) any { return d.Score }, ours: float32(2), nutch: float32(1)},
		{name: "IntervalIsThatOfTheList", listed: func(d *crawldb.Datum) { d.Interval = day }, input: success("B"),
			show: func(d crawldb.Datum) any { return d.Interval }, ours: 30 * day, nutch: day},
		{name: "RetriesAreThoseOfTheList", listed: func(d *crawldb.Datum) { d.Retries = 1 }, input: visit(protocol.Failed),
			show: func(d crawldb.Datum) any { return d.Retries }, ours: 1, nutch: 2},
		{name: "MetaOfTheListWins", old: func(d *crawldb.Datum) { d.Meta = crawldb.MetaOf("a", "old", "b", "old") },
			listed: func(d *crawldb.Datum) { d.Meta = crawldb.MetaOf("a", "list", "c", "list") }, input: success("B"),
			show: func(d crawldb.Datum) any {
				a, _ := d.Meta.Get("a")
				b, _ := d.Meta.Get("b")
				c, _ := d.Meta.Get("c")
				return a + " " + b + " " + c
			}, ours: "old old ", nutch: "list old list"},
		{name: "LinkEndsAnyLease", old: func(d *crawldb.Datum) { d.LeasedBy = "20250101000000-000" },
			input: func(in *update.Input) { in.Links = []scoring.Link{{From: "http://b.example.test/", URL: page}} },
			show:  func(d crawldb.Datum) any { return d.LeasedBy }, ours: "20250101000000-000", nutch: ""},
		{name: "UnvisitedStaysLeased", input: func(*update.Input) {},
			show: func(d crawldb.Datum) any { return d.LeasedBy }, ours: "", nutch: seg},
		{name: "OlderVisitIsApplied", input: func(in *update.Input) {
			in.Visit, in.Parse = visitAt(noon.Add(-31*day), protocol.Success), parsed("B")
		}, show: signature, ours: "A", nutch: "B"},
		{name: "SkippedIsNotThere", input: visit(protocol.Skipped),
			show: func(d crawldb.Datum) any { return d.FetchTime.Sub(noon) }, ours: day, nutch: -day},
		{name: "RefusedIsTriedAgain", input: visit(protocol.Refused), show: status, ours: "db_gone", nutch: "db_unfetched"},
		{name: "Status403IsTriedAgain", input: httpVisit(protocol.Denied, 403), show: status, ours: "db_gone", nutch: "db_unfetched"},
		{name: "Status405IsTriedAgain", input: httpVisit(protocol.Gone, 405), show: status, ours: "db_gone", nutch: "db_unfetched"},
		{name: "Status206IsTriedAgain", input: httpVisit(protocol.Success, 206), show: status, ours: "db_fetched", nutch: "db_unfetched"},
		{name: "Status300IsForGood", input: httpVisit(protocol.MovedTemp, 300), show: status, ours: "db_redir_temp", nutch: "db_redir_perm"},
		{name: "Status304WithoutValidators", input: httpVisit(protocol.Failed, 304), show: status, ours: "db_unfetched", nutch: "db_notmodified"},
		{name: "RedirectWithoutLocation", input: httpVisit(protocol.Failed, 302), show: status, ours: "db_unfetched", nutch: "db_redir_temp"},
		{name: "ValidatorIsTheTimeOfChange", input: success("B"),
			show: func(d crawldb.Datum) any { return d.ETag + d.LastModified }, ours: `"new"new`, nutch: "Mon, 05 Jan 2026 12:00:00 GMT"},
		{name: "LastModifiedIsNotLookedAt", input: func(in *update.Input) {
			in.Visit, in.Parse = visitAt(noon, protocol.Success), parsed("B")
			in.Visit.Modified = noon.Add(-2 * day)
		}, show: func(d crawldb.Datum) any { return d.Modified }, ours: noon.Add(-2 * day), nutch: noon},
		{name: "ModifiedIsThatOfTheRecordIfUnchanged", listed: func(d *crawldb.Datum) { d.Modified = noon.Add(-60 * day) }, input: success("A"),
			show: func(d crawldb.Datum) any { return d.Modified }, ours: noon.Add(-40 * day), nutch: noon.Add(-40 * day)},
		{name: "ModifiedIsThatOfTheListIfUnknown", listed: func(d *crawldb.Datum) { d.Modified = noon.Add(-60 * day) }, input: visit(protocol.MovedTemp),
			show: func(d crawldb.Datum) any { return d.Modified }, ours: noon.Add(-40 * day), nutch: noon.Add(-60 * day)},
		{name: "ModifiedIsThatOfTheRecordIfTheListHasNone", listed: func(d *crawldb.Datum) { d.Modified = time.Time{} }, input: visit(protocol.Gone),
			show: func(d crawldb.Datum) any { return d.Modified }, ours: noon.Add(-40 * day), nutch: noon.Add(-40 * day)},
		{name: "PropertiesHaveNoPrefix", input: func(in *update.Input) {
			in.Visit, in.Parse = visitAt(noon, protocol.Success), parsed("B")
			in.Parse.Meta = crawldb.MetaOf("seed", "of the page")
		}, show: func(d crawldb.Datum) any {
			seed, _ := d.Meta.Get("seed")
			of, _ := d.Meta.Get("page.seed")
			return seed + "|" + of
		}, ours: "x|of the page", nutch: "of the page|"},
		{name: "VisitIsAlwaysNoted", input: success("B"), show: func(d crawldb.Datum) any {
			v, _ := d.Meta.Get("_pst_")
			return v
		}, ours: "", nutch: "success(1), lastModified=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for nutch, want := range map[bool]any{false: c.ours, true: c.nutch} {
				d := known(crawldb.Fetched, 0, "A")
				if c.old != nil {
					c.old(&d)
				}
				old, in := listed(d)
				if c.listed != nil {
					c.listed(in.Listed)
				}
				c.input(&in)
				o := update.Options{Schedule: schedule.Default{NutchCompat: nutch}, Now: func() time.Time { return noon }}
				if c.options != nil {
					c.options(&o)
				}
				o.NutchCompat = nutch
				if got := c.show(*update.Next(old, in, o)); got != want {
					t.Errorf("NutchCompat %v: %v, want %v", nutch, got, want)
				}
			}
		})
	}
}

// A page that goes away and comes back with the content it had.
func TestNutchCompatReturnIsNotNews(t *testing.T) {
	for _, code := range []protocol.Code{protocol.Gone, protocol.MovedTemp, protocol.MovedPerm} {
		for nutch, want := range map[bool]crawldb.Status{false: crawldb.Fetched, true: crawldb.NotModified} {
			o := update.Options{Schedule: schedule.Default{NutchCompat: nutch}, NutchCompat: nutch}
			d := known(crawldb.Fetched, 0, "A")
			for i, c := range []protocol.Code{code, protocol.Success} {
				old, in := listed(d)
				in.Visit, in.Parse = visitAt(noon.Add(time.Duration(i)*day), c), nil
				if c == protocol.Success {
					in.Parse = parsed("A")
				}
				d = *update.Next(old, in, o)
			}
			if d.Status != want {
				t.Errorf("NutchCompat %v, back after %v: %v, want %v", nutch, code, d.Status, want)
			}
		}
	}
}

// Five links with scores 1, 5, 3, 2 and 4; two of them may count.
func TestNutchCompatWorstLinksAreKept(t *testing.T) {
	for _, c := range []struct {
		nutch bool
		max   int
		want  float32
	}{{true, 2, 3}, {true, 0, 15}, {false, 2, 9}, {false, 0, 15}} {
		w := newWorld(t)
		var parses []segment.Parse
		for i, score := range []float64{1, 5, 3, 2, 4} {
			parses = append(parses, segment.Parse{URL: url(i), Links: []segment.Link{{URL: page, Score: score}}})
		}
		rand.New(rand.NewPCG(1, 1)).Shuffle(5, func(i, j int) { parses[i], parses[j] = parses[j], parses[i] })
		write(w, seg, []crawldb.Datum{})
		write(w, seg, []segment.Visit{})
		write(w, seg, parses)
		o := options()
		o.NutchCompat, o.MaxInlinks, o.Scoring = c.nutch, c.max, scoring.OPIC{NutchCompat: true}
		if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, o); err != nil {
			t.Fatal(err)
		}
		if d := w.get(page); d.Score != c.want {
			t.Errorf("NutchCompat %v, %d links: score %g, want %g", c.nutch, c.max, d.Score, c.want)
		}
	}
}

// Run hands the record of the fetch list to Next.
func TestNutchCompatRunReadsTheFetchList(t *testing.T) {
	for nutch, want := range map[bool]time.Duration{false: 30 * day, true: 5 * day} {
		w := newWorld(t)
		d := known(crawldb.Fetched, 0, "A")
		w.put(d)
		d.Interval = 5 * day
		write(w, seg, []crawldb.Datum{d})
		write(w, seg, []segment.Visit{*visitAt(noon, protocol.Success)})
		write(w, seg, []segment.Parse{*parsed("B")})
		if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, update.Options{NutchCompat: nutch}); err != nil {
			t.Fatal(err)
		}
		if got := w.get(page).Interval; got != want {
			t.Errorf("NutchCompat %v: interval %v, want %v", nutch, got, want)
		}
	}
}

// The metadata of a record that is new are those of its best link alone.
func TestNutchCompatNewRecordHasMetaOfBestLink(t *testing.T) {
	in := update.Input{URL: page, Segment: seg, Links: []scoring.Link{
		{From: "a", URL: page, Score: 2, Meta: crawldb.MetaOf("from", "a")}, {From: "b", URL: page, Score: 1, Meta: crawldb.MetaOf("also", "b")},
	}}
	for nutch, score := range map[bool]float32{false: 0, true: 2} {
		d := update.Next(nil, in, update.Options{NutchCompat: nutch})
		if d.Meta != crawldb.MetaOf("from", "a") || d.Score != score {
			t.Errorf("NutchCompat %v: %v, score %g", nutch, d.Meta, d.Score)
		}
	}
	if d := update.Next(nil, in, update.Options{NutchCompat: true, NoAdditions: true}); d != nil {
		t.Errorf("an addition: %+v", d)
	}
}

// Of links that are equal, what was found in a page goes before a redirect.
func TestNutchCompatLinkBeforeRedirect(t *testing.T) {
	for nutch, want := range map[bool]string{false: "_pst_", true: "_repr_"} {
		w := newWorld(t)
		write(w, seg, []crawldb.Datum{})
		write(w, seg, []segment.Visit{})
		write(w, seg, []segment.Parse{
			{URL: url(0), Links: []segment.Link{{URL: page, Meta: crawldb.MetaOf("_pst_", "moved(12)")}}},
			{URL: url(1), Links: []segment.Link{{URL: page, Meta: crawldb.MetaOf("_repr_", "x")}}},
		})
		o := options()
		o.NutchCompat = nutch
		if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, o); err != nil {
			t.Fatal(err)
		}
		d := w.get(page)
		if _, ok := d.Meta.Get(want); !ok {
			t.Errorf("NutchCompat %v: %q", nutch, d.Meta.Encoded())
		}
	}
}

// discoverer notes the records passed to Discovered, and marks them.
type discoverer struct {
	scoring.Base
	told *[]crawldb.Datum
}

func (d discoverer) Discovered(r *crawldb.Datum) {
	*d.told = append(*d.told, *r)
	r.Score++
}

// A target that the fetcher went to at once is a record of the fetcher's own, made of
// the link that it noted, not of those that parsers found or that are on other pages;
// the record that is known, if there is one, gives what the fetcher does not know.
func TestNutchTargetThatWasFollowed(t *testing.T) {
	const from = "http://from.example/"
	in := update.Input{URL: page, Segment: seg,
		Visit: &segment.Visit{URL: page, Via: from, Time: noon, Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}},
		Links: []scoring.Link{
			{From: "http://other.example/", Score: 9, Meta: crawldb.MetaOf("_pst_", "moved(12)", "of", "another page")},
			{From: from, Score: 5, Meta: crawldb.MetaOf("of", "a parser")},
			{From: from, Score: 2, Meta: crawldb.MetaOf("_pst_", "moved(12)", "of", "the fetcher")},
			{From: from, Score: 3, Meta: crawldb.MetaOf("_pst_", "moved(12)", "of", "the fetcher, again")},
		}}
	var told []crawldb.Datum
	o := nutchOptions(schedule.Default{NutchCompat: true})
	o.Scoring = discoverer{told: &told}
	got := update.Next(nil, in, o)
	if len(told) != 1 || told[0].URL != page || told[0].Score != 2 || told[0].Interval != 30*24*time.Hour {
		t.Fatalf("Scoring got %+v", told)
	}
	if of, _ := got.Meta.Get("of"); of != "the fetcher" || got.URL != page || got.Score != 3 || got.Status != crawldb.Fetched || !got.LastFetch.Equal(noon) {
		t.Errorf("%+v", got)
	}
}

// A page that is visited without being listed goes on from the record that is known, or
// begins as a new one; a page that was not parsed has the signature of its visit, if that has one.
func TestNutchVisitedButNotListed(t *testing.T) {
	const day = 24 * time.Hour
	o := nutchOptions(schedule.Default{NutchCompat: true})
	o.Scoring = scoring.Base{}
	old := crawldb.Datum{URL: page, Status: crawldb.Fetched, Score: 4, Interval: 10 * day, Modified: noon.Add(-9 * day), LastFetch: noon.Add(-10 * day), Signature: []byte{1}, Meta: crawldb.MetaOf("a", "b")}
	for _, c := range []struct {
		old       *crawldb.Datum
		signature []byte
		want      crawldb.Datum
	}{
		{&old, []byte{2}, crawldb.Datum{Status: crawldb.Fetched, Score: 4, Interval: 10 * day, Signature: []byte{2}}},
		{&old, nil, crawldb.Datum{Status: crawldb.NotModified, Score: 4, Interval: 10 * day, Signature: []byte{1}}},
		{nil, []byte{2}, crawldb.Datum{Status: crawldb.Fetched, Interval: 30 * day, Signature: []byte{2}}},
	} {
		in := update.Input{URL: page, Segment: seg, Visit: &segment.Visit{URL: page, Time: noon, Signature: c.signature, Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}}}
		got := update.Next(c.old, in, o)
		if got.URL != page || got.Status != c.want.Status || got.Score != c.want.Score || got.Interval != c.want.Interval || string(got.Signature) != string(c.want.Signature) || !got.LastFetch.Equal(noon) {
			t.Errorf("%v, signature %v: %+v", c.old != nil, c.signature, got)
		}
		if a, _ := got.Meta.Get("a"); c.old != nil && a != "b" {
			t.Errorf("metadata of the record are lost: %+v", got)
		}
	}
}

// weighing is a filter whose figures are its own.
type weighing struct{ scoring.Base }

func (weighing) Updated(_, d *crawldb.Datum, _ scoring.Flow) { d.Score += 4 }

func (weighing) Priority(_ *crawldb.Datum, score float32) float32 { return 2 * score }

// Whatever a segment says of a page, its score is adjusted once, and its place among
// those that are due follows.
func TestNutchCompatScoresAndPriorities(t *testing.T) {
	links := []scoring.Link{{From: "http://from.example/", URL: page, Score: 1}}
	old := &crawldb.Datum{URL: page, Status: crawldb.Fetched, Score: 1, Interval: day, FetchTime: noon, LastFetch: noon.Add(-day)}
	for name, c := range map[string]struct {
		old *crawldb.Datum
		in  update.Input
	}{
		"visited":     {old, update.Input{Listed: old, Visit: visitAt(noon, protocol.Success)}},
		"failed":      {old, update.Input{Listed: old, Visit: visitAt(noon, protocol.Failed)}},
		"linked":      {old, update.Input{Links: links}},
		"new":         {nil, update.Input{Links: links}},
		"gave":        {old, update.Input{Parse: &segment.Parse{URL: page, Gave: 1}}},
		"has a share": {old, update.Input{Shared: 1}},
	} {
		o := nutchOptions(schedule.Default{NutchCompat: true})
		o.Scoring = weighing{}
		c.in.URL, c.in.Segment = page, seg
		if d := update.Next(c.old, c.in, o); d == nil || d.Score != 5 || d.Priority != 10 {
			t.Errorf("%s: %+v, want a score of 5 and a priority of 10", name, d)
		}
	}
}

// noting keeps the visits that a schedule gets.
type noting struct {
	schedule.Default
	visit *schedule.Visit
}

func (n noting) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	*n.visit = v
	return n.Default.Fetched(d, v)
}

// The visit before is that of the current record, the time of change that of the list.
func TestNutchCompatPrecedingVisit(t *testing.T) {
	current := &crawldb.Datum{URL: page, Status: crawldb.Fetched, Interval: day, LastFetch: noon.Add(-day), Modified: noon.Add(-2 * day)}
	listed := &crawldb.Datum{URL: page, Status: crawldb.Fetched, Interval: day, LastFetch: noon.Add(-3 * day), Modified: noon.Add(-4 * day)}
	for _, c := range []struct {
		old  *crawldb.Datum
		want time.Time
	}{{current, current.LastFetch}, {nil, listed.LastFetch}} {
		var got schedule.Visit
		in := update.Input{URL: page, Segment: seg, Listed: listed, Visit: visitAt(noon, protocol.Success), Parse: parsed("A")}
		update.Next(c.old, in, nutchOptions(noting{schedule.Default{NutchCompat: true}, &got}))
		if !got.PrevFetch.Equal(c.want) || !got.PrevModified.Equal(listed.Modified) || !got.Time.Equal(noon) {
			t.Errorf("with a record %t: %+v", c.old != nil, got)
		}
	}
}
