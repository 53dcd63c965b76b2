package scheduletest_test

import (
	"errors"
	"fmt"

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
	var first *scheduletest.Error
	if errors.As(err, &first) {
		fmt.Println(first.Rule)
	}
	// Output: the next fetch is after the visit
}
