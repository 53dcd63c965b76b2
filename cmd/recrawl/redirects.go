package main

import (
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/segment"
)

func redirects(r *fetch.Redirects) map[string]int {
	return map[string]int{"followed": r.Followed, "limit": r.Limit, "loops": r.Loops, "rejected": r.Rejected, "waiting": r.Waiting, "downgrades": r.Downgrades}
}

// redirectText says what became of redirects; empty if there were none.
func redirectText(r *fetch.Redirects) string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.Followed, "followed"}, {r.Limit, "one too many"}, {r.Loops, "in loops"}, {r.Rejected, "rejected by the rules"},
		{r.Waiting, "to hosts that must wait"}, {r.Downgrades, "from https to http"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}

// visitText says how a visit ended, where it led, and what led there.
func visitText(v *segment.Visit) string {
	t := v.Outcome.Code.String()
	if v.Outcome.Status != 0 {
		t += fmt.Sprintf(" (%d)", v.Outcome.Status)
	}
	if v.Outcome.Location != "" {
		t += " to " + v.Outcome.Location
	}
	if v.Outcome.Reason != "" {
		t += ": " + v.Outcome.Reason
	}
	if v.Via != "" {
		t += fmt.Sprintf("; redirect %d in a row, from %s", v.Hops, v.Via)
	}
	return t
}
