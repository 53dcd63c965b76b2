package recrawl

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// priorState is the part of a record that an event compares with, as it was before the visit.
//
// For a page on the fetch list it is read from the list. A page that a redirect or link led to is
// not on the list, and one that another segment had as well, such as one of GenerateFree, may have been
// visited since. The update overwrites their records before events are written: so the states of
// such pages are saved in marks of the segment before the update begins.
type priorState struct {
	signature     string
	signed        bool
	sitemap, seed bool
	status        crawldb.Status // zero if not known
	visited       int64          // when, in Unix milliseconds; zero if never
}

func priorStateOf(d *crawldb.Datum) priorState {
	s := priorState{signature: string(d.Signature), signed: d.Signature != nil, sitemap: d.IsSitemap(), seed: d.IsSeed()}
	if !d.LastFetch.IsZero() {
		s.status, s.visited = d.Status, d.LastFetch.UnixMilli()
	}
	return s
}

// pageState returns the state as an event shows it.
func (s *priorState) pageState() PageState {
	var p PageState
	if s.signed {
		p.Signature = []byte(s.signature)
	}
	if s.visited != 0 {
		p.Time = time.UnixMilli(s.visited).UTC()
	}
	switch s.status {
	case crawldb.RedirTemp, crawldb.RedirPerm:
		p.Kind = PageMoved
	case crawldb.Gone:
		p.Kind = PageGone
	case crawldb.Fetched, crawldb.NotModified, crawldb.Duplicate, crawldb.Orphan, crawldb.ParseFailed:
		p.Kind = PageUnchanged
	default: // it has failed, if it had content
		if s.signed {
			p.Kind = PageUnchanged
		}
	}
	return p
}

// priorStateMark is the mark that counts the blocks of saved states of a segment; each block is
// a mark under it.
func priorStateMark(name string) string { return segment.RoundMark(name) + "/before" }

func priorStateBlockMark(segment string, n int) string {
	return priorStateMark(segment) + "/" + strconv.Itoa(n)
}

// priorStateBlockBytes is the size at which a block of saved states is full.
const priorStateBlockBytes = 32 << 10

// priorStateBatch is how many records are read in one step: with a database, each step takes a
// round trip.
const priorStateBatch = 1000

