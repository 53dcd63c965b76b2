package render

import (
	"fmt"
	"io"

	"github.com/recrawl/recrawl"
)

// Consumers writes a line for each consumer of the change feed.
func Consumers(w io.Writer, all []recrawl.ConsumerStatus) {
	for _, s := range all {
		fmt.Fprintf(w, "consumer:\t%s, ", s.Name)
		switch {
		case s.Snapshot:
			fmt.Fprint(w, "reads a snapshot")
		case s.Segments == 0:
			fmt.Fprint(w, "has read everything")
		default:
			fmt.Fprintf(w, "behind by at most %s in %s, %s, since %s", Count(s.Events, "event"), Count(s.Segments, "segment"), Size(s.Bytes), Time(s.Oldest))
		}
		if s.Lapses > 0 {
			fmt.Fprintf(w, "; lapsed %s, last %s", Count(s.Lapses, "time"), Time(s.Lapsed))
		}
		fmt.Fprintln(w)
	}
}
