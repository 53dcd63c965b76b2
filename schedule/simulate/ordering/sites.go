package ordering

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// GenerateSites makes up a web of about that many pages that is harder than that of
// [Generate]: few hosts of very different sizes, each of nested collections, so that much of
// it is far from all seeds. A collection is an archive of mail, a manual, a book, a list of
// files, or an index. Most have a few pages to which all others link, and which have much of
// the PageRank; an index leads to thousands that have next to none. One page in five has no
// links, and few link to other hosts.
//
// Its parameters were chosen so that a web of 325,557 pages resembles a crawl of a national
// research network of that size, as far as its figures were published: breadth first had an
// area of .568 there, Nutch's OPIC .604, the best by true PageRank .744, and the bound was
// .833. Here breadth first has .603, .602 and .624 with seeds 1 to 3, the best by true
// PageRank .714, .712 and .731, and the bound is .807 to .815. The same arguments give the
// same web.
func GenerateSites(pages int, seed uint64) *Web {
	s := sites{rnd: rand.New(rand.NewPCG(seed, 1)), pages: max(pages, 2)}
	for len(s.names) < s.pages {
		s.host()
	}
	return s.web()
}

// sites is a growing web.
type sites struct {
	builder
	rnd   *rand.Rand
	pages int
	hosts int

	dead    []bool   // pages that have no links
	popular []uint32 // a page once for each link to it

	// Of the current host.
	begin uint32
	menu  []uint32
}

// The parameters of a web of sites, as shares.
const (
	siteGreatest   = 0.1    // of all pages, on the greatest host
	siteCollection = 0.15   // of all pages, in the greatest collection
	siteDead       = 0.12   // of the pages of a collection, that have no links
	siteDeep       = 0.5    // of the collections, that hang below any page of their host
	siteHome       = 0.35   // of the collections, whose pages all link to the home page
	siteElsewhere  = 0.05   // of the pages, that link to another host
	siteEntries    = 0.0012 // of the pages, that are linked from another host besides
)

// power draws from a heavy-tailed distribution.
func (s *sites) power(exponent, scale, most float64) int {
	return max(1, int(min(math.Pow(1-s.rnd.Float64(), -exponent)*scale, most)))
}

// one returns true with the given probability.
func (s *sites) one(share float64) bool { return s.rnd.Float64() < share }

func (s *sites) page(dir int) uint32 {
	n := uint32(len(s.names))
	s.names = append(s.names, "http://s"+strconv.Itoa(s.hosts)+".example/"+strconv.Itoa(dir)+"/"+strconv.Itoa(int(n-s.begin)))
	s.dead = append(s.dead, false)
	return n
}

func (s *sites) add(from, to uint32) {
	if !s.dead[from] {
		s.link(from, to)
	}
}

// any returns a page from first up to, but not including, end.
func (s *sites) any(first, end uint32) uint32 { return first + s.rnd.Uint32N(end-first) }

// host grows the next host.
func (s *sites) host() {
	s.begin = uint32(len(s.names))
	size := min(s.power(1.1, 35, max(2, siteGreatest*float64(s.pages))), s.pages-len(s.names))
	end := int(s.begin) + size
	home := s.page(0)
	s.popular = append(s.popular, home)
	s.menu = append(s.menu[:0], home)
	for range s.rnd.IntN(16) {
		if len(s.names) < end {
			s.menu = append(s.menu, s.page(0))
		}
	}
	for _, from := range s.menu {
		for _, to := range s.menu {
			s.add(from, to)
		}
	}
	above := append([]uint32(nil), s.menu...) // pages that collections are attached to
	for dir := 1; len(s.names) < end; dir++ {
		size := min(s.power(1.2, 20, float64(s.pages)*siteCollection), end-len(s.names))
		parent := above[s.rnd.IntN(len(above))]
		if s.one(siteDeep) {
			parent = s.any(s.begin, uint32(len(s.names)))
			s.dead[parent] = false
		}
		root := s.page(dir)
		above = append(above, root)
		s.add(parent, root)
		if s.one(0.5) {
			s.add(root, parent)
		}
		if s.one(0.3) {
			s.add(root, home)
		}
		s.collection(root, dir, size-1)
		if s.one(0.5) {
			s.popular = append(s.popular, root)
		}
	}
	// Other hosts link to it.
	if s.begin > 0 {
		for range 2 + int(siteEntries*float64(size)) {
			to := home
			if s.one(0.5) {
				to = s.any(s.begin, uint32(end))
			}
			from := s.any(0, s.begin)
			s.dead[from] = false
			s.add(from, to)
		}
	}
	s.hosts++
}

