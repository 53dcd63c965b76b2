package rank

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/recrawl/recrawl/crawldb"
)

// errDamaged says that the stored graph cannot be read.
var errDamaged = errors.New("rank: the known graph is damaged")

// headMarkName is the name of the mark that holds the head of the graph.
const headMarkName = "pagerank"

func pagesMark(generation, block int) string {
	if generation == 0 { // as they were named before pages were dropped
		return fmt.Sprintf("pagerank/pages/%d", block)
	}
	return fmt.Sprintf("pagerank/pages/%d/%d", generation, block)
}

func linksMark(generation, block int) string {
	return fmt.Sprintf("pagerank/links/%d/%d", generation, block)
}

// head says what the stored graph consists of, and how much of it the ranks in the
// records were computed from.
type head struct {
	pageBlocks, pages        int
	generation               int // of the blocks of links
	linkBlocks               int
	entries                  uint32
	rankedPages              int
	rankedEntries            uint32
	oldGeneration, oldBlocks int // to be removed

	// The same for pages, whose blocks have had generations since pages can be
	// dropped.
	pageGeneration                   int
	oldPageGeneration, oldPageBlocks int
	pagesAfterPrune                  int // pages left by the last search for those that are gone
	segmentsSincePrune               int // segments since then
}

// The first format was written before pages could be dropped; the second
// extends it.
const (
	headFormat  = "pages %d in %d links %d in %d of %d ranked %d %d old %d of %d"
	pagesFormat = " pages of %d old %d of %d left %d before %d"
)

func (h head) String() string { return "3 " + h.firstPart() + h.secondPart() }

func (h *head) firstPart() string {
	return fmt.Sprintf(headFormat, h.pages, h.pageBlocks, h.entries, h.linkBlocks, h.generation, h.rankedPages, h.rankedEntries, h.oldBlocks, h.oldGeneration)
}

func (h *head) secondPart() string {
	return fmt.Sprintf(pagesFormat, h.pageGeneration, h.oldPageBlocks, h.oldPageGeneration, h.pagesAfterPrune, h.segmentsSincePrune)
}

func parseHead(s string) (h head, err error) {
	fields := []any{&h.pages, &h.pageBlocks, &h.entries, &h.linkBlocks, &h.generation, &h.rankedPages, &h.rankedEntries, &h.oldBlocks, &h.oldGeneration}
	format, is := "2 "+headFormat, func() string { return "2 " + h.firstPart() }
	if strings.HasPrefix(s, "3 ") {
		fields = append(fields, &h.pageGeneration, &h.oldPageBlocks, &h.oldPageGeneration, &h.pagesAfterPrune, &h.segmentsSincePrune)
		format, is = "3 "+headFormat+pagesFormat, func() string { return h.String() }
	}
	n, err := fmt.Sscanf(s, format, fields...)
	if err != nil || n != len(fields) || is() != s || h.rankedPages > h.pages || h.rankedEntries > h.entries ||
		int64(h.pages) > maxPages || int64(h.pagesAfterPrune) > maxPages {
		return head{}, fmt.Errorf("%w: mark %s", errDamaged, headMarkName)
	}
	for _, n := range []int{h.pages, h.rankedPages, h.generation, h.oldGeneration, h.pageGeneration, h.oldPageGeneration, h.pagesAfterPrune, h.segmentsSincePrune} {
		if n < 0 {
			return head{}, fmt.Errorf("%w: mark %s", errDamaged, headMarkName)
		}
	}
	for _, blocks := range []int{h.pageBlocks, h.linkBlocks, h.oldBlocks, h.oldPageBlocks} {
		if blocks < 0 || blocks > maxBlocks {
			return head{}, fmt.Errorf("%w: mark %s", errDamaged, headMarkName)
		}
	}
	return h, nil
}

// maxBlocks is more than any graph has of either kind: 32 GiB.
const maxBlocks = 1 << 20

// appendChecksum returns a block as stored under a name: the block, and a checksum of both.
func appendChecksum(name string, block []byte) string {
	return string(binary.LittleEndian.AppendUint64(block[:len(block):len(block)], checksum(name, string(block))))
}

func checksum(name, block string) uint64 {
	d := xxhash.New()
	d.WriteString(name)
	d.WriteString("\n")
	d.WriteString(block)
	return d.Sum64()
}

// readBlock reads a block stored under a name.
func readBlock(ctx context.Context, crawl crawldb.Store, name string) (string, error) {
	mark, err := crawl.Mark(ctx, name)
	if err != nil {
		return "", err
	}
	n := len(mark) - 8
	if n <= 0 || binary.LittleEndian.Uint64([]byte(mark[n:])) != checksum(name, mark[:n]) {
		return "", fmt.Errorf("%w: mark %s", errDamaged, name)
	}
	return mark[:n], nil
}

