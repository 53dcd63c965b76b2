package recrawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/frontier"
)

// The kinds of items by which slots move from one group to another. They are for the group that gets
// them, whatever the table says of their URLs.
const (
	movedRecordItem  = 'R' // the record of the URL follows
	movedAnchorsItem = 'A' // links to the URL follow
	movedAccountItem = 'D' // the account of the domain of the URL follows
	movedAllItem     = 'E' // all was sent; the version of the table follows
)

func isMoveItem(kind byte) bool {
	return kind == movedRecordItem || kind == movedAnchorsItem || kind == movedAccountItem || kind == movedAllItem
}

// errNotMoving says that slots arrive for a group whose rounds go on. They wait until it has seen the
// table with the move.
var errNotMoving = errors.New("the group does not expect slots yet")

// What the mark of a move says.
const (
	allSent   = "sent"
	allFolded = "folded"
)

// setMoving says whether slots move to the group or from it.
func (c *Crawler) setMoving(ctx context.Context, taking, sending bool) error {
	if err := c.updateMutex.lock(ctx); err != nil {
		return err
	}
	defer c.updateMutex.unlock()
	c.share.taking, c.share.sending = taking, sending
	return nil
}

// sendSlots puts what the group has of the slots that are moved into its outbox, and removes the
// records in the same steps. It may be repeated.
func (c *Crawler) sendSlots(ctx context.Context, m *groups.Move, version int64) error {
	if err := c.updateMutex.lock(ctx); err != nil {
		return err
	}
	defer c.updateMutex.unlock()
	mark, err := c.readMark(ctx, groups.MovedMark(version))
	if err != nil || mark == allSent {
		return err
	}
	out := groups.NewOutbox(c.group(), c.stores.Crawl)
	send := func(urls []string, next func(int, *crawldb.Datum) (*crawldb.Datum, error), more map[string]string) error {
		marks, err := out.Cut(ctx)
		if err != nil {
			return err
		}
		maps.Copy(marks, more)
		return c.stores.Crawl.Update(ctx, crawldb.Batch{URLs: urls, Next: next, Marks: func() map[string]string { return marks }})
	}
	domains := map[string]bool{}
	var batch []crawldb.Datum
	sendRecords := func() error {
		if len(batch) == 0 {
			return nil
		}
		urls, values := make([]string, len(batch)), make([][]byte, len(batch))
		for i := range batch {
			urls[i] = batch[i].URL
			value, err := batch[i].AppendBinary([]byte{movedRecordItem})
			if err != nil {
				return err
			}
			values[i] = value
			out.AddFor(m.To, urls[i], value)
		}
		batch = batch[:0]
		return send(urls, func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old == nil {
				return nil, errMovedMeanwhile
			}
			if now, err := old.AppendBinary([]byte{movedRecordItem}); err != nil || !bytes.Equal(now, values[i]) {
				return nil, errMovedMeanwhile
			}
			return nil, nil
		}, nil)
	}
	for d, err := range c.stores.Crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if !m.Has(d.URL, c.share.router) {
			continue
		}
		domains[hostdb.Domain(crawldb.Host(d.URL))] = true
		if batch = append(batch, d); len(batch) == 2000 {
			if err := sendRecords(); err != nil {
				return err
			}
		}
	}
	if err := sendRecords(); err != nil {
		return err
	}
	if c.stores.Links != nil {
		for e, err := range c.stores.Links.Scan(ctx, crawldb.Range{}) {
			if err != nil {
				return err
			}
			if !m.Has(e.URL, c.share.router) {
				continue
			}
			domains[hostdb.Domain(crawldb.Host(e.URL))] = true
			value := appendAnchors(nil, e.Inlinks)
			value[0] = movedAnchorsItem
			if out.AddFor(m.To, e.URL, value); out.Size() > receiveBytes/4 {
				if err := send(nil, nil, nil); err != nil {
					return err
				}
			}
		}
	}
	// The account of a domain goes where its own name belongs: hosts of a domain that is divided by
	// host have one in each group.
	last := map[string]string{groups.MovedMark(version): allSent}
	for domain := range domains {
		url := "http://" + domain + "/"
		if !m.Has(url, c.share.router) {
			continue
		}
		account, err := c.stores.Crawl.Mark(ctx, frontier.MarkName(domain))
		if err != nil {
			return err
		}
		if account != "" {
			out.AddFor(m.To, url, append([]byte{movedAccountItem}, account...))
			last[frontier.MarkName(domain)] = ""
		}
	}
	out.AddFor(m.To, "", strconv.AppendInt([]byte{movedAllItem}, version, 10))
	return send(nil, nil, last)
}

var errMovedMeanwhile = errors.New("recrawl: a record that is being moved was changed meanwhile")

// takeMoved takes what was moved to the group: it keeps the records, adds to the marks, and returns
// the anchors.
func (c *Crawler) takeMoved(ctx context.Context, items []groups.Item, marks map[string]string) (anchors []groups.Item, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	if !c.share.taking {
		return nil, errNotMoving
	}
	records := map[string]crawldb.Datum{}
	var urls []string
	for _, it := range items {
		switch text := it.Value[1:]; it.Value[0] {
		case movedRecordItem:
			d := crawldb.Datum{URL: it.URL}
			if err := d.UnmarshalBinary([]byte(text)); err != nil {
				return nil, fmt.Errorf("moved record of %s: %w", it.URL, err)
			}
			if _, known := records[it.URL]; !known {
				urls = append(urls, it.URL)
			}
			records[it.URL] = d
		case movedAnchorsItem:
			anchors = append(anchors, it)
		case movedAccountItem:
			marks[frontier.MarkName(hostdb.Domain(crawldb.Host(it.URL)))] = text
		case movedAllItem:
			version, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("end of a move: %w", err)
			}
			marks[groups.MovedMark(version)] = allFolded
		}
	}
	if len(urls) == 0 {
		return anchors, nil
	}
	slices.SortFunc(urls, crawldb.Compare)
	return anchors, c.stores.Crawl.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		if old != nil { // of a step before that was not marked
			return old, nil
		}
		d := records[urls[i]]
		return &d, nil
	}})
}

// moveSlots does the part of a group in a move. It returns when that is done, or when there is a round
// to be finished before.
func (w *Worker) moveSlots(ctx context.Context, c *Crawler, t *groups.Table) error {
	id := c.group().ID
	if err := c.setMoving(ctx, t.Moving.To == id, t.Moving.From == id); err != nil {
		return err
	}
	if t.Moving.From == id {
		if err := c.sendSlots(ctx, t.Moving, t.Version); err != nil {
			return fmt.Errorf("recrawl: move slots of group %d: %w", id, err)
		}
		w.tell()
		return nil
	}
	mark, err := c.readMark(ctx, groups.MovedMark(t.Version))
	if err != nil || mark != allFolded {
		return err
	}
	if err := w.engine.SetTable(ctx, t.Moved()); err != nil && !errors.Is(err, groups.ErrTaken) {
		return fmt.Errorf("recrawl: complete the move of slots to group %d: %w", id, err)
	}
	return w.loadTable(ctx)
}
