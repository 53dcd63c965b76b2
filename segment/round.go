package segment

import (
	"fmt"
	"strconv"
	"strings"
)

// A Round says how far the round of a segment has come after its update. The crawl db keeps
// it in the mark [RoundMark], as what String returns. The zero value is that of a segment
// without such a mark.
type Round struct {
	// Delivered is the number of blocks of visits that were delivered as events.
	Delivered int
	// Done says that nothing is left to do.
	Done bool
	// Number is the place of the segment in the change feed, from 1; zero if its events are not in
	// the feed: not yet, or because it is merged of others, or of a former version.
	Number int64
}

// RoundMark is the name of the mark that says how far the round of a segment has come. Marks
// whose names add a slash and more are of the same segment.
func RoundMark(segment string) string { return "round/" + segment }

const (
	roundDone      = "done"
	roundDelivered = "pages "
	roundNumber    = " #"
)

// String returns the contents of the mark.
func (r Round) String() string {
	number := ""
	if r.Number > 0 {
		number = roundNumber + strconv.FormatInt(r.Number, 10)
	}
	switch {
	case r.Done:
		return roundDone + number
	case r.Delivered == 0 && r.Number == 0:
		return ""
	}
	return roundDelivered + strconv.Itoa(r.Delivered) + number
}

// ParseRound reads what String returned. Any other text is an error.
func ParseRound(mark string) (Round, error) {
	var r Round
	text, number, numbered := strings.Cut(mark, roundNumber)
	if numbered {
		r.Number, _ = strconv.ParseInt(number, 10, 64)
	}
	if n, ok := strings.CutPrefix(text, roundDelivered); ok {
		r.Delivered, _ = strconv.Atoi(n)
	} else {
		r.Done = text == roundDone
	}
	if r.Delivered >= 0 && r.Number >= 0 && (r.String() == mark || mark == roundDelivered+"0") {
		return r, nil
	}
	return Round{}, fmt.Errorf("segment: invalid mark of a round: %q", mark)
}
