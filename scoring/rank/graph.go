package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
)

// Graph is the part of the web that a crawl knows: the pages that were fetched, with their
// links, and the pages they link to. Pages are numbered in the order in which they came. A
// Graph is for use by one goroutine at a time.
//
// The ranks are a function of the pages and links that were added and of their order, and of
// nothing else.
//
// It takes about 40 bytes per page, as many per directory, and 2 to 3 bytes per link, up to
// a limit: see [NewGraph].
type Graph struct {
	damping float64
	power   float64 // of hosts and directories
	memory  int64

	hashes  []uint64 // of the key of each page
	slots   []uint32 // a page plus 1, by its hash; 0 is free
	entryOf []uint32 // which entry holds the links of a page: its number from 1, or 0
	log     []block  // entries, oldest first
	counts  counts

	hosts, directories pageGroups

	rank, residual []float32
	writtenLevel   []uint16 // of what each page was given when the ranks were written; 0 unknown
}

// counts say how large a graph is. They depend only on what was added.
type counts struct {
	entries       uint32
	bytes         int64 // of entries
	replacedBytes int64 // of those, entries that were replaced
	links         int64 // that count
	changed       int64 // links that came or went since the ranks were computed
}

// block is a run of entries, the first of which has the number first.
type block struct {
	first uint32
	data  []byte
}

const (
	// blockBytes is the size up to which a block grows, unless one entry is
	// larger.
	blockBytes = 32 << 10
	// pageBytes is what a page takes in memory.
	pageBytes = 8 + 4 + 4 + 4 + 4 + 4 + 4 + 2 + 6
)

// defaultGrowth is the share of links that have to change before the ranks are
// computed again.
const defaultGrowth = 0.03

// defaultMemory has room for about seven million pages that have ten links each.
const defaultMemory = 512 << 20

// NewGraph returns an empty graph that scores as a filter does. Once it takes three
// quarters of memory, in bytes, no more pages are added, and links to unknown pages are
// left out; once it takes all of it, no more links are added. Zero means 512 MiB, negative
// no limit.
func NewGraph(f scoring.PageRank, memory int64) *Graph {
	switch {
	case memory == 0:
		memory = defaultMemory
	case memory < 0:
		memory = math.MaxInt64
	}
	return &Graph{damping: f.DampingFactor(), power: f.HostExponent(), memory: memory}
}

// pages returns the number of pages.
func (g *Graph) pages() int { return len(g.hashes) }

// links returns the number of links between the pages.
func (g *Graph) links() int64 { return g.counts.links }

// memoryUsed returns about how many bytes the graph takes.
func (g *Graph) memoryUsed() int64 {
	return int64(len(g.hashes))*pageBytes + int64(len(g.hosts.fetched)+len(g.directories.fetched))*groupBytes + g.counts.bytes
}

// full reports whether there is no room for more pages.
func (g *Graph) full() bool {
	return g.memoryUsed() >= g.memory/4*3 || int64(len(g.hashes)) >= maxPages
}

// maxPages keeps page numbers within 32 bits.
const maxPages = 1 << 31

// keyHash returns the hash of the key of a URL.
func keyHash(url string) uint64 {
	var room [256]byte
	return xxhash.Sum64(crawldb.AppendKey(room[:0], url))
}

// Page returns the number of a page, and adds it if it is new; ok is false if
// there is no room for it.
func (g *Graph) Page(url string) (n uint32, ok bool) {
	var room [256]byte
	key := crawldb.AppendKey(room[:0], url)
	if n, ok := g.find(xxhash.Sum64(key)); ok {
		return n, true
	}
	if g.full() {
		return 0, false
	}
	return g.add(key), true
}

