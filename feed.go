package recrawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

// The change feed is the events of the segments, in the order in which their updates were
// published: after update, links and dedup, before OnPage. Each published segment has a number,
// from 1. Marks of the crawl db keep the feed and its consumers, so that it works with every
// Store; the events themselves are in the segments:
//
//	feed             the numbers of the first segment that is kept and of the next one
//	feed/N           the segment with that number: feedSegment
//	consumers        the names of the consumers
//	consumer/NAME    how far one has come: consumerState
//
// All of them are written while feedMutex is held.

const feedMark = "feed"

func feedSegmentMark(number int64) string { return "feed/" + strconv.FormatInt(number, 10) }

// feedBounds are the numbers of the first segment that is kept, and of the next one.
type feedBounds struct{ First, Next int64 }

// feedSegment is what is known of a published segment.
type feedSegment struct {
	Segment string
	Time    time.Time // when it was published
	Bytes   int64     // of all its parts
	Changes int       // its events that are changes
	Events  int       // all of its events
}

func (c *Crawler) feedBounds(ctx context.Context) (feedBounds, error) {
	b := feedBounds{1, 1}
	err := c.readJSONMark(ctx, feedMark, &b)
	return b, err
}

// feedSegment returns the segment with a number; its name is empty if it is not kept.
func (c *Crawler) feedSegment(ctx context.Context, number int64) (s feedSegment, err error) {
	err = c.readJSONMark(ctx, feedSegmentMark(number), &s)
	return s, err
}

// readJSONMark decodes a mark. Without one, v stays as it is.
func (c *Crawler) readJSONMark(ctx context.Context, name string, v any) error {
	mark, err := c.readMark(ctx, name)
	if err != nil || mark == "" {
		return err
	}
	if err := json.Unmarshal([]byte(mark), v); err != nil {
		return fmt.Errorf("recrawl: mark %s: %w", name, err)
	}
	return nil
}

// jsonMark encodes a mark; the types of this package can be encoded.
func jsonMark(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func (c *Crawler) setMarks(ctx context.Context, marks map[string]string) error {
	if err := c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }}); err != nil {
		return fmt.Errorf("recrawl: %w", err)
	}
	return nil
}

// publish writes the events of a segment whose update is done, and puts it at the end of the feed,
// unless it is there.
func (c *Crawler) publish(ctx context.Context, name string) error {
	if err := c.updateMutex.lock(ctx); err != nil {
		return err
	}
	defer c.updateMutex.unlock()
	round, err := c.roundState(ctx, name)
	if err != nil || round.Number > 0 || round.Done {
		return err
	}
	if err := c.writeEvents(ctx, name); err != nil {
		return err
	}
	s := feedSegment{Segment: name, Time: c.opts.Now().UTC()}
	if s.Bytes, err = c.segmentBytes(ctx, name); err != nil {
		return err
	}
	for events, err := range segment.Blocks[segment.Event](ctx, c.stores.Segments, name, 0) {
		if err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
		s.Events += len(events)
		for i := range events {
			if events[i].Changed {
				s.Changes++
			}
		}
	}
	if err := c.feedMutex.lock(ctx); err != nil {
		return err
	}
	defer c.feedMutex.unlock()
	b, err := c.feedBounds(ctx)
	if err != nil {
		return err
	}
	round.Number = b.Next
	b.Next++
	err = c.setMarks(ctx, map[string]string{
		feedMark: jsonMark(b), feedSegmentMark(round.Number): jsonMark(s), segment.RoundMark(name): round.String(),
	})
	if err == nil {
		c.feedNews.tell()
	}
	return err
}

// segmentBytes returns the size of all parts of a segment.
func (c *Crawler) segmentBytes(ctx context.Context, name string) (total int64, err error) {
	for _, part := range append(segment.Parts(), segment.EventPart) {
		info, err := c.stores.Segments.Stat(ctx, name, part)
		if err != nil && !errors.Is(err, segment.ErrNotFound) {
			return 0, fmt.Errorf("recrawl: %w", err)
		}
		total += info.Bytes
	}
	return total, nil
}

// unpublish adds the marks that take a segment out of the feed, when it is removed.
func (c *Crawler) unpublish(ctx context.Context, number int64, marks map[string]string) error {
	b, err := c.feedBounds(ctx)
	if err != nil {
		return err
	}
	marks[feedSegmentMark(number)] = ""
	if b.First != number {
		return nil
	}
	for b.First++; b.First < b.Next; b.First++ {
		s, err := c.feedSegment(ctx, b.First)
		if err != nil {
			return err
		}
		if s.Segment != "" {
			break
		}
	}
	marks[feedMark] = jsonMark(b)
	return nil
}

// feedPosition is the place of an event in the feed: the number of its segment, its block there,
// and its index in the block.
type feedPosition struct {
	number       int64
	block, index int
}

// String returns the position as PageEvent.Position has it.
func (p feedPosition) String() string {
	if p.number == 0 {
		return "" // of a segment that is not in the feed
	}
	return fmt.Sprintf("%d.%d.%d", p.number, p.block, p.index)
}

func parseFeedPosition(text string) (p feedPosition, ok bool) {
	var err error
	fields := strings.Split(text, ".")
	if len(fields) == 3 {
		if p.number, err = strconv.ParseInt(fields[0], 10, 64); err == nil {
			if p.block, err = strconv.Atoi(fields[1]); err == nil {
				p.index, err = strconv.Atoi(fields[2])
			}
		}
	}
	return p, err == nil && p.number > 0 && p.block >= 0 && p.index >= 0 && p.String() == text
}

func (p feedPosition) before(q feedPosition) bool {
	if p.number != q.number {
		return p.number < q.number
	}
	return p.block < q.block || p.block == q.block && p.index < q.index
}

// MarshalText and UnmarshalText keep a position in a mark.
func (p feedPosition) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p *feedPosition) UnmarshalText(text []byte) error {
	q, ok := parseFeedPosition(string(text))
	if !ok && len(text) > 0 {
		return fmt.Errorf("%q is no position in a feed", text)
	}
	*p = q
	return nil
}

// news wakes the goroutines that wait for something to happen. The zero value is ready to use.
type news struct {
	mu sync.Mutex
	c  chan struct{}
}

// wait returns a channel that is closed at the next call of tell.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c == nil {
		n.c = make(chan struct{})
	}
	return n.c
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c != nil {
		close(n.c)
		n.c = nil
	}
}
