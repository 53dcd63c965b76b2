// Package places numbers pages: the place of a page is its position in key order among
// all pages that there is room for. Links are sorted with the place of the page
// they are on, which takes a tenth of its URL and compares the same way; a page without a
// place is named by its URL.
package places

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/internal/extsort"
)

// Places are the places of the pages that were added, once sorted.
type Places struct {
	// Room is the number of bytes of URLs for which there is still room.
	Room int

	// AppendKey appends the key of a URL, by which URLs are ordered. No two have the
	// same.
	AppendKey func(dst []byte, url string) []byte

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

// Sort assigns the places. Meanwhile there is a copy of each URL, in its key.
func (p *Places) Sort() error {
	size := 0
	for _, url := range p.urls {
		size += len(url) + 24
	}
	sorter := extsort.New(extsort.Options{MemoryBytes: 4*size + 64<<10}) // it needs no file
	defer sorter.Close()
	var key, value []byte
	for i, url := range p.urls {
		key, value = p.AppendKey(key[:0], url), binary.BigEndian.AppendUint32(value[:0], uint32(i))
		if err := sorter.Add(key, value); err != nil {
			return err
		}
	}
	p.came, p.next = make([]uint32, len(p.urls)), 0
	urls := make([]string, 0, len(p.urls))
	p.when = make([]uint32, 0, len(p.urls))
	for pair, err := range sorter.Sorted(context.Background()) {
		if err != nil {
			return err
		}
		i := binary.BigEndian.Uint32(pair.Value)
		if url := p.urls[i]; len(urls) == 0 || urls[len(urls)-1] != url {
			urls, p.when = append(urls, url), append(p.when, i)
		}
		p.came[i] = uint32(len(urls) - 1)
	}
	p.urls = urls
	return nil
}

// Find returns the place of a page; ok is false if it has none, and place is
// then where it would be.
func (p *Places) Find(url string) (place int, ok bool) {
	if p.next < len(p.came) {
		place = int(p.came[p.next])
		ok = p.urls[place] == url
	}
	if !ok {
		var other []byte
		place, ok = slices.BinarySearchFunc(p.urls, p.AppendKey(nil, url), func(url string, key []byte) int {
			other = p.AppendKey(other[:0], url)
			return bytes.Compare(other, key)
		})
		if !ok {
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
