package recrawl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

// snapshotState is how far a consumer has acknowledged a snapshot: its beginning, and the pages
// up to a URL.
type snapshotState struct {
	Begun bool
	After string
}

// snapshotPosition is the place of an event in a snapshot. A snapshot has the number of the
// segment with which the feed goes on after it.
type snapshotPosition struct {
	number int64
	url    string // empty at the beginning
	end    bool
}

const (
	snapshotPage = ":"
	snapshotEnd  = "!end" // no URL begins so
)

func (p snapshotPosition) String() string {
	at := p.url
	if p.end {
		at = snapshotEnd
	}
	return strconv.FormatInt(p.number, 10) + snapshotPage + at
}

func parseSnapshotPosition(text string) (p snapshotPosition, ok bool) {
	number, at, ok := strings.Cut(text, snapshotPage)
	if p.end = at == snapshotEnd; !p.end {
		p.url = at
	}
	var err error
	p.number, err = strconv.ParseInt(number, 10, 64)
	return p, ok && err == nil && p.number > 0 && p.String() == text
}

// startSnapshot begins a snapshot for a consumer. What is published from now on follows it.
func (c *Crawler) startSnapshot(ctx context.Context, name string) (s consumerState, err error) {
	if err := c.feedMutex.lock(ctx); err != nil {
		return s, err
	}
	defer c.feedMutex.unlock()
	if s, err = c.consumerState(ctx, name); err != nil || !s.Restart {
		return s, err
	}
	b, err := c.feedBounds(ctx)
	if err != nil {
		return s, err
	}
	s.Restart, s.Snapshot, s.Next = false, &snapshotState{}, feedPosition{number: b.Next}
	return s, c.setMark(ctx, consumerMark(name), jsonMark(s))
}

// acknowledgeSnapshot acknowledges a snapshot up to a position, and reports whether the cursor moves.
func (s *consumerState) acknowledgeSnapshot(p snapshotPosition) bool {
	switch {
	case s.Snapshot == nil || p.number != s.Next.number: // it is over, or another one has begun
		return false
	case p.end:
		s.Snapshot = nil
	case s.Snapshot.Begun && crawldb.Compare(p.url, s.Snapshot.After) <= 0:
		return false
	default:
		*s.Snapshot = snapshotState{Begun: true, After: p.url}
	}
	return true
}

// snapshot yields the states of all pages that are not acknowledged.
func (r *feedReading) snapshot(ctx context.Context, s *consumerState) error {
	at := snapshotPosition{number: s.Next.number}
	send := func(e PageEvent) error {
		if e.Position = at.String(); !r.yield(e) {
			return errStopped
		}
		if r.reader.isRestarted() {
			return errRestart
		}
		return nil
	}
	if !s.Snapshot.Begun {
		if err := send(PageEvent{Kind: SnapshotBegin}); err != nil {
			return err
		}
	}
	var rest crawldb.Range
	if s.Snapshot.After != "" {
		rest.From = crawldb.Key(s.Snapshot.After)
	}
	for d, err := range r.c.stores.Crawl.Scan(ctx, rest) {
		if err != nil {
			return fmt.Errorf("recrawl: snapshot: %w", err)
		}
		if d.URL == s.Snapshot.After || d.IsSitemap() {
			continue
		}
		known := priorStateOf(&d)
		state := known.pageState()
		e := PageEvent{URL: d.URL, Kind: state.Kind, Signature: state.Signature, Visit: segment.Visit{URL: d.URL, Time: state.Time}}
		switch e.Kind {
		case PageUnchanged:
			e.Kind = PageKnown
		case 0:
			continue
		}
		at.url = d.URL
		if err := send(e); err != nil {
			return err
		}
	}
	at = snapshotPosition{number: at.number, end: true}
	return send(PageEvent{Kind: SnapshotEnd})
}
