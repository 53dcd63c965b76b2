package rank

import (
	"errors"
	"math"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/memstore"
)

// What is kept of a graph can be anything once a disk is damaged: it is read, and then
// can be computed with and gone on with, or it is said to be damaged.
func FuzzLoad(f *testing.F) {
	g := NewGraph(0, -1)
	k := &kept{graph: g}
	for _, key := range []string{"example:a/", "example:b/", "example:b/2"} {
		k.add([]byte(key))
	}
	g.Link(0, 0, 2, []uint32{1, 2})
	g.Link(2, 1.5, 1, []uint32{0})
	var db memstore.Crawl
	if err := k.save(f.Context(), &db, "", ""); err != nil {
		f.Fatal(err)
	}
	f.Add(k.head.String(), string(k.fresh[0]), string(g.log[0].data))
	k.ranked()
	f.Add(k.head.String(), string(k.fresh[0]), string(g.log[0].data))
	f.Add(head{}.String(), "", "")
	f.Add(head{pages: 1 << 31, pageBlocks: 1}.String(), "\x00\x00", "")
	f.Add(head{pages: 1, pageBlocks: 1, linkBlocks: 1, entries: 1}.String(), "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x02\x00\x00")
	f.Fuzz(func(t *testing.T, mark, pages, links string) {
		var db memstore.Crawl
		marks := map[string]string{pagesJob(0): pages}
		h, err := parseHead(mark)
		if err == nil {
			marks[linksJob(h.generation, 0)] = links
		}
		if err := db.Update(t.Context(), crawldb.Batch{Marks: func() map[string]string { return marks }}); err != nil {
			t.Fatal(err)
		}
		g := NewGraph(0, -1)
		k, err := load(t.Context(), &db, mark, g)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Errorf("%q, %q, %q: %v", mark, pages, links, err)
			}
			return
		}
		if g.Pages() != h.pages || k.head != h {
			t.Errorf("%q: %d pages", mark, g.Pages())
		}
		g.Compute()
		for n := range g.Pages() {
			if given := g.Given(uint32(n)); !(given >= 0) || math.IsInf(given, 0) {
				t.Errorf("page %d is given %v", n, given)
			}
		}
		k.add([]byte("example:new/"))
		if err := k.save(t.Context(), &db, "", ""); err != nil {
			t.Fatal(err)
		}
		again := NewGraph(0, -1)
		if _, err := load(t.Context(), &db, k.head.String(), again); err != nil && g.Pages() == h.pages+1 && h.linkBlocks <= 1 {
			t.Errorf("%q, %q, %q: gone on with: %v", mark, pages, links, err)
		}
	})
}