// storedGraph is a graph with its stored form in the crawl db. Pages are stored in blocks of
// their keys: for each key the length that it shares with the one before in the block
// and the length of the rest, both varints, and the rest.
type storedGraph struct {
	head  head
	graph *Graph

	unstoredPages    [][]byte // blocks of pages not stored yet; the first continues the last stored one
	lastKey          []byte
	storedPageBlocks int // blocks of pages before fresh
	storedLinkBlocks int // blocks of links that are fully stored
}

// add adds a page that is not in the graph.
func (s *storedGraph) add(key []byte) {
	s.graph.add(key)
	if n := len(s.unstoredPages); n == 0 || len(s.unstoredPages[n-1])+len(key) > blockBytes {
		s.unstoredPages, s.lastKey = append(s.unstoredPages, nil), s.lastKey[:0]
	}
	b := &s.unstoredPages[len(s.unstoredPages)-1]
	*b, s.lastKey = appendPage(*b, s.lastKey, key)
}

// appendPage appends a key to a block of pages whose last key is given, and returns the
// new last key.
func appendPage(block, last, key []byte) (_, _ []byte) {
	shared := 0
	for shared < len(key) && shared < len(last) && key[shared] == last[shared] {
		shared++
	}
	block = binary.AppendUvarint(block, uint64(shared))
	block = binary.AppendUvarint(block, uint64(len(key)-shared))
	return append(block, key[shared:]...), append(last[:0], key...)
}

// save writes what was added, in one step with a mark. Blocks that nothing refers to
// yet may be written earlier.
func (s *storedGraph) save(ctx context.Context, crawl crawldb.Store, job, cursor string) error {
	const atOnce = 1000
	g, marks := s.graph, map[string]string{}
	ahead := map[string]string{}
	put := func(name string, block []byte, new bool) error {
		if !new { // it holds what was kept before
			marks[name] = appendChecksum(name, block)
			return nil
		}
		if ahead[name] = appendChecksum(name, block); len(ahead) < atOnce {
			return nil
		}
		now := ahead
		ahead = map[string]string{}
		return crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return now }})
	}
	for i, b := range s.unstoredPages {
		if err := put(pagesMark(s.head.pageGeneration, s.storedPageBlocks+i), b, i > 0); err != nil {
			return err
		}
	}
	for i := s.storedLinkBlocks; i < len(g.log); i++ {
		if err := put(linksMark(s.head.generation, i), g.log[i].data, i > s.storedLinkBlocks); err != nil {
			return err
		}
	}
	maps.Copy(marks, ahead)
	h := s.head
	h.pages, h.pageBlocks = len(g.hashes), s.storedPageBlocks+len(s.unstoredPages)
	h.entries, h.linkBlocks = g.counts.entries, len(g.log)
	marks[headMarkName] = h.String()
	marks[job] = cursor
	err := crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }})
	if err != nil {
		return err
	}
	s.head = h
	s.releaseStored()
	return nil
}

// releaseStored releases the pages that are stored, except the block that is continued.
func (s *storedGraph) releaseStored() {
	if n := len(s.unstoredPages); n > 0 {
		s.storedPageBlocks += n - 1
		s.unstoredPages = s.unstoredPages[n-1:]
	}
	s.storedLinkBlocks = max(0, len(s.graph.log)-1)
}

// markRanked says that the records have the ranks of all that is stored.
func (s *storedGraph) markRanked() {
	s.head.rankedPages, s.head.rankedEntries = s.head.pages, s.head.entries
}

// headMark returns the mark that stores the head.
func (s *storedGraph) headMark() map[string]string {
	return map[string]string{headMarkName: s.head.String()}
}

// eachPage calls page for each stored page, in the order of their numbers.
func (s *storedGraph) eachPage(ctx context.Context, crawl crawldb.Store, page func(number uint32, key []byte) error) error {
	number := uint32(0)
	for i := range s.head.pageBlocks {
		block, err := readBlock(ctx, crawl, pagesMark(s.head.pageGeneration, i))
		if err != nil {
			return err
		}
		err = eachKey(block, func(key []byte) error {
			number++
			return page(number-1, key)
		})
		if err != nil {
			return err
		}
	}
	if int(number) != s.head.pages {
		return errDamaged
	}
	return nil
}

