package rank

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// pageLinks are the links of one page in a segment: n targets, from index first of the
// list of targets on.
type pageLinks struct {
	page     uint64 // keyHash
	number   uint32
	seedRank float32
	first, n int
}

// addLinks adds what a segment says about links to the graph in memory. The result does not
// depend on the order of the pages in the segment.
func (j *job) addLinks(ctx context.Context, name string) error {
	sorter := extsort.New(extsort.Options{MemoryBytes: j.o.SortMemory, Dir: j.o.TempDir})
	defer sorter.Close()
	lists, targets, err := j.readSegment(ctx, name, sorter)
	if err != nil {
		return err
	}
	s := j.stored
	var last []byte
	for p, err := range sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		if bytes.Equal(p.Key, last) && last != nil || s.graph.full() {
			continue
		}
		last = append(last[:0], p.Key...)
		s.add(p.Key)
	}
	// In the order of their numbers, whatever the order in the segment.
	known := lists[:0]
	for _, l := range lists {
		if n, ok := s.graph.find(l.page); ok {
			l.number = n
			known = append(known, l)
		}
	}
	slices.SortFunc(known, func(a, b pageLinks) int {
		if c := cmp.Compare(a.number, b.number); c != 0 {
			return c
		}
		return slices.Compare(targets[a.first:a.first+a.n], targets[b.first:b.first+b.n])
	})
	var to []uint32
	for i, l := range known {
		if i+1 < len(known) && known[i+1].number == l.number {
			continue // of two visits to a page that differ, one counts
		}
		to = to[:0]
		for _, h := range targets[l.first : l.first+l.n] {
			if n, ok := s.graph.find(h); ok {
				to = append(to, n)
			}
		}
		s.graph.Link(l.number, float64(l.seedRank), l.n, to)
	}
	return nil
}

// readSegment returns the pages of a segment whose targets are known to it, and the sorted
// hashes of the targets of each. The keys of pages that the graph does not know go to
// the sorter.
func (j *job) readSegment(ctx context.Context, name string, sorter *extsort.Sorter) (lists []pageLinks, targets []uint64, err error) {
	own := map[uint64]float32{}
	for d, err := range segment.Records[crawldb.Datum](ctx, j.segments, name) {
		if err != nil {
			return nil, nil, err
		}
		if s := scoring.SeedRank(&d); s > 0 {
			own[keyHash(d.URL)] = float32(s)
		}
	}
	for v, err := range segment.Records[segment.Visit](ctx, j.segments, name) {
		if err != nil {
			return nil, nil, err
		}
		// A page that is gone has no links, and a redirect only its target, if a parse says
		// so: see empty. A page that failed keeps the links it had.
		if c := v.Outcome.Code; c != protocol.Success && c != protocol.NotModified && !c.Transient() {
			lists = append(lists, pageLinks{page: keyHash(v.URL)})
		}
	}
	if ok, err := segment.Has[segment.Parse](ctx, j.segments, name); err != nil || !ok {
		return lists, nil, err
	}
	var key []byte
	register := func(url string) (uint64, error) {
		key = crawldb.AppendKey(key[:0], url)
		h := xxhash.Sum64(key)
		if _, ok := j.stored.graph.find(h); ok {
			return h, nil
		}
		return h, sorter.Add(key, nil)
	}
	for p, err := range segment.Records[segment.Parse](ctx, j.segments, name) {
		if err != nil {
			return nil, nil, err
		}
		if p.Sitemap || hasNoLinks(&p) {
			continue
		}
		h, err := register(p.URL)
		if err != nil {
			return nil, nil, err
		}
		l := pageLinks{page: h, seedRank: own[h], first: len(targets)}
		for i := range p.Links {
			if isSignal(&p.Links[i]) {
				continue
			}
			t, err := register(p.Links[i].URL)
			if err != nil {
				return nil, nil, err
			}
			targets = append(targets, t)
		}
		l.n = len(targets) - l.first
		slices.Sort(targets[l.first:])
		lists = append(lists, l)
	}
	return lists, targets, nil
}

// hasNoLinks reports whether a parse has no information about the links of its page. Such a
// parse exists for the first fetched page of a host, which carries the sitemaps listed in
// robots.txt; the page that is fetched first depends on timing.
func hasNoLinks(p *segment.Parse) bool {
	for i := range p.Links {
		if !isSignal(&p.Links[i]) {
			return false
		}
	}
	return p.Signature == nil && p.Error == ""
}

// isSignal reports whether a link is not a link on the page, but a signal of a feed or sitemap
// about another page.
func isSignal(l *segment.Link) bool {
	if l.Score != 0 || l.Meta == (crawldb.Meta{}) {
		return false
	}
	_, hint := crawldb.SitemapEntryOf(l.Meta)
	_, sitemap := crawldb.SitemapOf(l.Meta)
	return hint || sitemap
}

// updateRanks computes the ranks and writes them to the records of the pages whose scores
// change.
func (j *job) updateRanks(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := j.stored
	s.graph.Compute()
	sorter := extsort.New(extsort.Options{MemoryBytes: j.o.SortMemory, Dir: j.o.TempDir})
	defer sorter.Close()
	var value [8]byte
	next, stop := iter.Pull2(s.graph.Changed())
	defer stop()
	page, received, more := next()
	err := s.eachPage(ctx, j.crawl, func(number uint32, key []byte) error {
		if !more || number != page {
			return nil
		}
		j.report.Changed++
		binary.BigEndian.PutUint64(value[:], math.Float64bits(received))
		page, received, more = next()
		return sorter.Add(key, value[:])
	})
	if err != nil {
		return err
	}
	if err := crawldb.UpdateAll(ctx, j.crawl, j.batches(ctx, sorter)); err != nil {
		return err
	}
	j.report.Ranked = true
	s.graph.MarkWritten()
	s.markRanked()
	return s.compact(ctx, j.crawl)
}

// batches turns the changed pages into updates.
func (j *job) batches(ctx context.Context, sorter *extsort.Sorter) iter.Seq2[crawldb.Batch, error] {
	return func(yield func(crawldb.Batch, error) bool) {
		urls := make([]string, 0, j.o.chunk)
		received := make([]float64, 0, j.o.chunk)
		written := make([]bool, j.o.chunk)
		flush := func() bool {
			clear(written)
			ok := yield(crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
				if written[i] = false; old == nil {
					return nil, nil
				}
				d := record(j.o.Schedule, j.o.Scoring, j.filter, old, received[i])
				written[i] = d != old
				return d, nil
			}}, nil)
			for _, w := range written {
				if w {
					j.report.Written++
				}
			}
			urls, received = urls[:0], received[:0]
			return ok
		}
		for p, err := range sorter.Sorted(ctx) {
			if err != nil {
				yield(crawldb.Batch{}, err)
				return
			}
			urls = append(urls, crawldb.URLOf(string(p.Key)))
			received = append(received, math.Float64frombits(binary.BigEndian.Uint64(p.Value)))
			if len(urls) == j.o.chunk && !flush() {
				return
			}
		}
		if len(urls) > 0 {
			flush()
		}
	}
}
