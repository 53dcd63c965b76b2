// Package feed delivers the change feed of a crawl over HTTP: as webhooks that are signed and tried again,
// and as server-sent events. It keeps no feed of its own: a webhook reads a consumer of the crawl. Start
// with Webhook and Events.
package feed

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/recrawl/recrawl"
)

// Change is an event of the change feed as JSON; docs/json.md describes the names. Text, PreviousText and
// Diff are nil if they were not asked for or are not known.
type Change struct {
	Position     string             `json:"position"`
	Kind         string             `json:"kind"`
	URL          string             `json:"url,omitempty"`
	Time         time.Time          `json:"time,omitzero"`
	Segment      string             `json:"segment,omitempty"`
	Outcome      string             `json:"outcome,omitempty"`
	Location     string             `json:"location,omitempty"`
	Reason       string             `json:"reason,omitempty"`
	Signature    string             `json:"signature,omitempty"`
	ParseError   string             `json:"parse_error,omitempty"`
	Previous     *PreviousState     `json:"previous,omitempty"`
	Text         *string            `json:"text,omitempty"`
	PreviousText *string            `json:"previous_text,omitempty"`
	Usage        string             `json:"usage,omitempty"`
	Diff         *recrawl.EventDiff `json:"diff,omitempty"`
}

// PreviousState is the state of a page before a visit.
type PreviousState struct {
	Kind      string    `json:"kind,omitempty"`
	Time      time.Time `json:"time"`
	Signature string    `json:"signature,omitempty"`
}

// Detail says which parts of a page are added to its event.
type Detail struct {
	// Text adds the text, that before the change, and what the page and its site say it may be used for.
	Text bool
	// Diff adds how fields, links and words differ from before.
	Diff bool
}

// diffContext is how many words beside a change a diff has.
const diffContext = 8

// NewChange returns an event as JSON. The previous text and the diff are left out if the segment of the
// previous text was removed.
func NewChange(ctx context.Context, e *recrawl.PageEvent, with Detail) (Change, error) {
	c := Change{
		Position: e.Position, Kind: e.Kind.String(), URL: e.URL, Time: jsonTime(e.Visit.Time), Segment: e.Segment,
		Location: e.Visit.Outcome.Location, Reason: e.Visit.Outcome.Reason,
		Signature: hex.EncodeToString(e.Signature), ParseError: e.ParseError,
	}
	if e.Segment != "" {
		c.Outcome = e.Visit.Outcome.Code.String()
	}
	if p := e.Previous; !p.Time.IsZero() {
		c.Previous = &PreviousState{Time: jsonTime(p.Time), Signature: hex.EncodeToString(p.Signature)}
		if p.Kind != 0 {
			c.Previous.Kind = p.Kind.String()
		}
	}
	if with.Text {
		text, err := e.Text(ctx)
		if err != nil {
			return c, err
		}
		c.Text = &text
		if text, ok, err := e.PreviousText(ctx); err != nil {
			return c, err
		} else if ok {
			c.PreviousText = &text
		}
		usage, err := e.Usage(ctx)
		if err != nil {
			return c, err
		}
		c.Usage = usage.String()
	}
	if with.Diff {
		d, ok, err := e.Diff(ctx, diffContext)
		if err != nil {
			return c, err
		}
		if ok {
			c.Diff = &d
		}
	}
	return c, nil
}

// jsonTime returns the nearest time that JSON can hold: one of the years 1 to 9999.
func jsonTime(t time.Time) time.Time {
	if last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC); t.After(last) {
		return last
	}
	if t.IsZero() || t.Before(time.Time{}) {
		return time.Time{}
	}
	return t.UTC()
}
