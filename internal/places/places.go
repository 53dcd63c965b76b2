// Package places gives pages short names: their positions in key order among
// all pages that there is room for. Links are sorted with the place of the page
// they are on, which takes a tenth of its URL and compares the same way.
package places

import (
	"cmp"
	"slices"
	"strings"
)

// Places are the places of the pages that were added, once sorted.
type Places struct {
	// Room is the number of bytes of URLs for which there is still room.
	Room int

	// Compare orders URLs by their keys.
	Compare func(a, b string) int

	urls []string // in key order
	// Pages are mostly looked for in the order in which they were added, since a
	// fetch writes everything about a page to all parts at the same time: came has
	// their places in that order, first the position in came of each place, and next
	// the position after the one found last.
	came, when []uint32
	next       int
}

// Add adds a page, if there is room for it. It retains no more than the URL.
func (p *Places) Add(url string) {
	if n := len(url) + 24; p.Room >= n {
		p.Room -= n
		p.urls = append(p.urls, strings.Clone(url)) // part of a block
	}
}

// Sort assigns the places.
func (p *Places) Sort() {
	p.when = make([]uint32, len(p.urls))
	for i := range p.when {
		p.when[i] = uint32(i)
	}
	slices.SortFunc(p.when, func(a, b uint32) int {
		return cmp.Or(p.Compare(p.urls[a], p.urls[b]), cmp.Compare(a, b))
	})
	p.came, p.next = make([]uint32, len(p.urls)), 0
	urls, when := make([]string, 0, len(p.urls)), p.when[:0]
	for _, i := range p.when {
		if url := p.urls[i]; len(urls) == 0 || urls[len(urls)-1] != url {
			urls, when = append(urls, url), append(when, i)
		}
		p.came[i] = uint32(len(urls) - 1)
	}
	p.urls, p.when = urls, when
}

// Find returns the place of a page; ok is false if it has none, and place is
// then where it would be.
func (p *Places) Find(url string) (place int, ok bool) {
	if p.next < len(p.came) {
		place = int(p.came[p.next])
		ok = p.urls[place] == url
	}
	if !ok {
		if place, ok = slices.BinarySearchFunc(p.urls, url, p.Compare); !ok {
			return place, false
		}
		p.next = int(p.when[place])
	}
	p.next++
	return place, true
}

// At returns the page at a place, if there is one.
func (p *Places) At(place uint64) (url string, ok bool) {
	if place >= uint64(len(p.urls)) {
		return "", false
	}
	return p.urls[place], true
}
