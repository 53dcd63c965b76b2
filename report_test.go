package recrawl

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

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

func TestReportPrintsItself(t *testing.T) {
	r := Report{Rounds: 2, Visits: map[protocol.Code]int{protocol.Success: 11, protocol.NotFound: 1}, Bytes: 48_200, Links: 40, Events: 12, Elapsed: 3100 * time.Millisecond}
	if got, want := r.String(), "2 rounds: 12 pages visited (11 success, 1 not_found), 48.2 kB, 40 links, 12 events, in 3.1s"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r = Report{Damaged: []string{"a"}, NextDue: time.Unix(1e9, 0).UTC()}
	if got, want := r.String(), "0 rounds: 0 pages visited, 0.0 kB, 0 links, 0 events, in 0s; 1 damaged segment; the next page is due at 2001-09-09T01:46:40Z"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Refused pages and damaged segments end no round, and are easily missed: Err names them.
func TestReportErrNamesRefusedPagesAndDamage(t *testing.T) {
	if err := (Report{Visits: map[protocol.Code]int{protocol.Success: 5, protocol.NotFound: 7}}).Err(); err != nil {
		t.Errorf("of a page that is missing: %v", err)
	}
	why := errors.New("http://127.0.0.1/: a private address")
	var r Report
	r.add(Report{Visits: map[protocol.Code]int{protocol.Refused: 2}, refused: why})
	r.add(Report{Damaged: []string{"20260101"}})
	if err := r.Err(); !errors.Is(err, why) || !strings.Contains(err.Error(), "2 pages") || !strings.Contains(err.Error(), "20260101") {
		t.Errorf("got %v", err)
	}
}
