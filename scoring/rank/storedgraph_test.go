package rank

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/memstore"
)

// The stored graph can be any bytes once a disk is damaged: it is read, and then
// can be computed with and gone on with, or it is said to be damaged.
func FuzzLoad(f *testing.F) {
	g := NewGraph(scoring.PageRank{}, -1)
	k := &storedGraph{graph: g}
	for _, key := range []string{"example:a/", "example:b/", "example:b/2"} {
		k.add([]byte(key))
	}
	g.Link(0, 0, 2, []uint32{1, 2})
	g.Link(2, 1.5, 1, []uint32{0})
	var db memstore.Crawl
	if err := k.save(f.Context(), &db, "", ""); err != nil {
		f.Fatal(err)
	}
	f.Add(k.head.String(), string(k.unstoredPages[0]), string(g.log[0].data), true)
	k.markRanked()
	f.Add(k.head.String(), string(k.unstoredPages[0]), string(g.log[0].data), true)
	f.Add(head{}.String(), "", "", true)
	f.Add(strings.Replace(head{pages: 1, pageBlocks: 1}.String(), "pages 1", "pages 2147483648", 1), "\x00\x00", "", true)
	f.Add(head{pages: 1, pageBlocks: 1, linkBlocks: 1, entries: 1}.String(), "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x02\x00\x00", true)
	f.Add(k.head.String(), appendChecksum(pagesMark(0, 0), k.unstoredPages[0]), appendChecksum(linksMark(0, 0), g.log[0].data), false)
	f.Add(head{oldBlocks: math.MaxInt}.String(), "", "", true)
	f.Fuzz(func(t *testing.T, mark, pages, links string, sums bool) {
		if sums { // what no damage to a disk would have
			pages = appendChecksum(pagesMark(0, 0), []byte(pages))
		}
		var db memstore.Crawl
		marks := map[string]string{pagesMark(0, 0): pages}
		h, err := parseHead(mark)
		if err == nil {
			name := linksMark(h.generation, 0)
			if marks[name] = links; sums {
				marks[name] = appendChecksum(name, []byte(links))
			}
		}
		if err := db.Update(t.Context(), crawldb.Batch{Marks: func() map[string]string { return marks }}); err != nil {
			t.Fatal(err)
		}
		g := NewGraph(scoring.PageRank{}, -1)
		k, err := load(t.Context(), &db, mark, g)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Errorf("%q, %q, %q: %v", mark, pages, links, err)
			}
			return
		}
		if g.pages() != h.pages || k.head != h {
			t.Errorf("%q: %d pages", mark, g.pages())
		}
		g.Compute()
		for n := range g.pages() {
			if given := g.Received(uint32(n)); !(given >= 0) || math.IsInf(given, 0) {
				t.Errorf("page %d is given %v", n, given)
			}
		}
		k.add([]byte("example:new/"))
		if err := k.save(t.Context(), &db, "", ""); err != nil {
			t.Fatal(err)
		}
		again := NewGraph(scoring.PageRank{}, -1)
		if _, err := load(t.Context(), &db, k.head.String(), again); err != nil && g.pages() == h.pages+1 && h.linkBlocks <= 1 {
			t.Errorf("%q, %q, %q: gone on with: %v", mark, pages, links, err)
		}
	})
}

// A checksum covers every bit of every block, and the name it is stored under.
func TestDamagedBlocksAreDetected(t *testing.T) {
	var db memstore.Crawl
	put := func(name, mark string) {
		t.Helper()
		if err := db.Update(t.Context(), crawldb.Batch{Marks: func() map[string]string { return map[string]string{name: mark} }}); err != nil {
			t.Fatal(err)
		}
	}
	name := linksMark(3, 4)
	mark := appendChecksum(name, []byte("links"))
	put(name, mark)
	if got, err := readBlock(t.Context(), &db, name); got != "links" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	bad := func(name, mark string) {
		t.Helper()
		put(name, mark)
		if got, err := readBlock(t.Context(), &db, name); got != "" || !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q is %q, %v", mark, got, err)
		}
	}
	for i := range 8 * len(mark) {
		b := []byte(mark)
		b[i/8] ^= 1 << (i % 8)
		bad(name, string(b))
	}
	for n := range len(mark) {
		bad(name, mark[:n])
	}
	bad(linksMark(4, 3), mark)
	for _, h := range []head{{oldBlocks: maxBlocks + 1}, {oldBlocks: -1}, {linkBlocks: maxBlocks + 1}, {pageBlocks: -1}, {generation: -1}} {
		if _, err := parseHead(h.String()); !errors.Is(err, errDamaged) {
			t.Errorf("%v: %v", h, err)
		}
	}
}

// A graph stored before pages could be dropped is read, and continues as a new one.
func TestLoadOfVersion2(t *testing.T) {
	g := NewGraph(scoring.PageRank{}, -1)
	k := &storedGraph{graph: g}
	k.add([]byte("example:a/"))
	k.add([]byte("example:b/"))
	g.Link(0, 0, 1, []uint32{1})
	var db memstore.Crawl
	if err := k.save(t.Context(), &db, "", ""); err != nil {
		t.Fatal(err)
	}
	old := "2 pages 2 in 1 links 1 in 1 of 0 ranked 0 0 old 0 of 0"
	again := NewGraph(scoring.PageRank{}, -1)
	k, err := load(t.Context(), &db, old, again)
	if err != nil || again.pages() != 2 || again.links() != 1 {
		t.Fatalf("%d pages, %d links: %v", again.pages(), again.links(), err)
	}
	if h, err := parseHead(k.head.String()); err != nil || h != k.head {
		t.Errorf("%v is read as %v: %v", k.head, h, err)
	}
	if _, err := parseHead(old + " pages of 0 old 0 of 0 left 0 before 0"); !errors.Is(err, errDamaged) {
		t.Errorf("%v", err)
	}
}
