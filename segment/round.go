package segment

import (
	"fmt"
	"strconv"
	"strings"
)

// A Round says how far the round of a segment has come after its update. The crawl db keeps
// it in the mark [RoundJob], as what String returns. The zero value is that of a segment
// without such a mark.
type Round struct {
	// Told is the number of blocks of visits that were delivered as events.
	Told int
	// Done says that nothing is left to do.
	Done bool
}

// RoundJob is the name of the mark that says how far the round of a segment has come. Marks
// whose names add a slash and more are of the same segment.
func RoundJob(segment string) string { return "round/" + segment }

const (
	roundDone = "done"
	roundTold = "pages "
)

// String returns the contents of the mark.
func (r Round) String() string {
	switch {
	case r.Done:
		return roundDone
	case r.Told == 0:
		return ""
	}
	return roundTold + strconv.Itoa(r.Told)
}

// ParseRound reads what String returned. Any other text is an error.
func ParseRound(mark string) (Round, error) {
	if n, ok := strings.CutPrefix(mark, roundTold); ok {
		if told, err := strconv.Atoi(n); err == nil && told >= 0 && strconv.Itoa(told) == n {
			return Round{Told: told}, nil
		}
	} else if mark == "" || mark == roundDone {
		return Round{Done: mark != ""}, nil
	}
	return Round{}, fmt.Errorf("segment: invalid mark of a round: %q", mark)
}
