package recrawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/segment"
)

var (
	// ErrNoConsumer says that there is no consumer of that name.
	ErrNoConsumer = errors.New("no such consumer")
	// ErrConsumerBusy says that the events of a consumer are being read already.
	ErrConsumerBusy = errors.New("consumer is being read")
	// ErrUnacknowledged says that a consumer has not acknowledged the events of a segment.
	ErrUnacknowledged = errors.New("not acknowledged by all consumers")
)

// ConsumerStart says where a new consumer begins.
type ConsumerStart int

const (
	// StartNow begins with the next segment that is published.
	StartNow ConsumerStart = iota
	// StartAtBeginning begins with the oldest segment that is kept.
	StartAtBeginning
	// StartWithSnapshot begins with a snapshot of the crawl.
	StartWithSnapshot
)

// ConsumerOptions say what a new consumer reads.
type ConsumerOptions struct {
	Start ConsumerStart
	// EveryVisit is as in Options.
	EveryVisit bool
}

// A Consumer reads the change feed: the events of all segments, in the order in which they
// were published, and so of one page in the order of its visits. It has a name and a cursor,
// which the crawl db keeps: everything up to the last event that was acknowledged. Reading begins
// behind it, so each event is delivered at least once, whatever happens to the process. A
// consumer holds nothing up: rounds go on, and segments are kept until it has acknowledged them.
//
// If Retention.Bytes is reached before that, or if a segment was lost or is damaged, the consumer
// lapses: it is logged and shown by [Crawler.Consumers], and its next event is SnapshotBegin. Then
// come the states of all pages that the crawl knows, as PageKnown, PageMoved or PageGone, in the
// order of the crawl db, then SnapshotEnd, and then the feed from the moment of SnapshotBegin on. A
// page that has not been in the snapshot is not in the crawl any more. A snapshot goes on where it was
// acknowledged, too; one that the consumer is too slow for begins again, with another SnapshotBegin.
// Its events have no content; what is kept of a page is in the segments.
type Consumer struct {
	c    *Crawler
	name string
}

// consumerState is how far a consumer has come, as a mark keeps it.
type consumerState struct {
	// Next is the first position that is not acknowledged. During a snapshot, it is where the feed
	// goes on after it.
	Next feedPosition
	// Restart says that the consumer begins with a snapshot when it is read.
	Restart  bool           `json:",omitempty"`
	Snapshot *snapshotState `json:",omitempty"`

	EveryVisit               bool
	Registered, Acknowledged time.Time
	Lapsed                   time.Time // the last time
	Lapses                   int
}

// behind reports whether the consumer has not acknowledged all events of a segment.
func (s *consumerState) behind(number int64) bool { return !s.Restart && s.Next.number <= number }

func consumerMark(name string) string { return "consumer/" + name }

const consumersMark = "consumers"

// checkConsumerName returns an error for a name that no consumer can have.
func checkConsumerName(name string) error {
	ok := 0 < len(name) && len(name) <= 64
	for i := range len(name) {
		b := name[i]
		ok = ok && ('a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9' || b == '_' || b == '-' || b == '.')
	}
	if !ok {
		return fmt.Errorf("recrawl: a consumer cannot be named %q: 1 to 64 letters, digits, '-', '_' and '.'", name)
	}
	return nil
}

// AddConsumer registers a consumer. If there is one of that name, it stays as it is, whatever
// the options say.
func (c *Crawler) AddConsumer(ctx context.Context, name string, o ConsumerOptions) (*Consumer, error) {
	if err := checkConsumerName(name); err != nil {
		return nil, err
	}
	if err := c.feedMutex.lock(ctx); err != nil {
		return nil, err
	}
	defer c.feedMutex.unlock()
	names, err := c.consumerNames(ctx)
	if err != nil || slices.Contains(names, name) {
		return &Consumer{c, name}, err
	}
	b, err := c.feedBounds(ctx)
	if err != nil {
		return nil, err
	}
	s := consumerState{EveryVisit: o.EveryVisit, Registered: c.opts.Now().UTC(), Next: feedPosition{number: b.Next}}
	switch o.Start {
	case StartAtBeginning:
		s.Next.number = b.First
	case StartWithSnapshot:
		s.Restart = true
	}
	names = append(names, name)
	slices.Sort(names)
	err = c.setMarks(ctx, map[string]string{consumersMark: jsonMark(names), consumerMark(name): jsonMark(s)})
	if err == nil {
		err = c.stores.Crawl.Sync(ctx)
	}
	return &Consumer{c, name}, err
}

// Consumer returns a consumer that was registered; otherwise the error is [ErrNoConsumer].
func (c *Crawler) Consumer(ctx context.Context, name string) (*Consumer, error) {
	_, err := c.consumerState(ctx, name)
	return &Consumer{c, name}, err
}

