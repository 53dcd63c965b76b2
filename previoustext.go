package recrawl

import (
	"context"
	"errors"
	"sync"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// PreviousText returns the text that the page had before the visit: that of the last visit that brought
// content with the signature in Previous. ok is false if the page had no content, or if no segment of the feed
// that is kept has it. The first call for a block of 500 events reads the events of older segments until
// it has found the texts of all of them, about 0.1 s for each 10,000 pages.
func (e *PageEvent) PreviousText(ctx context.Context) (text string, ok bool, err error) {
	before, err := e.previous(ctx)
	if err != nil || before == nil {
		return "", false, err
	}
	text, err = before.Text(ctx)
	if errors.Is(err, segment.ErrNotFound) { // removed since
		return "", false, nil
	}
	return text, err == nil, err
}

// previous returns the event of the last visit before that brought the content with the signature in Previous;
// nil if there is none, or none that is kept.
func (e *PageEvent) previous(ctx context.Context) (*PageEvent, error) {
	if e.parts == nil || e.parts.previous == nil {
		return nil, nil
	}
	older, err := e.parts.previous.find(ctx)
	return older[e.URL], err
}

// previousEvents are, for the events of a block, those of the visits before that brought the
// content. They are found when the first of its events asks.
type previousEvents struct {
	c      *Crawler
	number int64             // of the segment
	wanted map[string]string // the signatures before the visits, by URL

	mu    sync.Mutex
	found map[string]*PageEvent // nil until they are looked for
}

func (p *previousEvents) find(ctx context.Context) (map[string]*PageEvent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	found := map[string]*PageEvent{}
	b, err := p.c.feedBounds(ctx)
	if err != nil {
		return nil, err
	}
	for n := p.number - 1; n >= b.First && len(found) < len(p.wanted); n-- {
		s, err := p.c.feedSegment(ctx, n)
		if err != nil {
			return nil, err
		}
		if s.Segment == "" {
			continue
		}
		if err := p.findIn(ctx, s.Segment, n, found); err != nil && !errors.Is(err, segment.ErrNotFound) {
			return nil, err
		}
	}
	p.found = found
	return found, nil
}

// findIn looks for events in an older segment.
func (p *previousEvents) findIn(ctx context.Context, name string, number int64, found map[string]*PageEvent) error {
	for block, err := range p.c.eventBlocks(ctx, name, number, 0) {
		if err != nil {
			return err
		}
		for i := range block {
			e := &block[i].PageEvent
			signature, is := p.wanted[e.URL]
			if is && found[e.URL] == nil && e.Visit.Outcome.Code == protocol.Success && string(e.Signature) == signature {
				found[e.URL] = e
			}
		}
	}
	return nil
}
