package main

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/scheduletest"
)

func TestNoVisitOnAWeekend(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if weekend := strings.HasPrefix(line, "S"); weekend != strings.HasSuffix(line, " 0 visits\n") {
			t.Errorf("%s", line)
		}
	}
}

// Every law of schedule.FetchSchedule.
func TestSchedule(t *testing.T) {
	scheduletest.Run(t, scheduletest.Harness{New: func() schedule.FetchSchedule { return newWorkdays() }})
}
