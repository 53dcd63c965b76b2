package rank

import (
	"bytes"
	"math"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

// places are parts of the web, the hosts or their directories, with the number of fetched
// pages in each. Every page is in exactly one.
type places struct {
	of      []uint32          // by page
	numbers map[uint64]uint32 // by the hash of the name
	fetched []uint32          // how many pages of each place have an entry
	worth   []float64         // the factor for pages without one
}

// placeBytes is what a place takes in memory.
const placeBytes = 8 + 4 + 4 + 8 + 16

// add puts the next page into a place.
func (p *places) add(name uint64) {
	n, ok := p.numbers[name]
	if !ok {
		if p.numbers == nil {
			p.numbers = map[uint64]uint32{}
		}
		n = uint32(len(p.fetched))
		p.numbers[name] = n
		p.fetched = append(p.fetched, 0)
	}
	p.of = append(p.of, n)
}

// weigh computes the factor of each place.
func (p *places) weigh(power float64) {
	p.worth = p.worth[:0]
	if len(p.fetched) == 0 {
		return
	}
	most := slices.Max(p.fetched)
	for _, n := range p.fetched {
		p.worth = append(p.worth, math.Pow(float64(1+most)/float64(1+n), power))
	}
}

// hostOf returns the part of a key that is the host.
func hostOf(key []byte) []byte {
	if len(key) > 0 && key[0] == '!' {
		return []byte(crawldb.Host(string(key[1:])))
	}
	host, _, _ := bytes.Cut(key, []byte(")"))
	return host
}

// directoryOf returns the part of a key that identifies the directory within its host: the
// path up to its last slash. The scheme makes no difference.
func directoryOf(key []byte) []byte {
	path, _, _ := bytes.Cut(key, []byte("?"))
	begin, end := bytes.IndexByte(path, '/'), bytes.LastIndexByte(path, '/')
	if begin < 0 {
		return nil
	}
	return path[begin : end+1]
}