// unlisted returns the pages of a segment that are not on its fetch list, or may not be.
func (c *Crawler) unlisted(ctx context.Context, name string) ([]string, error) {
	found := map[string]struct{}{}
	for v, err := range segment.Records[segment.Visit](ctx, c.stores.Segments, name) {
		if errors.Is(err, segment.ErrNotFound) { // not fetched: the update says so
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if v.Via != "" || c.opts.Fetch.Following.Depth > 0 {
			found[strings.Clone(v.URL)] = struct{}{}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	for d, err := range segment.Records[crawldb.Datum](ctx, c.stores.Segments, name) {
		if err != nil {
			return nil, err
		}
		delete(found, d.URL)
	}
	return slices.SortedFunc(maps.Keys(found), crawldb.Compare), nil
}

// priorStates returns the states of the pages of a segment before its update, by URL. Empty
// states of listed pages are left out, to save memory.
func (c *Crawler) priorStates(ctx context.Context, name string) (map[string]priorState, error) {
	states := map[string]priorState{}
	for d, err := range segment.Records[crawldb.Datum](ctx, c.stores.Segments, name) {
		if err != nil {
			return nil, err
		}
		if _, err := segment.TakePlacement(&d); err != nil { // what is left is the record
			return nil, err
		}
		if k := priorStateOf(&d); k != (priorState{}) {
			states[strings.Clone(d.URL)] = k
		}
	}
	return states, c.addSavedStates(ctx, name, states)
}

// savePriorStates saves the states of the pages of a segment that are not on its fetch list, or
// have been visited for another segment since that was made, unless its update has begun.
func (c *Crawler) savePriorStates(ctx context.Context, name string) error {
	if cursor, err := c.stores.Crawl.Mark(ctx, update.SegmentMark(name)); err != nil || cursor != "" {
		return err
	}
	var blocks []string
	var block []byte
	var pages []pageBefore
	flush := func() error {
		slices.SortFunc(pages, func(a, b pageBefore) int { return crawldb.Compare(a.url, b.url) })
		urls := make([]string, len(pages))
		for i := range pages {
			urls[i] = pages[i].url
		}
		urls = slices.Compact(urls) // a list that was not made here may have a page twice
		records, err := crawldb.GetAll(ctx, c.stores.Crawl, urls)
		if err != nil {
			return err
		}
		at := 0
		for i := range pages {
			for urls[at] != pages[i].url {
				at++
			}
			k := priorState{}
			if records[at] != nil {
				k = priorStateOf(records[at])
			}
			if k == pages[i].listed {
				continue
			}
			if block = appendPriorState(block, pages[i].url, k); len(block) >= priorStateBlockBytes {
				blocks, block = append(blocks, string(block)), block[:0]
			}
		}
		pages = pages[:0]
		return nil
	}
	for p, err := range c.pagesBefore(ctx, name) {
		if err != nil {
			return err
		}
		if pages = append(pages, p); len(pages) < priorStateBatch {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if len(block) > 0 {
		blocks = append(blocks, string(block))
	}
	if len(blocks) == 0 {
		return nil
	}
	marks := map[string]string{priorStateMark(name): strconv.Itoa(len(blocks))}
	for i, b := range blocks {
		marks[priorStateBlockMark(name, i)] = b
	}
	return c.stores.Crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }})
}

// pageBefore is a page of a segment, with its state on the fetch list; empty if it is not listed.
type pageBefore struct {
	url    string
	listed priorState
}

// pagesBefore yields the pages of a segment.
func (c *Crawler) pagesBefore(ctx context.Context, name string) iter.Seq2[pageBefore, error] {
	return func(yield func(pageBefore, error) bool) {
		for d, err := range segment.Records[crawldb.Datum](ctx, c.stores.Segments, name) {
			if err != nil {
				yield(pageBefore{}, err)
				return
			}
			if !yield(pageBefore{d.URL, priorStateOf(&d)}, nil) {
				return
			}
		}
		if c.opts.Fetch.Following.MaxRedirects <= 0 && c.opts.Fetch.Following.Depth <= 0 {
			return
		}
		urls, err := c.unlisted(ctx, name)
		if err != nil {
			yield(pageBefore{}, err)
			return
		}
		for _, url := range urls {
			if !yield(pageBefore{url: url}, nil) {
				return
			}
		}
	}
}

// addSavedStates adds the saved states of the pages of a segment. States that cannot be read count
// as missing.
func (c *Crawler) addSavedStates(ctx context.Context, name string, to map[string]priorState) error {
	for mark, err := range c.savedStateMarks(ctx, name) {
		if err != nil {
			return err
		}
		text, err := c.stores.Crawl.Mark(ctx, mark)
		if err != nil {
			return err
		}
		for block := []byte(text); len(block) > 0; {
			url, k, rest, ok := cutPriorState(block)
			if !ok {
				c.opts.Logger.Warn("recrawl: what was known of pages that others led to cannot be read: they count as new", "mark", mark)
				break
			}
			to[url], block = k, rest
		}
	}
	return nil
}

// savedStateMarks yields the marks that hold the saved states of a segment.
func (c *Crawler) savedStateMarks(ctx context.Context, name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		mark, err := c.stores.Crawl.Mark(ctx, priorStateMark(name))
		if err != nil || mark == "" {
			if err != nil {
				yield("", err)
			}
			return
		}
		n, err := strconv.ParseUint(mark, 10, 20)
		if err != nil {
			c.opts.Logger.Warn("recrawl: what was known of pages that others led to cannot be found: they count as new", "mark", priorStateMark(name))
			return
		}
		for i := range int(n) {
			if !yield(priorStateBlockMark(name, i), nil) {
				return
			}
		}
	}
}

// clearedStateMarks returns the marks that remove the saved states of a segment. States that cannot be found
// stay.
func (c *Crawler) clearedStateMarks(ctx context.Context, name string) map[string]string {
	marks := map[string]string{}
	for mark, err := range c.savedStateMarks(ctx, name) {
		if err != nil {
			break
		}
		marks[mark] = ""
	}
	if len(marks) > 0 {
		marks[priorStateMark(name)] = ""
	}
	return marks
}

// appendPriorState encodes a state: the length of the URL and the URL, a number of flags, and the
// signature in the same form as the URL; then status and time of the last visit, which stores
// written by former versions lack.
func appendPriorState(b []byte, url string, k priorState) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(url))), url...)
	bits := uint64(hasVisit)
	if k.signed {
		bits |= 1
	}
	if k.sitemap {
		bits |= 2
	}
	if k.seed {
		bits |= ofSeed
	}
	b = binary.AppendUvarint(b, bits)
	b = append(binary.AppendUvarint(b, uint64(len(k.signature))), k.signature...)
	return binary.AppendVarint(binary.AppendUvarint(b, uint64(k.status)), k.visited)
}

// hasVisit is the flag of a state with status and time of the last visit.
const hasVisit = 4

// ofSeed is the flag of the state of a seed, which stores written by former versions lack.
const ofSeed = 8

// cutPriorState decodes the first state of a block.
func cutPriorState(b []byte) (url string, k priorState, rest []byte, ok bool) {
	ok = true
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			ok = false
			return 0
		}
		b = b[size:]
		return n
	}
	text := func() string {
		n := number()
		if n > uint64(len(b)) {
			ok = false
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return s
	}
	url = text()
	bits := number()
	k = priorState{signature: text(), signed: bits&1 != 0, sitemap: bits&2 != 0, seed: bits&ofSeed != 0}
	if bits&hasVisit != 0 {
		k.status = crawldb.Status(min(number(), math.MaxUint8))
		n, size := binary.Varint(b)
		if size <= 0 {
			return url, k, b, false
		}
		k.visited, b = n, b[size:]
	}
	return url, k, b, ok
}
