package render

import (
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/schedule"
)

// What was found within the first hour is no ground for a forecast.
func TestBacklogOfYoungCrawl(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for since, want := range map[time.Duration]string{
		10 * time.Second: "9; since 2026-01-05T07:59:50.000Z, 1000 a day were visited for the first time and 5000 found",
		2 * time.Hour:    "9; since 2026-01-05T06:00:00.000Z, 1000 a day were visited for the first time and 5000 found, so the backlog never clears",
	} {
		var f recrawl.Freshness
		f.At, f.Never = now, 9
		f.Trend = schedule.BacklogTrend{Since: now.Add(-since), Visited: 1000, Found: 5000}
		if got := backlog(&f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Age(20*time.Microsecond) + " " + Age(0) + " " + Age(90*time.Second); got != "0 0 90s" {
		t.Error(got)
	}
}
