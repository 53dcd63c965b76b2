package httpapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/httpapi/feed"
	"github.com/recrawl/recrawl/segment"
)

// changeList is a part of the changes.
type changeList struct {
	Since   time.Time `json:"since,omitzero"`
	Query   string    `json:"query,omitempty"`
	Kind    string    `json:"kind,omitempty"`
	Changes []change  `json:"changes"`
	// Read is how many events were read for it.
	Read int    `json:"read"`
	Next string `json:"next,omitempty"`
	next string // the place where the next part begins
}

// Kinds are the kinds of change.
func (changeList) Kinds() []string { return []string{"new", "changed", "moved", "gone", "refused"} }

// change is an event of the change feed.
type change struct {
	URL       string             `json:"url"`
	Kind      string             `json:"kind"`
	Time      time.Time          `json:"time"`
	Segment   string             `json:"segment"`
	Signature string             `json:"signature,omitempty"`
	Error     string             `json:"parse_error,omitempty"`
	Previous  feed.PreviousState `json:"previous,omitzero"`
}

// changeQuery says which changes are listed.
type changeQuery struct {
	since  time.Time
	within crawldb.Range
	kind   string
	from   string // segment, or segment.block.index; empty for the newest
	limit  int
	budget time.Duration // the most that it takes, if a limit is not reached before
}

func (h *Handler) changes(q *request) (any, error) {
	given := q.URL.Query()
	query := changeQuery{within: rangeOf(given.Get("q")), kind: given.Get("kind"), from: given.Get("after"), limit: listed, budget: time.Second}
	if text := given.Get("since"); text != "" {
		var err error
		if query.since, err = parseTime(text); err != nil {
			return nil, err
		}
	}
	list, err := h.findChanges(q.Context(), query)
	if err != nil {
		return nil, err
	}
	list.Since, list.Query, list.Kind = query.since, given.Get("q"), query.kind
	if list.next != "" {
		list.Next = "?" + url.Values{"since": {given.Get("since")}, "q": {list.Query}, "kind": {query.kind}, "after": {list.next}}.Encode()
	}
	return list, nil
}

// parseTime reads a time or a day.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, badRequestf("%q is no time such as 2026-11-27T12:00:00Z or 2026-11-27", text)
}

// findChanges lists changes, the newest segment first, and those of a segment in the order of its
// visits. A segment that began before since is not read.
func (h *Handler) findChanges(ctx context.Context, query changeQuery) (changeList, error) {
	list, began := changeList{Changes: []change{}}, time.Now()
	names, err := h.newestSegments(ctx)
	if err != nil {
		return list, err
	}
	start, block, index := "", 0, 0
	if query.from != "" {
		if parts := strings.Split(query.from, "."); len(parts) == 3 {
			_, err = fmt.Sscanf(parts[1]+" "+parts[2], "%d %d", &block, &index)
			start = parts[0]
		}
		if start == "" || err != nil || block < 0 || index < 0 {
			return list, badRequestf("after is %q, which is no place in the changes", query.from)
		}
	}
	for _, name := range names {
		if start != "" && name > start {
			continue
		}
		if name != start {
			block, index = 0, 0
		}
		if at := segment.TimeOf(name); !query.since.IsZero() && !at.IsZero() && at.Before(query.since) {
			break
		}
		for events, err := range segment.Blocks[segment.Event](ctx, h.o.Stores.Segments, name, block) {
			if skip, err := unreadable(ctx, err); err != nil {
				return list, err
			} else if skip {
				break
			}
			for i := index; i < len(events); i++ {
				if len(list.Changes) == query.limit {
					list.next = fmt.Sprintf("%s.%d.%d", name, block, i)
					return list, nil
				}
				list.Read++
				if e := &events[i]; e.Changed && query.within.Contains(crawldb.Key(e.URL)) && (query.kind == "" || recrawl.PageKind(e.Kind).String() == query.kind) {
					list.Changes = append(list.Changes, newChange(name, e))
				}
			}
			block, index = block+1, 0
			if time.Since(began) > query.budget {
				list.next = fmt.Sprintf("%s.%d.0", name, block)
				return list, nil
			}
		}
	}
	return list, nil
}

func newChange(name string, e *segment.Event) change {
	c := change{URL: e.URL, Kind: recrawl.PageKind(e.Kind).String(), Time: segment.TimeOf(name), Segment: name, Signature: hex.EncodeToString(e.Signature), Error: e.ParseError}
	if !e.PreviousTime.IsZero() {
		c.Previous = feed.PreviousState{Time: e.PreviousTime, Signature: hex.EncodeToString(e.PreviousSignature)}
		if e.PreviousKind != 0 {
			c.Previous.Kind = recrawl.PageKind(e.PreviousKind).String()
		}
	}
	return c
}
