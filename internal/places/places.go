// Package places gives pages short names: their places among all that there is room
// for, in key order. Links are sorted with the place of the page that they are on,
// which is a tenth of its URL and compares as that does.
package places

import (
	"slices"
	"strings"
)

// Places are those of the pages that were added, once they are sorted.
type Places struct {
	// Room is for how many bytes of URLs there still is room.
	Room int

	// Compare orders URLs by their keys.
	Compare func(a, b string) int

	urls []string // in key order
}

// Add adds a page, if there is room for it. It holds on to no more than the URL.
func (p *Places) Add(url string) {
	if n := len(url) + 16; p.Room >= n {
		p.Room -= n
		p.urls = append(p.urls, strings.Clone(url)) // of a block
	}
}

// Sort gives the pages their places.
func (p *Places) Sort() {
	slices.SortFunc(p.urls, p.Compare)
	p.urls = slices.Compact(p.urls)
}

// Find returns the place of a page; ok is false if it has none, and place is then
// where it would stand.
func (p *Places) Find(url string) (place int, ok bool) {
	return slices.BinarySearchFunc(p.urls, url, p.Compare)
}

// At returns the page at a place, if there is one.
func (p *Places) At(place uint64) (url string, ok bool) {
	if place >= uint64(len(p.urls)) {
		return "", false
	}
	return p.urls[place], true
}
