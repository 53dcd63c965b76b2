package recrawl

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// A page that is visited because another led there is not on the fetch list, so the segment
// does not hold what was known of it before. The update overwrites that, and OnPage is
// called only afterwards. So it is noted in marks of the segment before the update begins.

// known is what was known of a page before it was visited.
type known struct {
	signature       string
	signed, sitemap bool
}

func knownOf(d *crawldb.Datum) known {
	return known{string(d.Signature), d.Signature != nil, d.IsSitemap()}
}

// beforeJob is the mark that says how many blocks of notes a segment has; each block is
// a mark under it.
func beforeJob(name string) string { return segment.RoundJob(name) + "/before" }

func beforeBlock(segment string, n int) string { return beforeJob(segment) + "/" + strconv.Itoa(n) }

// beforeBytes is the size to which a block of notes grows.
const beforeBytes = 32 << 10

// unlisted returns the pages of a segment that are not on its fetch list, or may not be.
func (c *Crawler) unlisted(ctx context.Context, name string) ([]string, error) {
	found := map[string]struct{}{}
	for v, err := range segment.Records[segment.Visit](ctx, c.s.Segments, name) {
		if errors.Is(err, segment.ErrNotFound) { // not fetched: the update says so
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if v.Via != "" || c.o.Fetch.Following.Depth > 0 {
			found[strings.Clone(v.URL)] = struct{}{}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	for d, err := range segment.Records[crawldb.Datum](ctx, c.s.Segments, name) {
		if err != nil {
			return nil, err
		}
		delete(found, d.URL)
	}
	return slices.SortedFunc(maps.Keys(found), crawldb.Compare), nil
}

// before returns what was known of the pages of a segment before its update. Pages of
// which nothing of use was known are left out, to save memory.
func (c *Crawler) before(ctx context.Context, name string) (map[string]known, error) {
	before := map[string]known{}
	for d, err := range segment.Records[crawldb.Datum](ctx, c.s.Segments, name) {
		if err != nil {
			return nil, err
		}
		if _, err := segment.Unmark(&d); err != nil { // what is left is the record
			return nil, err
		}
		if k := knownOf(&d); k != (known{}) {
			before[strings.Clone(d.URL)] = k
		}
	}
	return before, c.addNotes(ctx, name, before)
}

// note keeps what is known of the pages of a segment that are not on its fetch list, unless
// its update has begun.
func (c *Crawler) note(ctx context.Context, name string) error {
	if c.o.OnPage == nil || c.o.Fetch.Following.MaxRedirects <= 0 && c.o.Fetch.Following.Depth <= 0 {
		return nil
	}
	if cursor, err := c.s.Crawl.Mark(ctx, update.Job(name)); err != nil || cursor != "" {
		return err
	}
	urls, err := c.unlisted(ctx, name)
	if err != nil {
		return err
	}
	var blocks []string
	var block []byte
	for _, url := range urls {
		d, err := c.s.Crawl.Get(ctx, url)
		if errors.Is(err, crawldb.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if k := knownOf(&d); k != (known{}) {
			block = appendKnown(block, url, k)
		}
		if len(block) >= beforeBytes {
			blocks, block = append(blocks, string(block)), block[:0]
		}
	}
	if len(block) > 0 {
		blocks = append(blocks, string(block))
	}
	if len(blocks) == 0 {
		return nil
	}
	marks := map[string]string{beforeJob(name): strconv.Itoa(len(blocks))}
	for i, b := range blocks {
		marks[beforeBlock(name, i)] = b
	}
	return c.s.Crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }})
}

// addNotes adds what was noted of the pages of a segment. Notes that cannot be read count
// as missing.
func (c *Crawler) addNotes(ctx context.Context, name string, to map[string]known) error {
	for mark, err := range c.notes(ctx, name) {
		if err != nil {
			return err
		}
		text, err := c.s.Crawl.Mark(ctx, mark)
		if err != nil {
			return err
		}
		for block := []byte(text); len(block) > 0; {
			url, k, rest, ok := cutKnown(block)
			if !ok {
				c.o.Logger.Warn("recrawl: what was known of pages that others led to cannot be read: they count as new", "mark", mark)
				break
			}
			to[url], block = k, rest
		}
	}
	return nil
}

// notes yields the marks of the notes of a segment.
func (c *Crawler) notes(ctx context.Context, name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		mark, err := c.s.Crawl.Mark(ctx, beforeJob(name))
		if err != nil || mark == "" {
			if err != nil {
				yield("", err)
			}
			return
		}
		n, err := strconv.ParseUint(mark, 10, 20)
		if err != nil {
			c.o.Logger.Warn("recrawl: what was known of pages that others led to cannot be found: they count as new", "mark", beforeJob(name))
			return
		}
		for i := range int(n) {
			if !yield(beforeBlock(name, i), nil) {
				return
			}
		}
	}
}

// forgotten returns the marks that remove the notes of a segment. Notes that cannot be found
// stay.
func (c *Crawler) forgotten(ctx context.Context, name string) map[string]string {
	marks := map[string]string{}
	for mark, err := range c.notes(ctx, name) {
		if err != nil {
			break
		}
		marks[mark] = ""
	}
	if len(marks) > 0 {
		marks[beforeJob(name)] = ""
	}
	return marks
}

// appendKnown adds a note: the length of the URL and the URL, a number that says what else
// is known, and the signature in the same form as the URL.
func appendKnown(b []byte, url string, k known) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(url))), url...)
	bits := uint64(0)
	if k.signed {
		bits |= 1
	}
	if k.sitemap {
		bits |= 2
	}
	b = binary.AppendUvarint(b, bits)
	return append(binary.AppendUvarint(b, uint64(len(k.signature))), k.signature...)
}

// cutKnown reads the first note of a block.
func cutKnown(b []byte) (url string, k known, rest []byte, ok bool) {
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
	k = known{text(), bits&1 != 0, bits&2 != 0}
	return url, k, b, ok
}
