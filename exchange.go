package recrawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/internal/prefixed"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// groupShare is what the crawler of one group shares with those of the others.
type groupShare struct {
	engine groups.Engine
	router *groups.Router
	// member changes between rounds only.
	member atomic.Pointer[groups.Member]
	// taking and sending say that slots move to the group or from it, and that its rounds have
	// stopped for that. They are guarded by Crawler.updateMutex.
	taking, sending bool
	// turns has room for as many stages as may use a processor at the same time.
	turns chan struct{}
	// threads returns the share of a fetch that begins now in a number of threads.
	threads func(all int) int
}

// group returns the group of the crawler; nil if the crawl is not divided.
func (c *Crawler) group() *groups.Member {
	if c.share == nil {
		return nil
	}
	return c.share.member.Load()
}

// takeTurn waits until a stage may use a processor, and returns the function that ends it.
func (c *Crawler) takeTurn(ctx context.Context) (end func(), err error) {
	if c.share == nil {
		return func() {}, nil
	}
	select {
	case c.share.turns <- struct{}{}:
		return func() { <-c.share.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The kinds of items in rows of the exchange, beside those of package update: 'g', 'l', 'p', 'v'.
const (
	anchorsItem = 'a' // links to the URL, for the link db
	seedItem    = 's' // the URL is a seed; its metadata follow
	signalItem  = 't' // the page has changed; the time follows
	fetchItem   = 'f' // the page is to be fetched now
)

// receiveBytes is about how much of an inbox is folded in one step.
const receiveBytes = 16 << 20

// receive folds all that a poll has found for the group.
func (c *Crawler) receive(ctx context.Context, in *groups.Inbox) error {
	if err := c.updateMutex.lock(ctx); err != nil {
		return err
	}
	defer c.updateMutex.unlock()
	if c.share.sending { // what is folded now might come too late to be sent
		return nil
	}
	for !in.Empty() {
		switch err := c.receiveSome(ctx, in); {
		case errors.Is(err, errNotMoving):
			return nil
		case err != nil:
			return fmt.Errorf("recrawl: group %d: %w", in.Group, err)
		}
		c.wake()
	}
	return nil
}

// receiveSome folds some rows: what is idempotent first, then the records with the marks that say
// that all of it is done.
func (c *Crawler) receiveSome(ctx context.Context, in *groups.Inbox) error {
	end, err := c.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer end()
	rows, marks, err := in.Take(ctx, c.share.engine, receiveBytes)
	if err != nil {
		return err
	}
	var records, anchors, seeds, signals, fetches, moved []groups.Item
	for _, r := range rows {
		for it, err := range groups.Items(r.Text) {
			switch {
			case err != nil:
				return fmt.Errorf("row %d of group %d: %w", r.Number, r.Source, err)
			case isMoveItem(it.Value[0]):
				moved = append(moved, it)
			case !c.group().Owns(it.URL): // it is passed on
				records = append(records, it)
			case it.Value[0] == anchorsItem:
				anchors = append(anchors, it)
			case it.Value[0] == seedItem:
				seeds = append(seeds, it)
			case it.Value[0] == signalItem:
				signals = append(signals, it)
			case it.Value[0] == fetchItem:
				fetches = append(fetches, it)
			default:
				records = append(records, it)
			}
		}
	}
	moreAnchors, err := c.takeMoved(ctx, moved, marks)
	if err != nil {
		return err
	}
	if err := c.mergeAnchors(ctx, append(anchors, moreAnchors...)); err != nil {
		return err
	}
	if err := c.takeSeeds(ctx, seeds); err != nil {
		return err
	}
	for _, it := range signals {
		if err := c.takeSignal(ctx, it); err != nil {
			return err
		}
	}
	if len(fetches) > 0 {
		_, err := c.GenerateFree(ctx, func(yield func(string, error) bool) {
			for _, it := range fetches {
				if !yield(it.URL, nil) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
	}
	o := c.updateOptions()
	if o.Schedule, err = c.scheduleOfUpdate(ctx, o.Schedule); err != nil {
		return err
	}
	_, err = update.Receive(ctx, c.stores.Crawl, records, marks, o)
	return err
}

// appendAnchors appends the value of an item with links to a page.
func appendAnchors(dst []byte, in []linkdb.Inlink) []byte {
	dst = append(dst, anchorsItem)
	for _, l := range in {
		dst = prefixed.Append(prefixed.Append(dst, l.From), l.Anchor)
	}
	return dst
}

var errAnchors = errors.New("anchors from another group are damaged")

// cutAnchors reads what appendAnchors has written, after the kind of the item.
func cutAnchors(value string) (in []linkdb.Inlink, err error) {
	for rest := value[1:]; rest != ""; {
		var l linkdb.Inlink
		var ok bool
		if l.From, rest, ok = prefixed.Cut(rest); ok {
			l.Anchor, rest, ok = prefixed.Cut(rest)
		}
		if !ok {
			return nil, errAnchors
		}
		in = append(in, l)
	}
	return in, nil
}

func (c *Crawler) mergeAnchors(ctx context.Context, items []groups.Item) error {
	if len(items) == 0 || c.stores.Links == nil {
		return nil
	}
	slices.SortStableFunc(items, func(a, b groups.Item) int { return crawldb.Compare(a.URL, b.URL) })
	var entries []linkdb.Entry
	for _, it := range items {
		in, err := cutAnchors(it.Value)
		if err != nil {
			return err
		}
		if n := len(entries); n > 0 && entries[n-1].URL == it.URL {
			entries[n-1].Inlinks = append(entries[n-1].Inlinks, in...)
			continue
		}
		entries = append(entries, linkdb.Entry{URL: it.URL, Inlinks: in})
	}
	return c.stores.Links.Merge(ctx, entries, cmp.Or(c.opts.Invert.MaxInlinks, linkdb.DefaultMaxInlinks))
}

// invertForAll inverts the links of a segment: those to pages of the group go to its link db, and
// the others to the outbox, once.
func (c *Crawler) invertForAll(ctx context.Context, name string) (linkdb.InvertReport, error) {
	var r linkdb.InvertReport
	if err := c.updateMutex.lock(ctx); err != nil {
		return r, err
	}
	defer c.updateMutex.unlock()
	cursor, err := c.readMark(ctx, invertMark(name))
	if err != nil {
		return r, err
	}
	out := groups.NewOutbox(c.group(), c.stores.Crawl)
	send := func(reached string) error {
		marks, err := out.Cut(ctx)
		if err != nil {
			return fmt.Errorf("recrawl: %w", err)
		}
		if marks == nil {
			marks = map[string]string{}
		}
		marks[invertMark(name)] = reached
		return c.setMarks(ctx, marks)
	}
	last := ""
	o := c.opts.Invert
	o.Divert = func(ctx context.Context, e linkdb.Entry) (bool, error) {
		if c.group().Owns(e.URL) {
			return false, nil
		}
		if cursor == invertDone || crawldb.Key(e.URL) <= cursor {
			return true, nil
		}
		if e.URL != last && out.Size() > receiveBytes/4 {
			if err := send(crawldb.Key(last)); err != nil {
				return false, err
			}
		}
		out.Add(e.URL, appendAnchors(nil, e.Inlinks))
		last = e.URL
		return true, nil
	}
	if r, err = linkdb.Invert(ctx, c.stores.Links, c.stores.Segments, []string{name}, o); err != nil || cursor == invertDone {
		return r, err
	}
	return r, send(invertDone)
}

// invertMark says how far the links of a segment are in the outbox: up to a key, or "done".
func invertMark(segment string) string { return "invert/" + segment }

const invertDone = "done"

// removeFolded removes from the outbox what its targets have folded.
func (c *Crawler) removeFolded(ctx context.Context, t *groups.Table) error {
	if err := c.updateMutex.lock(ctx); err != nil {
		return err
	}
	defer c.updateMutex.unlock()
	marks, err := groups.Folded(ctx, c.share.engine, t, c.group().ID)
	if err != nil || len(marks) == 0 {
		return err
	}
	return c.setMarks(ctx, marks)
}

// takeSeeds injects seeds. Seeds that are there already change nothing.
func (c *Crawler) takeSeeds(ctx context.Context, items []groups.Item) error {
	if len(items) == 0 {
		return nil
	}
	_, err := c.InjectSeeds(ctx, func(yield func(inject.Seed, error) bool) {
		for _, it := range items {
			if !yield(seedOf(it), nil) {
				return
			}
		}
	}, inject.Options{})
	return err
}

// appendSeed appends the value of an item with a seed.
func appendSeed(dst []byte, s inject.Seed) []byte {
	dst = append(dst, seedItem)
	for _, m := range s.Meta {
		dst = prefixed.Append(dst, m)
	}
	return dst
}

func seedOf(it groups.Item) inject.Seed {
	s := inject.Seed{URL: it.URL}
	for rest := it.Value[1:]; rest != ""; {
		var m string
		var ok bool
		if m, rest, ok = prefixed.Cut(rest); !ok {
			break
		}
		s.Meta = append(s.Meta, m)
	}
	return s
}

// appendSignal returns the value of an item that says that a page changed.
func appendSignal(at time.Time) []byte {
	b := []byte{signalItem}
	if at.IsZero() {
		return b
	}
	return strconv.AppendInt(b, at.UnixMilli(), 10)
}

func (c *Crawler) takeSignal(ctx context.Context, it groups.Item) error {
	var at time.Time
	if ms, err := strconv.ParseInt(it.Value[1:], 10, 64); err == nil {
		at = time.UnixMilli(ms)
	}
	err := c.Signal(ctx, it.URL, at)
	if errors.Is(err, crawldb.ErrNotFound) || errors.Is(err, urlfilter.ErrRejected) || errors.Is(err, urlfilter.ErrInvalid) {
		c.opts.Logger.Warn("recrawl: a signal was left out", "url", it.URL, "error", err)
		return nil
	}
	return err
}

// rowsFor makes rows of items, by the group that each URL belongs to.
func rowsFor(m *groups.Member, items map[string][]byte) map[int]string {
	rows := map[int][]byte{}
	for _, url := range slices.SortedFunc(maps.Keys(items), crawldb.Compare) {
		to := m.Of(url)
		rows[to] = groups.AppendItem(rows[to], url, items[url])
	}
	texts := map[int]string{}
	for to, row := range rows {
		texts[to] = string(row)
	}
	return texts
}
