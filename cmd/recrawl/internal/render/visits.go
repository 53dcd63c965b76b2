package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// OutcomesJSON returns numbers of visits by the name of their outcome.
func OutcomesJSON(visits map[protocol.Code]int) map[string]int {
	m := map[string]int{}
	for code, n := range visits {
		m[code.String()] = n
	}
	return m
}

// Outcomes prints a line for each outcome of visits, in the order of their codes.
func Outcomes(w io.Writer, visits map[protocol.Code]int) {
	codes := make([]protocol.Code, 0, len(visits))
	for code := range visits {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		fmt.Fprintf(w, "  %-13s %d\n", code, visits[code])
	}
}

// RedirectsJSON returns what became of redirects.
func RedirectsJSON(r *fetch.Redirects) map[string]int {
	return map[string]int{"followed": r.Followed, "limit": r.Limit, "loops": r.Loops, "rejected": r.Rejected, "waiting": r.Waiting, "downgrades": r.Downgrades}
}

// Redirects says what became of redirects; empty if there were none.
func Redirects(r *fetch.Redirects) string {
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