// find returns the number of the page with a hash. Two pages with the same hash are
// taken for one, which has a probability of one in 400,000 among ten million pages.
func (g *Graph) find(h uint64) (n uint32, ok bool) {
	if len(g.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(g.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := g.slots[i]
		if s == 0 {
			return 0, false
		}
		if g.hashes[s-1] == h {
			return s - 1, true
		}
	}
}

// add adds the page with a key that is not in the graph.
func (g *Graph) add(key []byte) uint32 {
	if len(g.hashes)*4 >= len(g.slots)*3 {
		g.slots = make([]uint32, max(2*len(g.slots), 64))
		for n, h := range g.hashes {
			g.place(h, uint32(n))
		}
	}
	host := xxhash.Sum64(hostOf(key))
	g.hosts.add(host)
	g.directories.add(31*host + xxhash.Sum64(directoryOf(key)))
	h, n := xxhash.Sum64(key), uint32(len(g.hashes))
	g.hashes = append(g.hashes, h)
	g.entryOf = append(g.entryOf, 0)
	g.writtenLevel = append(g.writtenLevel, 0)
	g.place(h, n)
	return n
}

func (g *Graph) place(h uint64, n uint32) {
	mask := uint64(len(g.slots) - 1)
	i := h & mask
	for g.slots[i] != 0 {
		i = (i + 1) & mask
	}
	g.slots[i] = n + 1
}

// Link records that a page was fetched, what it has of its own besides 1, and where it
// links to: to lists those targets of its out links for which there was room. It must be
// sorted, and is overwritten. Link reports whether anything has changed.
func (g *Graph) Link(page uint32, own float64, out int, to []uint32) bool {
	slices.Sort(to)
	to = slices.Compact(to)
	if i, ok := slices.BinarySearch(to, page); ok { // a page gains nothing by linking to itself
		to, out = slices.Delete(to, i, i+1), out-1
	}
	e := newEntry(page, float32(own), max(out, len(to)), to)
	if g.memoryUsed()+int64(len(e.raw)) > g.memory {
		return false
	}
	return g.put(e)
}

// put adds an entry, unless the page has an equal one.
func (g *Graph) put(e entry) bool {
	if old := g.entryOf[e.page]; old != 0 && string(g.entry(old).raw) == string(e.raw) {
		return false
	}
	if n := len(g.log); n == 0 || len(g.log[n-1].data)+len(e.raw) > blockBytes {
		g.log = append(g.log, block{first: g.counts.entries + 1})
	}
	g.append(e)
	return true
}

// append adds an entry to the last block.
func (g *Graph) append(e entry) {
	if old := g.entryOf[e.page]; old != 0 {
		was := g.entry(old)
		n := was.links()
		g.counts.links -= n
		g.counts.changed += n
		g.counts.replacedBytes += int64(len(was.raw))
	} else {
		g.hosts.fetched[g.hosts.groupOf[e.page]]++
		g.directories.fetched[g.directories.groupOf[e.page]]++
	}
	b := &g.log[len(g.log)-1]
	b.data = append(b.data, e.raw...)
	n := e.links()
	g.counts.entries++
	g.counts.bytes += int64(len(e.raw))
	g.counts.links += n
	g.counts.changed += n
	g.entryOf[e.page] = g.counts.entries
}

// entry returns the entry with a number, which must exist.
func (g *Graph) entry(number uint32) entry {
	i, ok := slices.BinarySearchFunc(g.log, number, func(b block, n uint32) int { return cmp.Compare(b.first, n) })
	if !ok {
		i--
	}
	rest := g.log[i].data
	for n := g.log[i].first; ; n++ {
		e, size := cutEntry(rest)
		if n == number {
			return e
		}
		rest = rest[size:]
	}
}

// compact drops the entries that were replaced. The others keep their order, so
// the ranks do not change.
func (g *Graph) compact() {
	old, was := g.log, g.counts
	g.log, g.counts = nil, counts{changed: was.changed}
	number := uint32(0)
	valid := g.entryOf
	g.entryOf = make([]uint32, len(valid))
	clear(g.hosts.fetched)
	clear(g.directories.fetched)
	for _, b := range old {
		for rest := b.data; len(rest) > 0; {
			e, size := cutEntry(rest)
			rest = rest[size:]
			if number++; valid[e.page] == number {
				g.put(e)
			}
		}
	}
	g.counts.changed = was.changed
}

// compactDue reports whether it is time to compact.
func (g *Graph) compactDue() bool {
	return g.counts.replacedBytes > 64<<10 && g.counts.replacedBytes > g.counts.bytes/2
}

// Grown reports whether at least this share of the links has come or gone since
// the ranks were computed. Zero means 0.03.
func (g *Graph) Grown(share float64) bool {
	if share == 0 {
		share = defaultGrowth
	}
	return float64(g.counts.changed) > share*float64(g.counts.links)
}
