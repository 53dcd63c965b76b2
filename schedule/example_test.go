package schedule_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

func ExampleAdaptive() {
	s := schedule.Adaptive{DecRate: 0.5} // zero fields have Nutch's defaults
	now := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)

	d := s.Init(crawldb.Datum{URL: "http://example.com/"}, now)
	for _, change := range []schedule.Change{schedule.Unknown, schedule.Changed, schedule.Unchanged} {
		d = s.Fetched(d, schedule.Visit{Time: d.FetchTime, Change: change, PrevModified: d.Modified})
		fmt.Printf("%s: every %v, next on %s\n", change, d.Interval, d.FetchTime.Format(time.DateOnly))
	}
	// Output:
	// unknown: every 720h0m0s, next on 2025-07-01
	// changed: every 360h0m0s, next on 2025-07-16
	// unchanged: every 504h0m0s, next on 2025-08-06
}

func ExampleMimeAdaptive() {
	types, err := schedule.ParseMimeRates(strings.NewReader("application/pdf 1.0 0.1\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	s := schedule.MimeAdaptive{Types: types}
	d := crawldb.Datum{Interval: 24 * time.Hour}
	for _, t := range []string{"text/html", "application/pdf"} {
		fmt.Println(t, s.Fetched(d, schedule.Visit{Change: schedule.Unchanged, ContentType: t}).Interval)
	}
	// Output:
	// text/html 33h36m0s
	// application/pdf 48h0m0s
}

// A schedule of one's own embeds a stock one and replaces what it decides
// otherwise. This one forgets pages that are gone for a year.
func ExampleFetchSchedule() {
	var s schedule.FetchSchedule = patient{}
	d := s.Gone(crawldb.Datum{}, schedule.Visit{Time: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)})
	fmt.Println(d.FetchTime.Format(time.DateOnly))
	// Output:
	// 2026-01-01
}

type patient struct{ schedule.Default }

const year = 365 * 24 * time.Hour

func (patient) Gone(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	d.Interval = year
	d.FetchTime = v.Time.Add(year)
	return d
}

// Due replaces that of Default, which takes a time beyond 90 days for a fault;
// so Horizon has to be replaced too.
func (patient) Due(d *crawldb.Datum, now time.Time) bool { return !d.FetchTime.After(now) }

func (patient) Horizon() time.Duration { return 0 }