// DropConsumer removes a consumer, and then the segments that were kept only for it. If there
// is none of that name, the error is [ErrNoConsumer].
func (c *Crawler) DropConsumer(ctx context.Context, name string) error {
	if err := c.dropConsumer(ctx, name); err != nil {
		return err
	}
	return c.applyRetention(ctx)
}

// RestartConsumer makes a consumer begin as a new one, as when its index was lost, and registers it if
// there is none of that name.
func (c *Crawler) RestartConsumer(ctx context.Context, name string, o ConsumerOptions) error {
	if err := c.dropConsumer(ctx, name); err != nil && !errors.Is(err, ErrNoConsumer) {
		return err
	}
	_, err := c.AddConsumer(ctx, name, o)
	return err
}

func (c *Crawler) dropConsumer(ctx context.Context, name string) error {
	if err := c.feedMutex.lock(ctx); err != nil {
		return err
	}
	defer c.feedMutex.unlock()
	names, err := c.consumerNames(ctx)
	if err != nil {
		return err
	}
	i := slices.Index(names, name)
	if i < 0 {
		return fmt.Errorf("recrawl: %w: %q", ErrNoConsumer, name)
	}
	text := ""
	if names = slices.Delete(names, i, i+1); len(names) > 0 {
		text = jsonMark(names)
	}
	if err := c.setMarks(ctx, map[string]string{consumersMark: text, consumerMark(name): ""}); err != nil {
		return err
	}
	c.readers.of(name).restart()
	c.feedNews.tell()
	return nil
}

func (c *Crawler) consumerNames(ctx context.Context) (names []string, err error) {
	err = c.readJSONMark(ctx, consumersMark, &names)
	return names, err
}

func (c *Crawler) consumerState(ctx context.Context, name string) (s consumerState, err error) {
	if err = checkConsumerName(name); err != nil {
		return s, err
	}
	if err = c.readJSONMark(ctx, consumerMark(name), &s); err == nil && s.Registered.IsZero() {
		err = fmt.Errorf("recrawl: %w: %q", ErrNoConsumer, name)
	}
	return s, err
}

// consumerStates returns all consumers.
func (c *Crawler) consumerStates(ctx context.Context) (map[string]*consumerState, error) {
	names, err := c.consumerNames(ctx)
	if err != nil {
		return nil, err
	}
	states := map[string]*consumerState{}
	for _, name := range names {
		s, err := c.consumerState(ctx, name)
		if err != nil {
			return nil, err
		}
		states[name] = &s
	}
	return states, nil
}

