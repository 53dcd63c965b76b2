package fetch

import (
	"crypto/sha256"
)

// pageID stands for a URL; not even hostile pages can make two collide.
type pageID [16]byte

func idOf(url string) (id pageID) {
	sum := sha256.Sum256([]byte(url))
	return pageID(sum[:])
}

// urlSet is a set of URLs that takes some 30 bytes for each, whatever their
// length.
type urlSet map[pageID]struct{}

func (p urlSet) add(url string) { p[idOf(url)] = struct{}{} }

func (p urlSet) has(url string) bool {
	if len(p) == 0 {
		return false
	}
	_, ok := p[idOf(url)]
	return ok
}

// bits is a set of small numbers.
type bits []uint64

func (b bits) has(i int) bool { return i/64 < len(b) && b[i/64]&(1<<(i%64)) != 0 }

func (b *bits) set(i int) {
	for i/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

func (b bits) clear(i int) { b[i/64] &^= 1 << (i % 64) }
