package recrawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// PageKind says what a visit found.
type PageKind uint8

const (
	// PageNew: content where none was known before.
	PageNew PageKind = iota + 1
	// PageChanged: other content than before.
	PageChanged
	// PageUnchanged: the same content as before, sent again or not.
	PageUnchanged
	// PageMoved: a redirect; Visit.Outcome.Location says where to.
	PageMoved
	// PageGone: there is nothing there, or nothing that this crawl may fetch.
	PageGone
	// PageRefused: a seed that was not requested, because robots.txt forbids it or a rule of
	// ours, such as the guard against private addresses; Visit.Outcome.Reason says which.
	PageRefused
	// PageKnown: the crawl has content of the page. PageKnown, PageMoved and PageGone between
	// SnapshotBegin and SnapshotEnd are the states of all pages: see [Consumer].
	PageKnown
	SnapshotBegin
	SnapshotEnd
)

// String returns "new", "changed", "unchanged", "moved", "gone", "refused", "known", "snapshot_begin"
// or "snapshot_end".
func (k PageKind) String() string {
	names := [...]string{"unknown", "new", "changed", "unchanged", "moved", "gone", "refused", "known", "snapshot_begin", "snapshot_end"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[0]
}

// PageState is what the crawl knew of a page at some time.
type PageState struct {
	// Kind is PageMoved or PageGone if that is what the last visit found, PageUnchanged if
	// the page had content, and zero if it was not visited or never answered.
	Kind PageKind
	// Time is when the page was last visited, zero if never.
	Time time.Time
	// Signature is the fingerprint of the content; nil if there was none.
	Signature []byte
}

// PageEvent describes a visit to one page that found a change, or any visit with
// Options.EveryVisit. There is no event for a visit that
// failed and will be retried, nor for one that seems older than the visit before, because the clock
// was set back for a while, which the update leaves out, nor for a page that this crawl has never had and
// did not ask for, because robots.txt forbids it, or a rule of ours such as the
// guard against private addresses, unless the page is a seed; nor for the pages of a host that no longer
// answers, which wait for it for months before they are gone (see
// fetch.Options.Politeness.GoneAfter). Sitemaps are not pages.
//
// A page is refused if it is a seed that this crawl has never had and did not ask for. A page is
// moved when a visit finds a redirect where there was none, and gone when a visit
// finds nothing where that was not known; content that comes back is new. A redirect that
// leads elsewhere than before is no change, and neither is another reason for a page to be
// missing.
//
// There is content only if the server sent some in this visit, and text only if a
// parser reads it: an unchanged page often has neither, a picture has no text. A
// page that was sent again with the same text is unchanged, but may have begun to
// ask not to be indexed, or ceased to: its Parsed says so. If that is only in the header
// of an answer "not modified", the fetch requests the page again. A page whose content
// could not be parsed has a ParseError and no Signature, and counts as new once it can be
// parsed.
//
// An event may be kept, and its methods called from many goroutines at once. What they
// return is shared with other calls and must not be changed.
type PageEvent struct {
	URL  string
	Kind PageKind
	// Visit is how the visit ended.
	Visit segment.Visit
	// Signature is the fingerprint of the content; nil if there is none.
	Signature []byte
	// Previous is the state of the page before the visit.
	Previous PageState
	// ParseError says why the content could not be parsed; empty if it was
	// parsed, or if no parser reads its type.
	ParseError string
	// Segment names the segment that holds the parts of the page; empty in a snapshot.
	Segment string
	// Position is the place of the event in the change feed. It is the same whenever the event
	// is delivered, and identifies it.
	Position string

	parts *blockParts
}

// blockEvent is an event of a block of a segment.
type blockEvent struct {
	PageEvent
	changed bool // the visit found a change
}

// writeEvents writes the events of a segment whose update is done, unless that was done before.
// They are written, and not made when somebody asks, because they compare with the state before
// the visit, and with that of the crawl db right after it.
func (c *Crawler) writeEvents(ctx context.Context, name string) error {
	err := c.writeEventPart(ctx, name)
	if err != nil {
		err = fmt.Errorf("recrawl: events of %s: %w", name, err)
	}
	return err
}

func (c *Crawler) writeEventPart(ctx context.Context, name string) error {
	if there, err := segment.Has[segment.Event](ctx, c.stores.Segments, name); err != nil || there {
		return err
	}
	prior, err := c.priorStates(ctx, name)
	if err != nil {
		return err
	}
	w, err := segment.NewWriter[segment.Event](ctx, c.stores.Segments, name, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	parses, stop := iter.Pull2(segment.Blocks[segment.Parse](ctx, c.stores.Segments, name, 0))
	defer stop()
	var events []segment.Event
	for visits, err := range segment.Blocks[segment.Visit](ctx, c.stores.Segments, name, 0) {
		if err != nil {
			return err
		}
		parsed, err, _ := parses()
		if err != nil {
			return err
		}
		if events, err = c.eventsOf(ctx, events[:0], visits, parsed, prior); err != nil {
			return err
		}
		if err := w.Append(ctx, events); err != nil {
			return err
		}
	}
	return w.Commit(ctx)
}

// eventsOf appends the events of one block, given its visits, what was parsed of them and the
// state of the pages before.
func (c *Crawler) eventsOf(ctx context.Context, events []segment.Event, visits []segment.Visit, parsed []segment.Parse, prior map[string]priorState) ([]segment.Event, error) {
	for i := range visits {
		v := &visits[i]
		e := PageEvent{URL: v.URL, Visit: *v}
		sitemap := false
		if len(parsed) > 0 && parsed[0].URL == v.URL { // not all visits have been parsed
			e.Signature, e.ParseError = parsed[0].Signature, parsed[0].Error
			sitemap = parsed[0].Sitemap
			parsed = parsed[1:]
		}
		state := prior[v.URL]
		e.Previous = state.pageState()
		if v.Outcome.Code == protocol.NotModified {
			e.Signature = e.Previous.Signature
		}
		if isSitemapVisit(state, v, sitemap) {
			continue
		}
		applied, err := c.visitIsApplied(ctx, v, state)
		if err != nil {
			return nil, err
		}
		if !applied {
			continue
		}
		if e.Kind, err = c.pageKind(ctx, &e, state.seed); err != nil {
			return nil, err
		}
		if e.Kind == 0 {
			continue
		}
		events = append(events, segment.Event{
			URL: v.URL, Kind: uint8(e.Kind), Changed: isChange(&e, state), Signature: e.Signature, ParseError: e.ParseError,
			PreviousKind: uint8(e.Previous.Kind), PreviousTime: e.Previous.Time, PreviousSignature: e.Previous.Signature,
		})
	}
	return events, nil
}

// eventBlocks yields the events of a segment, block by block from one of them on. number is the
// place of the segment in the feed.
func (c *Crawler) eventBlocks(ctx context.Context, name string, number int64, from int) iter.Seq2[[]blockEvent, error] {
	return func(yield func([]blockEvent, error) bool) {
		fail := func(err error) { yield(nil, fmt.Errorf("recrawl: events of %s: %w", name, err)) }
		visits, stop := iter.Pull2(segment.Blocks[segment.Visit](ctx, c.stores.Segments, name, from))
		defer stop()
		parts := newPageParts(ctx, c.stores.Segments, name)
		defer parts.close()
		block := from
		for recorded, err := range segment.Blocks[segment.Event](ctx, c.stores.Segments, name, from) {
			if err != nil {
				fail(err)
				return
			}
			visited, err, _ := visits()
			if err != nil {
				fail(err)
				return
			}
			previous := &previousEvents{c: c, number: number, wanted: map[string]string{}}
			p := &blockParts{from: parts, block: block, previous: previous}
			events := make([]blockEvent, 0, len(recorded))
			for i := range recorded {
				r := &recorded[i]
				for len(visited) > 0 && visited[0].URL != r.URL { // a visit without an event
					visited = visited[1:]
				}
				if len(visited) == 0 {
					fail(&segment.CorruptError{File: name + "/" + segment.EventPart, Offset: int64(block), Err: errors.New("an event without a visit")})
					return
				}
				if r.Changed && r.PreviousSignature != nil {
					previous.wanted[r.URL] = string(r.PreviousSignature)
				}
				events = append(events, blockEvent{PageEvent{
					URL: r.URL, Kind: PageKind(r.Kind), Visit: visited[0], Signature: r.Signature, ParseError: r.ParseError,
					Previous: PageState{Kind: PageKind(r.PreviousKind), Time: r.PreviousTime, Signature: r.PreviousSignature},
					Segment:  name, Position: feedPosition{number, block, i}.String(), parts: p,
				}, r.Changed})
			}
			if !yield(events, nil) {
				return
			}
			block++
		}
	}
}

// visitIsApplied reports whether the update changed the record of a page for a visit. It leaves out
// a visit that seems to be older than the one before, as when the clock was set back for a while.
func (c *Crawler) visitIsApplied(ctx context.Context, v *segment.Visit, before priorState) (bool, error) {
	if v.Time.UnixMilli() >= before.visited || v.Outcome.Code.Deferred() {
		return true, nil
	}
	d, err := c.stores.Crawl.Get(ctx, v.URL)
	if errors.Is(err, crawldb.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("recrawl: %w", err)
	}
	return d.LastFetch.UnixMilli() != before.visited, nil
}

// isSitemapVisit reports whether a visit was to a sitemap, given the record before
// the visit and whether the content is that of a sitemap.
func isSitemapVisit(state priorState, v *segment.Visit, sitemap bool) bool {
	return sitemap || state.sitemap && v.Outcome.Code != protocol.Success
}

// pageKind says what a visit to a page, which may be a seed, found; 0 if nothing.
func (c *Crawler) pageKind(ctx context.Context, e *PageEvent, seed bool) (PageKind, error) {
	code := e.Visit.Outcome.Code
	switch {
	case code == protocol.NotModified:
		return PageUnchanged, nil
	case code == protocol.Success && (e.Previous.Signature == nil || e.Previous.Kind != PageUnchanged):
		return PageNew, nil
	case code == protocol.Success && bytes.Equal(e.Previous.Signature, e.Signature):
		return PageUnchanged, nil
	case code == protocol.Success:
		return PageChanged, nil
	case code.Redirect():
		return PageMoved, nil
	case code.Deferred():
		return 0, nil
	case code.Transient():
		// Too many failures in a row make a page gone.
		d, err := c.stores.Crawl.Get(ctx, e.URL)
		if errors.Is(err, crawldb.ErrNotFound) { // deleted meanwhile
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("recrawl: %w", err)
		}
		if d.Status != crawldb.Gone {
			return 0, nil
		}
		return PageGone, nil
	case !code.Asked() && e.Previous.Signature == nil:
		if seed {
			return PageRefused, nil
		}
		return 0, nil // it was never there for this crawl
	default:
		return PageGone, nil
	}
}

// isChange reports whether a visit found something else than the one before.
func isChange(e *PageEvent, before priorState) bool {
	switch e.Kind {
	case PageUnchanged:
		return false
	case PageMoved, PageGone:
		return e.Kind != e.Previous.Kind
	case PageRefused:
		return e.Previous.Kind != PageGone // as which the record of a refused page is kept
	default:
		return e.ParseError == "" || before.status != crawldb.ParseFailed
	}
}
