package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// Failures counts the visits without a result: those that the crawler refused by its own
// rules, and those that failed.
type Failures struct {
	refused, failed reasons
	others          int
}

// reasons counts visits by outcome and reason. Reasons are our own classes, so there
// are few.
type reasons map[[2]string]int

// Add counts a visit; it is an OnVisit of a fetch.
func (t *Failures) Add(v segment.Visit, _ fetch.Progress) {
	m := &t.failed
	switch v.Outcome.Code {
	case protocol.Refused:
		m = &t.refused
	case protocol.Failed, protocol.RobotsFailed:
	default:
		t.others++
		return
	}
	if *m == nil {
		*m = reasons{}
	}
	(*m)[[2]string{v.Outcome.Code.String(), v.Outcome.Reason}]++
}

// Report says why visits were refused, which nothing else reports, and why they failed, if
// asked to or if no visit succeeded.
func (t *Failures) Report(w io.Writer, verbose bool) {
	t.refused.report(w)
	if verbose || t.others == 0 {
		t.failed.report(w)
	}
}

// maxRefusedSeeds is how many refused seeds are printed.
const maxRefusedSeeds = 20

// RefusedSeeds names seeds that were not requested, and says why.
func RefusedSeeds(w io.Writer, visits []segment.Visit) {
	for i, v := range visits {
		if i == maxRefusedSeeds {
			fmt.Fprintf(w, "recrawl: and %d more\n", len(visits)-i)
			return
		}
		fmt.Fprintf(w, "recrawl: the seed %s was not requested: %s\n", v.URL, v.Outcome.Reason)
	}
}

// RefusedSeedsJSON returns the same for JSON.
func RefusedSeedsJSON(visits []segment.Visit) []map[string]string {
	list := []map[string]string{}
	for _, v := range visits {
		list = append(list, map[string]string{"url": v.URL, "outcome": v.Outcome.Code.String(), "reason": v.Outcome.Reason})
	}
	return list
}

// retryHint ends a hint: refused pages are due again only in weeks.
const retryHint = ", and -adddays 90 retries before the page is due again"

func (r reasons) report(w io.Writer) {
	for i, why := range slices.SortedFunc(maps.Keys(r), func(x, y [2]string) int {
		return cmp.Or(r[y]-r[x], cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	}) {
		if i == 5 {
			fmt.Fprintf(w, "recrawl: and %d more reasons\n", len(r)-i)
			return
		}
		hint := ""
		switch why[1] {
		case "address: loopback", "address: private use", "address: link-local", "address: unique local":
			hint = "; -allow-private allows loopback, private and link-local ones" + retryHint
		default:
			if strings.HasPrefix(why[1], "url: port ") {
				hint = "; -allow-port allows it" + retryHint
			}
		}
		fmt.Fprintf(w, "recrawl: %d %s: %s%s\n", r[why], why[0], why[1], hint)
	}
}