// consumersBehind returns the names of the consumers that have not acknowledged all events of a
// segment.
func consumersBehind(states map[string]*consumerState, number int64) (names []string) {
	for name, s := range states {
		if s.behind(number) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ConsumerStatus says how far a consumer is behind. docs/json.md describes its names in JSON.
type ConsumerStatus struct {
	Name string `json:"consumer"`
	// Registered is when the consumer was added, Acknowledged when it last acknowledged
	// events; zero if it never has.
	Registered   time.Time `json:"registered,omitzero"`
	Acknowledged time.Time `json:"acknowledged,omitzero"`
	EveryVisit   bool      `json:"every_visit"`
	// Segments and Bytes are those that it has not acknowledged whole, Events at most how
	// many events of them it has yet to read, and Oldest is when the first of them was published.
	Segments int       `json:"segments"`
	Events   int       `json:"events"`
	Bytes    int64     `json:"bytes"`
	Oldest   time.Time `json:"oldest,omitzero"`
	// Snapshot says that the consumer is to read a snapshot, or is in the midst of it.
	Snapshot bool `json:"snapshot"`
	// Lapsed is when it last lost events, and Lapses how often it has.
	Lapsed time.Time `json:"lapsed,omitzero"`
	Lapses int       `json:"lapses"`
}

// Consumers returns the status of all consumers, by name.
func (c *Crawler) Consumers(ctx context.Context) ([]ConsumerStatus, error) {
	states, err := c.consumerStates(ctx)
	if err != nil {
		return nil, err
	}
	b, err := c.feedBounds(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]ConsumerStatus, 0, len(states))
	for name, s := range states {
		status := ConsumerStatus{
			Name: name, Registered: s.Registered, Acknowledged: s.Acknowledged, EveryVisit: s.EveryVisit,
			Snapshot: s.Restart || s.Snapshot != nil, Lapsed: s.Lapsed, Lapses: s.Lapses,
		}
		for n := max(s.Next.number, b.First); !s.Restart && n < b.Next; n++ {
			f, err := c.feedSegment(ctx, n)
			if err != nil {
				return nil, err
			}
			if status.Oldest.IsZero() {
				status.Oldest = f.Time
			}
			status.Segments++
			status.Bytes += f.Bytes
			if status.Events += f.Changes; s.EveryVisit {
				status.Events += f.Events - f.Changes
			}
		}
		all = append(all, status)
	}
	slices.SortFunc(all, func(a, b ConsumerStatus) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// lapse notes that a consumer has lost events, while feedMutex is held.
func (c *Crawler) lapse(ctx context.Context, name string, s *consumerState, why string) error {
	s.Restart, s.Snapshot, s.Lapsed = true, nil, c.opts.Now().UTC()
	s.Lapses++
	if err := c.setMark(ctx, consumerMark(name), jsonMark(s)); err != nil {
		return err
	}
	c.opts.Logger.Warn("recrawl: a consumer has lapsed, and begins again with a snapshot", "consumer", name, "reason", why, "next", s.Next.String(), "lapses", s.Lapses)
	c.readers.of(name).restart()
	c.feedNews.tell()
	return nil
}

// Ack acknowledges the event at a position and all before it. Acknowledging what was
// acknowledged before has no effect, and neither has acknowledging what was read before the consumer
// lapsed. The acknowledgement is kept as any other change of the crawl db: if the machine dies
// before it is synced, the events are delivered again.
func (k *Consumer) Ack(ctx context.Context, position string) error {
	c := k.c
	if err := c.feedMutex.lock(ctx); err != nil {
		return err
	}
	defer c.feedMutex.unlock()
	s, err := c.consumerState(ctx, k.name)
	if err != nil || s.Restart {
		return err
	}
	moved := false
	if p, ok := parseFeedPosition(position); ok {
		b, err := c.feedBounds(ctx)
		if err != nil {
			return err
		}
		if p.number >= b.Next {
			return fmt.Errorf("recrawl: acknowledge %s: no event has been published there", position)
		}
		if next := c.readers.of(k.name).acknowledged(p); s.Next.before(next) {
			s.Next, s.Snapshot, moved = next, nil, true
		}
	} else if p, ok := parseSnapshotPosition(position); ok {
		moved = s.acknowledgeSnapshot(p)
	} else {
		return fmt.Errorf("recrawl: acknowledge: %q is no position in a feed", position)
	}
	if !moved {
		return nil
	}
	s.Acknowledged = c.opts.Now().UTC()
	return c.setMark(ctx, consumerMark(k.name), jsonMark(s))
}

// Events yields the events that are not acknowledged, up to the end of the feed. Only one loop at a
// time reads the events of a consumer; another gets [ErrConsumerBusy]. An error ends the sequence.
func (k *Consumer) Events(ctx context.Context) iter.Seq2[PageEvent, error] {
	return k.read(ctx, false)
}

// Follow is Events that waits for more at the end of the feed, until its context ends.
func (k *Consumer) Follow(ctx context.Context) iter.Seq2[PageEvent, error] {
	return k.read(ctx, true)
}

func (k *Consumer) read(ctx context.Context, follow bool) iter.Seq2[PageEvent, error] {
	return func(yield func(PageEvent, error) bool) {
		r := k.c.readers.of(k.name)
		if !r.begin() {
			yield(PageEvent{}, fmt.Errorf("recrawl: %w: %s", ErrConsumerBusy, k.name))
			return
		}
		defer r.end()
		read := feedReading{k.c, k.name, r, follow, func(e PageEvent) bool {
			r.delivering(e.Position)
			return yield(e, nil)
		}}
		for {
			err := read.pass(ctx)
			switch {
			case errors.Is(err, errRestart):
			case errors.Is(err, errStopped):
				return
			default:
				if err != nil {
					yield(PageEvent{}, err)
				}
				return
			}
		}
	}
}

var (
	errStopped = errors.New("the loop was left")
	errRestart = errors.New("the consumer has lapsed, or was dropped")
)

// feedReading is one loop over the events of a consumer.
type feedReading struct {
	c      *Crawler
	name   string
	reader *reader
	follow bool
	yield  func(PageEvent) bool
}

// pass reads from the cursor to the end of the feed. If it returns errRestart, the cursor has
// changed meanwhile.
func (r *feedReading) pass(ctx context.Context) error {
	r.reader.start()
	s, err := r.c.consumerState(ctx, r.name)
	if err != nil {
		return err
	}
	if s.Restart {
		if s, err = r.c.startSnapshot(ctx, r.name); err != nil {
			return err
		}
	}
	if s.Snapshot != nil {
		if err := r.snapshot(ctx, &s); err != nil {
			return err
		}
	}
	for at := s.Next; ; at = (feedPosition{number: at.number + 1}) {
		if more, err := r.await(ctx, at); err != nil || !more {
			return err
		}
		if err := r.segment(ctx, at, s.EveryVisit); err != nil {
			return err
		}
	}
}

// await waits until there is a segment at a position, and reports whether there is. It also
// takes the cursor there, if all before it is acknowledged.
func (r *feedReading) await(ctx context.Context, at feedPosition) (bool, error) {
	if err := r.settle(ctx, at); err != nil {
		return false, err
	}
	for {
		news := r.c.feedNews.wait()
		b, err := r.c.feedBounds(ctx)
		switch {
		case err != nil:
			return false, err
		case r.reader.isRestarted():
			return false, errRestart
		case at.number < b.Next:
			return true, nil
		case !r.follow:
			return false, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// settle moves the cursor to a position that reading has reached, if all events before it that the
// consumer hears of are acknowledged.
func (r *feedReading) settle(ctx context.Context, at feedPosition) error {
	if err := r.c.feedMutex.lock(ctx); err != nil {
		return err
	}
	defer r.c.feedMutex.unlock()
	if !r.reader.reach(at) {
		return nil
	}
	s, err := r.c.consumerState(ctx, r.name)
	if err != nil || s.Restart || s.Snapshot != nil || !s.Next.before(at) {
		return err
	}
	s.Next = at
	return r.c.setMark(ctx, consumerMark(r.name), jsonMark(s))
}

// segment yields the events of a segment, from a position on.
func (r *feedReading) segment(ctx context.Context, at feedPosition, everyVisit bool) error {
	s, err := r.c.feedSegment(ctx, at.number)
	if err != nil {
		return err
	}
	if s.Segment == "" {
		return r.lost(ctx, at, "its segment was removed")
	}
	for block, err := range r.c.eventBlocks(ctx, s.Segment, at.number, at.block) {
		var damage *segment.CorruptError
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case r.reader.isRestarted():
			return errRestart
		case errors.Is(err, segment.ErrNotFound) || errors.As(err, &damage):
			return r.lost(ctx, at, err.Error())
		default:
			return err
		}
		for i := at.index; i < len(block); i++ {
			if !everyVisit && !block[i].changed {
				continue
			}
			if !r.yield(block[i].PageEvent) {
				return errStopped
			}
			if r.reader.isRestarted() {
				return errRestart
			}
		}
		at = feedPosition{at.number, at.block + 1, 0}
	}
	return nil
}

// lost notes that events cannot be read.
func (r *feedReading) lost(ctx context.Context, at feedPosition, why string) error {
	if err := r.c.feedMutex.lock(ctx); err != nil {
		return err
	}
	defer r.c.feedMutex.unlock()
	s, err := r.c.consumerState(ctx, r.name)
	if err != nil {
		return err
	}
	if !s.Restart {
		if err := r.c.lapse(ctx, r.name, &s, fmt.Sprintf("events at %v: %s", at, why)); err != nil {
			return err
		}
	}
	return errRestart
}

// readers are the consumers that this process reads or acknowledges, by name.
type readers struct {
	mu sync.Mutex
	m  map[string]*reader
}

func (r *readers) of(name string) *reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		r.m = map[string]*reader{}
	}
	if r.m[name] == nil {
		r.m[name] = &reader{}
	}
	return r.m[name]
}

// reader is how far this process has read the events of a consumer. Events that the consumer does
// not hear of, such as those of pages that are as they were, are acknowledged with the last one before
// them.
type reader struct {
	mu          sync.Mutex
	reading     bool
	restarted   bool         // the consumer has lapsed, or was dropped
	last        string       // the position of the last event that was delivered
	outstanding bool         // it is not acknowledged
	reached     feedPosition // all before this was delivered, or is not heard of
}

func (r *reader) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := !r.reading
	r.reading = true
	return free
}

func (r *reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading = false
}

func (r *reader) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restarted, r.last, r.outstanding, r.reached = false, "", false, feedPosition{}
}

func (r *reader) delivering(position string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.outstanding = position, true
}

// reach notes how far the reading has come, and reports whether all is acknowledged.
func (r *reader) reach(p feedPosition) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reached = p
	return !r.outstanding
}

// acknowledged returns the first position that is not acknowledged if that at p is.
func (r *reader) acknowledged(p feedPosition) feedPosition {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := feedPosition{p.number, p.block, p.index + 1}
	if r.last == p.String() {
		r.outstanding = false
		if next.before(r.reached) {
			next = r.reached
		}
	}
	return next
}

func (r *reader) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restarted = true
}

func (r *reader) isRestarted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.restarted
}
