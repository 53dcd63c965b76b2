package rank

import (
	"context"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

// When to look for pages that the graph need no longer hold.
const (
	// pruneFrom is the number of pages below which the graph is not searched.
	pruneFrom = 1 << 16
	// pruneAgainAfter is the number of segments after which a full graph is searched again.
	pruneAgainAfter = 64
)

// pruneDue reports whether it is time to look for pages that are gone: there are twice as
// many pages as the last search left, or there is no room for more. Both numbers are stored
// with the graph, so a crawl that is killed searches when an undisturbed one does.
func (s *storedGraph) pruneDue(least int) bool {
	return s.graph.pages() >= max(2*s.head.pagesAfterPrune, least) || s.graph.full() && s.head.segmentsSincePrune >= pruneAgainAfter
}

// prune drops pages that are gone from the graph, with the links to and from them: those
// without a record, and those whose record says that they are gone or orphans if no live
// page links to them any more. A page that is gone and still linked to stays, since it may
// come back. The others keep their order.
//
// The new graph is written next to the old one and read back, so that it is what another
// process would find. It has no ranks yet: those in the records were computed from more
// pages than there are now.
func (s *storedGraph) prune(ctx context.Context, crawl crawldb.Store, filter scoring.PageRank, memory int64) (dropped int, err error) {
	if err := s.removeOldBlocks(ctx, crawl); err != nil { // what the last one left
		return 0, err
	}
	numbers, dropped, err := s.renumber(ctx, crawl)
	if err != nil {
		return 0, err
	}
	g, h := s.graph, s.head
	h.segmentsSincePrune, h.pagesAfterPrune = 0, g.pages()
	if dropped <= g.pages()/8 && g.counts.replacedBytes <= g.counts.bytes/4 {
		s.head = h // nothing is dropped; the next step stores the head
		return 0, nil
	}
	h.oldPageGeneration, h.oldPageBlocks = h.pageGeneration, h.pageBlocks
	h.oldGeneration, h.oldBlocks = h.generation, h.linkBlocks
	h.pageGeneration++
	h.generation++
	h.pagesAfterPrune = g.pages() - dropped
	if err := s.writePruned(ctx, crawl, numbers, &h); err != nil {
		return 0, err
	}
	mark := h.String()
	err = crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return map[string]string{headMarkName: mark} }})
	if err != nil {
		return 0, err
	}
	*s = storedGraph{} // room for the new graph
	next, err := load(ctx, crawl, mark, NewGraph(filter, memory))
	if err != nil {
		return 0, err
	}
	*s = *next
	return dropped, s.removeOldBlocks(ctx, crawl)
}

// renumber returns the new number of each page, from 1 on; 0 for pages that are dropped.
func (s *storedGraph) renumber(ctx context.Context, crawl crawldb.Store) (numbers []uint32, dropped int, err error) {
	const (
		known = 1 + iota // has a record
		there            // whose page exists
		linked
	)
	g := s.graph
	numbers = make([]uint32, g.pages())
	var keys crawldb.Keys
	var key []byte
	for d, err := range crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, 0, err
		}
		key = keys.AppendKey(key[:0], d.URL)
		n, ok := g.find(xxhash.Sum64(key))
		switch {
		case !ok:
		case d.Status == crawldb.Gone || d.Status == crawldb.Orphan:
			numbers[n] = known
		default:
			numbers[n] = there
		}
	}
	g.eachEntry(func(e entry) {
		if numbers[e.page] != there {
			return
		}
		e.eachTarget(func(to uint32) {
			if numbers[to] == known {
				numbers[to] = linked
			}
		})
	})
	next := uint32(0)
	for n, state := range numbers {
		if state != there && state != linked {
			numbers[n] = 0
			dropped++
			continue
		}
		next++
		numbers[n] = next
	}
	return numbers, dropped, nil
}

// writePruned writes the blocks of the pages that stay and of their links under the generations in
// a head, and records in it what there is.
func (s *storedGraph) writePruned(ctx context.Context, crawl crawldb.Store, numbers []uint32, h *head) error {
	marks := map[string]string{}
	put := func(name string, block []byte) error {
		marks[name] = appendChecksum(name, block)
		if len(marks) < 32 {
			return nil
		}
		now := marks
		marks = map[string]string{}
		return crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return now }})
	}
	var block, last []byte
	h.pages, h.pageBlocks = 0, 0
	endPages := func() error {
		if len(block) == 0 {
			return nil
		}
		err := put(pagesMark(h.pageGeneration, h.pageBlocks), block)
		block, last = block[:0], last[:0]
		h.pageBlocks++
		return err
	}
	err := s.eachPage(ctx, crawl, func(number uint32, key []byte) error {
		if numbers[number] == 0 {
			return nil
		}
		if len(block) > 0 && len(block)+len(key) > blockBytes {
			if err := endPages(); err != nil {
				return err
			}
		}
		block, last = appendPage(block, last, key)
		h.pages++
		return nil
	})
	if err == nil {
		err = endPages()
	}
	if err != nil {
		return err
	}
	h.entries, h.linkBlocks, h.rankedPages, h.rankedEntries = 0, 0, 0, 0
	endLinks := func() error {
		if len(block) == 0 {
			return nil
		}
		err := put(linksMark(h.generation, h.linkBlocks), block)
		block = block[:0]
		h.linkBlocks++
		return err
	}
	var to []uint32
	s.graph.eachEntry(func(e entry) {
		if err != nil || numbers[e.page] == 0 {
			return
		}
		to = to[:0]
		e.eachTarget(func(t uint32) {
			if n := numbers[t]; n > 0 {
				to = append(to, n-1)
			}
		})
		out, own, _, _ := e.head()
		raw := newEntry(numbers[e.page]-1, own, int(out), to).raw
		if len(block) > 0 && len(block)+len(raw) > blockBytes {
			err = endLinks()
		}
		block = append(block, raw...)
		h.entries++
	})
	if err == nil {
		err = endLinks()
	}
	if err != nil {
		return err
	}
	return crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return marks }})
}

// eachEntry calls f for each entry that counts, oldest first.
func (g *Graph) eachEntry(f func(e entry)) {
	for _, b := range g.log {
		number := b.first
		for rest := b.data; len(rest) > 0; number++ {
			e, size := cutEntry(rest)
			rest = rest[size:]
			if g.entryOf[e.page] == number {
				f(e)
			}
		}
	}
}

// eachTarget calls f for the pages that an entry leads to.
func (e *entry) eachTarget(f func(to uint32)) {
	_, _, rest, _ := e.head()
	to := int64(e.page)
	for first := true; len(rest) > 0; first = false {
		var k int
		if first {
			var d int64
			d, k = binary.Varint(rest)
			to += d
		} else {
			var d uint64
			d, k = binary.Uvarint(rest)
			to += int64(d)
		}
		f(uint32(to))
		rest = rest[k:]
	}
}
