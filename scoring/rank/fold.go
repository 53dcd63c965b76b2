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

// list is what a segment says about one page: n targets, from first on.
type list struct {
	page     uint64 // hash
	number   uint32
	own      float32
	first, n int
}

// fold adds what a segment says about links to the graph in memory. The result does not
// depend on the order of the pages in the segment.
func (j *job) fold(ctx context.Context, name string) error {
	sorter := extsort.New(extsort.Options{MemoryBytes: j.o.SortMemory, Dir: j.o.TempDir})
	defer sorter.Close()
	lists, targets, err := j.read(ctx, name, sorter)
	if err != nil {
		return err
	}
	k := j.kept
	var last []byte
	for p, err := range sorter.Sorted(ctx) {
		if err != nil {
			return err
		}
		if bytes.Equal(p.Key, last) && last != nil || k.graph.Full() {
			continue
		}
		last = append(last[:0], p.Key...)
		k.add(p.Key)
	}
	// In the order of their numbers, whatever the order in the segment.
	known := lists[:0]
	for _, l := range lists {
		if n, ok := k.graph.find(l.page); ok {
			l.number = n
			known = append(known, l)
		}
	}
	slices.SortFunc(known, func(a, b list) int {
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
			if n, ok := k.graph.find(h); ok {
				to = append(to, n)
			}
		}
		k.graph.Link(l.number, float64(l.own), l.n, to)
	}
	return nil
}

// read returns the pages of a segment whose targets are known to it, and the sorted
// hashes of the targets of each. The keys of pages that the graph does not know go to
// the sorter.
func (j *job) read(ctx context.Context, name string, sorter *extsort.Sorter) (lists []list, targets []uint64, err error) {
	own := map[uint64]float32{}
	for d, err := range segment.Records[crawldb.Datum](ctx, j.segments, name) {
		if err != nil {
			return nil, nil, err
		}
		if s := scoring.SeedRank(&d); s > 0 {
			own[hash(d.URL)] = float32(s)
		}
	}
	for v, err := range segment.Records[segment.Visit](ctx, j.segments, name) {
		if err != nil {
			return nil, nil, err
		}
		// A page that is gone has no links, and a redirect only its target, if a parse says
		// so: see empty. A page that failed keeps the links it had.
		if c := v.Outcome.Code; c != protocol.Success && c != protocol.NotModified && !c.Transient() {
			lists = append(lists, list{page: hash(v.URL)})
		}
	}
	if ok, err := segment.Has[segment.Parse](ctx, j.segments, name); err != nil || !ok {
		return lists, nil, err
	}
	var key []byte
	see := func(url string) (uint64, error) {
		key = crawldb.AppendKey(key[:0], url)
		h := xxhash.Sum64(key)
		if _, ok := j.kept.graph.find(h); ok {
			return h, nil
		}
		return h, sorter.Add(key, nil)
	}
	for p, err := range segment.Records[segment.Parse](ctx, j.segments, name) {
		if err != nil {
			return nil, nil, err
		}
		if p.Sitemap || empty(&p) {
			continue
		}
		h, err := see(p.URL)
		if err != nil {
			return nil, nil, err
		}
		l := list{page: h, own: own[h], first: len(targets)}
		for i := range p.Links {
			if told(&p.Links[i]) {
				continue
			}
			t, err := see(p.Links[i].URL)
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

// empty reports whether a parse says nothing about the links of its page: it may exist
// only because the first page of a host to be fetched carries the sitemaps listed in
// robots.txt, and which page that is depends on timing.
func empty(p *segment.Parse) bool {
	for i := range p.Links {
		if !told(&p.Links[i]) {
			return false
		}
	}
	return p.Signature == nil && p.Error == ""
}

// told reports whether a link is not on the page, but something that the page says
// about another, as feeds do.
func told(l *segment.Link) bool {
	if l.Score != 0 || l.Meta == (crawldb.Meta{}) {
		return false
	}
	_, hint := crawldb.HintOf(l.Meta)
	_, sitemap := crawldb.SitemapOf(l.Meta)
	return hint || sitemap
}

// rank computes the ranks and writes them to the records of the pages whose scores
// change.
func (j *job) rank(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k := j.kept
	k.graph.Compute()
	sorter := extsort.New(extsort.Options{MemoryBytes: j.o.SortMemory, Dir: j.o.TempDir})
	defer sorter.Close()
	var value [8]byte
	next, stop := iter.Pull2(k.graph.Changed())
	defer stop()
	page, given, more := next()
	err := k.pages(ctx, j.crawl, func(number uint32, key []byte) error {
		if !more || number != page {
			return nil
		}
		j.report.Changed++
		binary.BigEndian.PutUint64(value[:], math.Float64bits(given))
		page, given, more = next()
		return sorter.Add(key, value[:])
	})
	if err != nil {
		return err
	}
	if err := crawldb.UpdateAll(ctx, j.crawl, j.batches(ctx, sorter)); err != nil {
		return err
	}
	j.report.Ranked = true
	k.graph.Settle()
	k.ranked()
	return k.compact(ctx, j.crawl)
}

// batches turns the changed pages into updates.
func (j *job) batches(ctx context.Context, sorter *extsort.Sorter) iter.Seq2[crawldb.Batch, error] {
	return func(yield func(crawldb.Batch, error) bool) {
		urls := make([]string, 0, j.o.chunk)
		given := make([]float64, 0, j.o.chunk)
		written := make([]bool, j.o.chunk)
		flush := func() bool {
			clear(written)
			ok := yield(crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
				if written[i] = false; old == nil {
					return nil, nil
				}
				d := record(j.o.Schedule, j.o.Scoring, j.filter, old, given[i])
				written[i] = d != old
				return d, nil
			}}, nil)
			for _, w := range written {
				if w {
					j.report.Written++
				}
			}
			urls, given = urls[:0], given[:0]
			return ok
		}
		for p, err := range sorter.Sorted(ctx) {
			if err != nil {
				yield(crawldb.Batch{}, err)
				return
			}
			urls = append(urls, crawldb.URLOf(string(p.Key)))
			given = append(given, math.Float64frombits(binary.BigEndian.Uint64(p.Value)))
			if len(urls) == j.o.chunk && !flush() {
				return
			}
		}
		if len(urls) > 0 {
			flush()
		}
	}
}