// collection grows a collection with the given number of pages below its root.
func (s *sites) collection(root uint32, dir, size int) {
	if size <= 0 {
		return
	}
	const heads = 12 // pages that the others link to
	first := uint32(len(s.names))
	for i := range size {
		p := s.page(dir)
		s.dead[p] = i >= heads && s.one(siteDead)
	}
	end := uint32(len(s.names))
	if s.one(siteHome) {
		for p := first; p < end; p++ {
			s.add(p, s.menu[0])
			s.add(p, s.menu[min(1, len(s.menu)-1)])
		}
	}
	kinds := []struct {
		share float64
		grow  func(root, first, end uint32)
	}{{0.25, s.mail}, {0.23, s.manual}, {0.15, s.book}, {0.07, s.list}, {1, s.index}}
	for x, i := s.rnd.Float64(), 0; ; i++ {
		if x -= kinds[i].share; x < 0 || i == len(kinds)-1 {
			kinds[i].grow(root, first, end)
			break
		}
	}
	for p := first; p < end; p++ {
		if s.one(siteElsewhere) {
			to := s.popular[s.rnd.IntN(len(s.popular))]
			s.add(p, to)
			s.popular = append(s.popular, to)
		}
	}
}

// neighbours links a page to those before and after it.
func (s *sites) neighbours(p, first, end uint32) {
	if p > first {
		s.add(p, p-1)
	}
	if p+1 < end {
		s.add(p, p+1)
	}
}

// mail is an archive: up to four indexes of all messages, which link back to them and to
// answers.
func (s *sites) mail(root, first, end uint32) {
	indexes := []uint32{root}
	for range min(3, (end-first)/20) {
		indexes = append(indexes, first)
		first++
	}
	for _, i := range indexes {
		for _, other := range indexes {
			s.add(i, other)
		}
		for p := first; p < end; p++ {
			s.add(i, p)
			s.add(p, i)
		}
	}
	for p := first; p < end; p++ {
		s.neighbours(p, first, end)
		if p > first && s.one(0.5) {
			to := p - 1 - s.rnd.Uint32N(min(p-first, 10))
			s.add(p, to)
			s.add(to, p)
		}
	}
}

// manual has some pages on each page, and parts of thirty.
func (s *sites) manual(root, first, end uint32) {
	const part = 30
	heads := min(2+s.rnd.Uint32N(8), end-first)
	for h := range heads {
		s.add(root, first+h)
	}
	for p := first; p < end; p++ {
		s.add(p, root)
		for h := range heads {
			s.add(p, first+h)
		}
		s.neighbours(p, first, end)
		begin := first + (p-first)/part*part
		if p != begin {
			s.add(p, begin)
			for range s.rnd.IntN(6) {
				s.add(p, s.any(first, end))
			}
			continue
		}
		s.dead[p] = false
		s.add(first, p)
		for q := p; q < min(p+part, end); q++ {
			s.add(p, q)
		}
	}
}

// book has chapters of eight: next, previous, up, contents.
func (s *sites) book(root, first, end uint32) {
	s.add(root, first)
	for p := first; p < end; p++ {
		s.add(p, root)
		s.neighbours(p, first, end)
		if up := first + (p-first)/8; up != p {
			s.dead[up] = false
			s.add(p, up)
			s.add(up, p)
		}
	}
}

// list has pages of 25 files each, one leading to the next, and most files to nothing.
func (s *sites) list(root, first, end uint32) {
	pager, files := root, 0
	for p := first; p < end; p++ {
		s.add(pager, p)
		if files++; files > 25 {
			s.dead[p] = false
			s.add(p, pager)
			s.add(p, root)
			pager, files = p, 0
		} else if s.one(0.3) {
			s.add(p, pager)
			s.add(p, root)
		}
	}
}

// index links to all pages at once.
func (s *sites) index(root, first, end uint32) {
	for p := first; p < end; p++ {
		s.add(root, p)
		if s.one(0.45) {
			s.add(p, root)
			if s.one(0.5) {
				s.add(p, s.any(first, end))
			}
		}
	}
}
