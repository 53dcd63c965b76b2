package generate

import "hash/maphash"

// A urlSet is a set of URLs that hashes each only once: a growing map hashes all of them
// again, and URLs are long and scattered in memory. The zero value is empty.
type urlSet struct {
	seed   maphash.Seed
	urls   []string
	hashed int // how many of the URLs, the first ones, have a slot
	// A slot has half of a hash, and the number of its URL from 1 on; zero means none.
	// It is searched from the place given by the bits of the hash.
	slots []uint64
}

// leastSlots is the initial number of slots; it is a power of two.
const leastSlots = 64

// find returns the slot of a URL, or the one where it belongs; there must be
// some.
func (s *urlSet) find(url string) (at int, half uint64, found bool) {
	half = maphash.String(s.seed, url) >> 32
	for at = int(half) & (len(s.slots) - 1); s.slots[at] != 0; at = (at + 1) & (len(s.slots) - 1) {
		if slot := s.slots[at]; slot>>32 == half && s.urls[uint32(slot)-1] == url {
			return at, half, true
		}
	}
	return at, half, false
}

func (s *urlSet) has(url string) bool {
	if len(s.urls) == 0 {
		return false
	}
	s.hash()
	_, _, found := s.find(url)
	return found
}

// add reports whether the URL is new.
func (s *urlSet) add(url string) bool {
	s.hash()
	if s.hashed >= len(s.slots)/4*3 {
		s.grow()
	}
	at, half, found := s.find(url)
	if !found {
		s.urls = append(roomy(s.urls), url)
		s.hashed++
		s.slots[at] = half<<32 | uint64(s.hashed)
	}
	return !found
}

// put adds a URL that the set does not have. It is hashed by the next lookup, if there
// is one.
func (s *urlSet) put(url string) { s.urls = append(roomy(s.urls), url) }

// hash assigns slots to URLs that have none.
func (s *urlSet) hash() {
	for ; s.hashed < len(s.urls); s.hashed++ {
		if s.hashed >= len(s.slots)/4*3 {
			s.grow()
		}
		at, half, _ := s.find(s.urls[s.hashed])
		s.slots[at] = half<<32 | uint64(s.hashed+1)
	}
}

func (s *urlSet) grow() {
	if s.slots == nil {
		s.seed = maphash.MakeSeed()
	}
	old := s.slots
	s.slots = make([]uint64, max(2*len(old), leastSlots))
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := int(slot>>32) & (len(s.slots) - 1)
		for s.slots[at] != 0 {
			at = (at + 1) & (len(s.slots) - 1)
		}
		s.slots[at] = slot
	}
}

func (s *urlSet) clear() {
	clear(s.slots)
	clear(s.urls)
	s.urls, s.hashed = s.urls[:0], 0
}

// roomy returns a slice with room for one more, twice as large if it has to grow:
// append makes large slices larger by a quarter, and copies all the more often.
func roomy[T any](s []T) []T {
	if len(s) < cap(s) {
		return s
	}
	return append(make([]T, 0, max(2*cap(s), 64)), s...)
}