// eachKey calls f for the keys in a block.
func eachKey(block string, f func(key []byte) error) error {
	var key []byte
	rest := []byte(block)
	for len(rest) > 0 {
		shared, n := binary.Uvarint(rest)
		if n <= 0 || shared > uint64(len(key)) {
			return errDamaged
		}
		size, m := binary.Uvarint(rest[n:])
		if m <= 0 || size > uint64(len(rest)-n-m) {
			return errDamaged
		}
		rest = rest[n+m:]
		key = append(key[:shared], rest[:size]...)
		rest = rest[size:]
		if err := f(key); err != nil {
			return err
		}
	}
	return nil
}

// load reads the stored graph into g, which must be empty.
func load(ctx context.Context, crawl crawldb.Store, mark string, g *Graph) (*storedGraph, error) {
	h, err := parseHead(mark)
	if err != nil {
		return nil, err
	}
	s := &storedGraph{head: h, graph: g}
	err = s.eachPage(ctx, crawl, func(_ uint32, key []byte) error {
		if _, twice := g.find(xxhash.Sum64(key)); twice {
			return errDamaged
		}
		g.add(key)
		s.lastKey = append(s.lastKey[:0], key...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if h.pageBlocks > 0 { // the last one is continued
		s.storedPageBlocks = h.pageBlocks - 1
		tail, err := readBlock(ctx, crawl, pagesMark(h.pageGeneration, s.storedPageBlocks))
		if err != nil {
			return nil, err
		}
		s.unstoredPages = [][]byte{[]byte(tail)}
	}
	for i := range h.linkBlocks {
		data, err := readBlock(ctx, crawl, linksMark(h.generation, i))
		if err != nil {
			return nil, err
		}
		g.log = append(g.log, block{first: g.counts.entries + 1})
		for rest := []byte(data); len(rest) > 0; {
			if g.counts.entries == h.rankedEntries {
				s.restoreLevels()
			}
			e, size := cutEntry(rest)
			if size == 0 || e.check(len(g.hashes)) != nil {
				return nil, errDamaged
			}
			g.append(e)
			rest = rest[size:]
		}
	}
	if g.counts.entries == h.rankedEntries {
		s.restoreLevels()
	}
	if g.counts.entries != h.entries {
		return nil, errDamaged
	}
	s.storedLinkBlocks = max(0, len(g.log)-1)
	return s, nil
}

// restoreLevels computes the levels that the records are on, from the graph as it was when
// they were written.
func (s *storedGraph) restoreLevels() {
	if s.head.rankedPages > 0 {
		s.graph.Compute()
		s.graph.setLevels(s.head.rankedPages)
	}
}

// compact writes the links anew if more than half of the stored ones were
// replaced. The old blocks are removed once the new ones count.
func (s *storedGraph) compact(ctx context.Context, crawl crawldb.Store) error {
	g := s.graph
	if !g.compactDue() {
		return nil
	}
	old := s.head
	g.compact()
	h := s.head
	h.oldGeneration, h.oldBlocks = old.generation, old.linkBlocks
	h.generation++
	for i := 0; i < len(g.log); {
		marks := map[string]string{}
		for ; i < len(g.log) && len(marks) < 32; i++ {
			name := linksMark(h.generation, i)
			marks[name] = appendChecksum(name, g.log[i].data)
		}
		if err := crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }}); err != nil {
			return err
		}
	}
	h.entries, h.linkBlocks = g.counts.entries, len(g.log)
	s.head = h
	s.storedLinkBlocks = max(0, len(g.log)-1)
	s.markRanked()
	if err := crawl.Update(ctx, crawldb.Batch{Marks: s.headMark}); err != nil {
		return err
	}
	return s.removeOldBlocks(ctx, crawl)
}

// removeOldBlocks removes the blocks that no longer count.
func (s *storedGraph) removeOldBlocks(ctx context.Context, crawl crawldb.Store) error {
	h := s.head
	if h.oldBlocks == 0 && h.oldPageBlocks == 0 {
		return nil
	}
	for i, n := 0, h.oldBlocks+h.oldPageBlocks; i < n; {
		marks := map[string]string{}
		for ; i < n && len(marks) < 1000; i++ {
			name := linksMark(h.oldGeneration, i)
			if i >= h.oldBlocks {
				name = pagesMark(h.oldPageGeneration, i-h.oldBlocks)
			}
			marks[name] = ""
		}
		if err := crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }}); err != nil {
			return err
		}
	}
	s.head.oldGeneration, s.head.oldBlocks = 0, 0
	s.head.oldPageGeneration, s.head.oldPageBlocks = 0, 0
	return crawl.Update(ctx, crawldb.Batch{Marks: s.headMark})
}
