package recrawl

import "testing"

// The report of a Run that goes on for years does not grow.
func TestReportDoesNotGrow(t *testing.T) {
	var total Report
	for i := range 3000 {
		total.add(Report{Rounds: 1, Segments: []string{string(rune('a' + i%26))}})
	}
	if total.Rounds != 3000 || len(total.Segments) != mostSegments || cap(total.Segments) > 2*mostSegments || total.Segments[mostSegments-1] != string(rune('a'+2999%26)) {
		t.Errorf("%d rounds, %d names in room for %d", total.Rounds, len(total.Segments), cap(total.Segments))
	}
}
