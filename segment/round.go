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
}

// RoundMark is the name of the mark that says how far the round of a segment has come. Marks
// whose names add a slash and more are of the same segment.
func RoundMark(segment string) string { return "round/" + segment }

const (
	roundDone      = "done"
	roundDelivered = "pages "
)

// String returns the contents of the mark.
func (r Round) String() string {
	switch {
	case r.Done:
		return roundDone
	case r.Delivered == 0:
		return ""
	}
	return roundDelivered + strconv.Itoa(r.Delivered)
}

// ParseRound reads what String returned. Any other text is an error.
func ParseRound(mark string) (Round, error) {
	if n, ok := strings.CutPrefix(mark, roundDelivered); ok {
		if told, err := strconv.Atoi(n); err == nil && told >= 0 && strconv.Itoa(told) == n {
			return Round{Delivered: told}, nil
		}
	} else if mark == "" || mark == roundDone {
		return Round{Done: mark != ""}, nil
	}
	return Round{}, fmt.Errorf("segment: invalid mark of a round: %q", mark)
}
