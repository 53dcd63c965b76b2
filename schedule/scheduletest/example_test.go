package scheduletest_test

import (
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/scheduletest"
)

// eager fetches a page again as soon as it was fetched.
type eager struct{ schedule.Default }

func (s eager) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	d = s.Default.Fetched(d, v)
	d.FetchTime = v.Time
	return d
}

// Check tells a program which laws a schedule breaks.
func ExampleCheck() {
	err := scheduletest.Check(scheduletest.Harness{New: func() schedule.FetchSchedule { return eager{} }})
	rule, _, _ := strings.Cut(err.Error(), " is broken")
	fmt.Println(rule)
	// Output: rule "the next fetch is after the visit"
}
