package recrawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
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
)

// String returns "new", "changed", "unchanged", "moved", "gone" or "refused".
func (k PageKind) String() string {
	names := [...]string{"unknown", "new", "changed", "unchanged", "moved", "gone", "refused"}
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
// failed and will be retried, nor for a page that this crawl has never had and
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
	// Segment names the segment that holds the parts of the page.
	Segment string

	parts *blockParts
}

// delivered counts the visits of a block for which OnPage has returned, so that this process
// does not report them again. Without it, an OnPage that fails once in a hundred calls would
// never get to the end of a block.
type delivered struct {
	segment       string
	block, visits int
}

// deliver hands the pages of a segment to OnPage, from the block its mark has
// reached.
func (c *Crawler) deliver(ctx context.Context, name string) (events int, err error) {
	if c.opts.OnPage == nil {
		return 0, nil
	}
	round, err := c.roundState(ctx, name)
	if err != nil {
		return 0, err
	}
	block := round.Delivered
	prior, err := c.priorStates(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("recrawl: %w", err)
	}
	parses, stop := iter.Pull2(segment.Blocks[segment.Parse](ctx, c.stores.Segments, name, block))
	defer stop()
	parts := newPageParts(ctx, c.stores.Segments, name)
	defer parts.close()
	for visits, err := range segment.Blocks[segment.Visit](ctx, c.stores.Segments, name, block) {
		if err != nil {
			return events, fmt.Errorf("recrawl: %w", err)
		}
		parsed, err, _ := parses()
		if err != nil {
			return events, fmt.Errorf("recrawl: %w", err)
		}
		n, err := c.deliverBlock(ctx, name, &blockParts{from: parts, block: block}, visits, parsed, prior)
		if events += n; err != nil {
			return events, err
		}
		block++
		if err := c.setMark(ctx, segment.RoundMark(name), segment.Round{Delivered: block}.String()); err != nil {
			return events, err
		}
	}
	return events, nil
}

// deliverBlock hands the pages of one block to OnPage, given their visits, what was parsed
// of them and the state of the pages before.
func (c *Crawler) deliverBlock(ctx context.Context, name string, parts *blockParts, visits []segment.Visit, parsed []segment.Parse, prior map[string]priorState) (events int, err error) {
	done := 0 // visits of the block that this process has delivered
	if c.delivered.segment == name && c.delivered.block == parts.block {
		done = c.delivered.visits
	}
	for i := range visits {
		v := &visits[i]
		e := PageEvent{URL: v.URL, Visit: *v, Segment: name, parts: parts}
		sitemap := false
		if len(parsed) > 0 && parsed[0].URL == v.URL { // not all visits have been parsed
			e.Signature, e.ParseError = parsed[0].Signature, parsed[0].Error
			sitemap = parsed[0].Sitemap
			parsed = parsed[1:]
		}
		state := prior[v.URL]
		e.Previous = state.pageState()
		if v.Outcome.Code == protocol.NotModified {
			e.Signature = bytes.Clone(e.Previous.Signature)
		}
		if i < done || isSitemapVisit(state, v, sitemap) {
			continue
		}
		if e.Kind, err = c.pageKind(ctx, &e, state.seed); err != nil {
			return events, err
		}
		if e.Kind == 0 || !c.opts.EveryVisit && !isChange(&e, state) {
			continue
		}
		if err := c.callOnPage(ctx, e); err != nil {
			c.delivered = delivered{name, parts.block, i}
			return events, fmt.Errorf("recrawl: OnPage %s: %w", v.URL, err)
		}
		events++
		if err := ctx.Err(); err != nil {
			c.delivered = delivered{name, parts.block, i + 1}
			return events, err
		}
	}
	return events, nil
}

// callOnPage calls OnPage, and turns a panic in it into an error.
func (c *Crawler) callOnPage(ctx context.Context, e PageEvent) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.opts.Logger.Error("recrawl: OnPage panicked", "url", e.URL, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return c.opts.OnPage(ctx, e)
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
