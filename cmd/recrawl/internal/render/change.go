package render

import (
	"encoding/hex"
	"time"

	"github.com/recrawl/recrawl"
)

// ChangeJSON is an event of the change feed as a line of JSON.
type ChangeJSON struct {
	Position   string              `json:"position"`
	Kind       string              `json:"kind"`
	URL        string              `json:"url,omitempty"`
	Time       *time.Time          `json:"time,omitempty"`
	Segment    string              `json:"segment,omitempty"`
	Outcome    string              `json:"outcome,omitempty"`
	Location   string              `json:"location,omitempty"`
	Reason     string              `json:"reason,omitempty"`
	Signature  string              `json:"signature,omitempty"`
	ParseError string              `json:"parse_error,omitempty"`
	Previous   *PreviousChangeJSON `json:"previous,omitempty"`
	// Text, PreviousText and Diff are set by the caller.
	Text         *string            `json:"text,omitempty"`
	PreviousText *string            `json:"previous_text,omitempty"`
	Diff         *recrawl.EventDiff `json:"diff,omitempty"`
}

// PreviousChangeJSON is the state of a page before a visit.
type PreviousChangeJSON struct {
	Kind      string     `json:"kind,omitempty"`
	Time      *time.Time `json:"time,omitempty"`
	Signature string     `json:"signature,omitempty"`
}

// NewChangeJSON returns an event without its texts.
func NewChangeJSON(e *recrawl.PageEvent) ChangeJSON {
	j := ChangeJSON{
		Position: e.Position, Kind: e.Kind.String(), URL: e.URL, Time: TimeOrNil(e.Visit.Time), Segment: e.Segment,
		Location: e.Visit.Outcome.Location, Reason: e.Visit.Outcome.Reason,
		Signature: hex.EncodeToString(e.Signature), ParseError: e.ParseError,
	}
	if e.Segment != "" {
		j.Outcome = e.Visit.Outcome.Code.String()
	}
	if p := e.Previous; !p.Time.IsZero() {
		j.Previous = &PreviousChangeJSON{Time: TimeOrNil(p.Time), Signature: hex.EncodeToString(p.Signature)}
		if p.Kind != 0 {
			j.Previous.Kind = p.Kind.String()
		}
	}
	return j
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
