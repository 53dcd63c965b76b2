package recrawl

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/page/diff"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// EventDiff is how a page differs from what it was before a visit.
type EventDiff struct {
	// Since is when the page was visited that is compared with.
	Since time.Time `json:"since"`
	// Fields are the fields with another value, in a fixed order; those of Meta under "meta." and their
	// name, by name.
	Fields []FieldChange `json:"fields,omitempty"`
	// LinksAdded and LinksRemoved are outlinks that the crawl follows: the first hundred each.
	LinksAdded   []string `json:"links_added,omitempty"`
	LinksRemoved []string `json:"links_removed,omitempty"`
	// Text is how the texts differ; nil if they have the same words, or if the visit brought no content.
	Text []diff.Part `json:"text,omitempty"`
}

// FieldChange is a field of a page with its values; one that is empty was not there. Several values
// of one name are joined by line breaks.
type FieldChange struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// maxLinksOfDiff is how many links an EventDiff names.
const maxLinksOfDiff = 100

// Diff returns how the page differs from what it was before the visit: fields such as title, outcome and
// content_type, links, and the words of the text, with so many words beside each change. A negative
// context keeps the whole text. ok is false if the page had no content before, or if no segment that is kept has it:
// see PreviousText, which takes as long.
func (e *PageEvent) Diff(ctx context.Context, context int) (d EventDiff, ok bool, err error) {
	before, err := e.previous(ctx)
	if err != nil || before == nil {
		return d, false, err
	}
	old, err := before.Parsed(ctx)
	if errors.Is(err, segment.ErrNotFound) { // removed since
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	now, err := e.Parsed(ctx)
	if err != nil {
		return d, false, err
	}
	d.Since = before.Visit.Time
	d.visit(&before.Visit, &e.Visit)
	if e.Visit.Outcome.Code != protocol.Success {
		return d, true, nil
	}
	d.parsed(&old, &now)
	oldText, err := before.Text(ctx)
	if errors.Is(err, segment.ErrNotFound) {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	text, err := e.Text(ctx)
	if err != nil {
		return d, false, err
	}
	d.Text = diff.Words(oldText, text, context)
	return d, true, nil
}

func (d *EventDiff) field(name, before, after string) {
	if before != after {
		d.Fields = append(d.Fields, FieldChange{name, before, after})
	}
}

// visit compares two visits.
func (d *EventDiff) visit(before, after *segment.Visit) {
	d.field("outcome", before.Outcome.Code.String(), after.Outcome.Code.String())
	status := func(v *segment.Visit) string {
		if v.Outcome.Status == 0 {
			return ""
		}
		return strconv.Itoa(v.Outcome.Status)
	}
	d.field("status", status(before), status(after))
	d.field("location", before.Outcome.Location, after.Outcome.Location)
	d.field("reason", before.Outcome.Reason, after.Outcome.Reason)
	if after.Outcome.Code == protocol.Success {
		d.field("content_type", before.ContentType, after.ContentType)
		d.field("last_modified", before.LastModified, after.LastModified)
	}
}

// parsed compares what was parsed.
func (d *EventDiff) parsed(before, after *page.Parsed) {
	d.field("title", before.Title, after.Title)
	d.field("canonical", before.Canonical, after.Canonical)
	d.field("refresh", before.Refresh, after.Refresh)
	d.field("charset", before.Charset, after.Charset)
	d.field("robots", robotsOf(before), robotsOf(after))
	old, now := metaOf(before), metaOf(after)
	var names []string
	for name := range old {
		names = append(names, name)
	}
	for name := range now {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		d.field("meta."+name, strings.Join(old[name], "\n"), strings.Join(now[name], "\n"))
	}
	d.LinksAdded, d.LinksRemoved = linksWithout(after, before), linksWithout(before, after)
}

// robotsOf returns the directives of a page as a meta element has them.
func robotsOf(p *page.Parsed) string {
	var words []string
	for _, w := range []struct {
		set  bool
		word string
	}{{p.NoIndex, "noindex"}, {p.NoFollow, "nofollow"}, {p.NoArchive, "noarchive"}, {!p.UnavailableAfter.IsZero(), "unavailable_after: " + p.UnavailableAfter.Format(time.RFC3339)}} {
		if w.set {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

func metaOf(p *page.Parsed) map[string][]string {
	m := map[string][]string{}
	for _, property := range p.Meta {
		m[property.Name] = append(m[property.Name], property.Value)
	}
	return m
}

// linksWithout returns the first outlinks of a page that another one does not have.
func linksWithout(p, other *page.Parsed) (links []string) {
	has := map[string]bool{}
	for i := range other.Outlinks {
		has[other.Outlinks[i].URL] = true
	}
	for i := range p.Outlinks {
		if l := p.Outlinks[i].URL; !has[l] && len(links) < maxLinksOfDiff {
			links = append(links, l)
		}
	}
	return links
}
