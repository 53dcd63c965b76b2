package main

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

// trouble counts the visits that came to nothing: those that a rule of ours kept
// from being made, and those that failed.
type trouble struct {
	refused, failed reasons
	others          int
}

// reasons counts visits by what became of them and why. Reasons are classes of
// ours, so that there are few.
type reasons map[[2]string]int

func (t *trouble) note(v segment.Visit, _ fetch.Progress) {
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

// tell says why visits were refused, for nobody else knows, and why they failed, if
// that is asked for or none came to anything.
func (t *trouble) tell(w io.Writer, verbose bool) {
	t.refused.tell(w)
	if verbose || t.others == 0 {
		t.failed.tell(w)
	}
}

// before ends a hint: what was refused is due again in weeks.
const before = ", and -adddays 90 does so before it is due again"

func (r reasons) tell(w io.Writer) {
	for i, why := range slices.SortedFunc(maps.Keys(r), func(x, y [2]string) int {
		return cmp.Or(r[y]-r[x], cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	}) {
		if i == 5 {
			fmt.Fprintf(w, "recrawl: and for %d more reasons\n", len(r)-i)
			return
		}
		hint := ""
		switch why[1] {
		case "address: loopback", "address: private use", "address: link-local", "address: unique local":
			hint = "; -allow-private connects to loopback, private and link-local ones" + before
		default:
			if strings.HasPrefix(why[1], "url: port ") {
				hint = "; -allow-port asks it" + before
			}
		}
		fmt.Fprintf(w, "recrawl: %d %s: %s%s\n", r[why], why[0], why[1], hint)
	}
}
