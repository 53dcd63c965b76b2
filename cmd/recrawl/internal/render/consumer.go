package render

import (
	"fmt"
	"io"
	"time"

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

// ConsumerJSON is the status of a consumer of the change feed.
type ConsumerJSON struct {
	Name         string     `json:"consumer"`
	Registered   *time.Time `json:"registered,omitempty"`
	Acknowledged *time.Time `json:"acknowledged,omitempty"`
	EveryVisit   bool       `json:"every_visit"`
	Segments     int        `json:"segments"`
	Events       int        `json:"events"`
	Bytes        int64      `json:"bytes"`
	Oldest       *time.Time `json:"oldest,omitempty"`
	Snapshot     bool       `json:"snapshot"`
	Lapsed       *time.Time `json:"lapsed,omitempty"`
	Lapses       int        `json:"lapses"`
}

// NewConsumersJSON returns the status of all consumers.
func NewConsumersJSON(all []recrawl.ConsumerStatus) []ConsumerJSON {
	out := []ConsumerJSON{}
	for _, s := range all {
		out = append(out, ConsumerJSON{
			s.Name, TimeOrNil(s.Registered), TimeOrNil(s.Acknowledged), s.EveryVisit, s.Segments, s.Events, s.Bytes,
			TimeOrNil(s.Oldest), s.Snapshot, TimeOrNil(s.Lapsed), s.Lapses,
		})
	}
	return out
}
