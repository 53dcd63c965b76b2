package rank

import (
	"bytes"
	"math"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

// pageGroups groups pages by host or by directory, and counts the fetched pages of each
// group. Every page is in exactly one group.
type pageGroups struct {
	groupOf []uint32          // by page
	numbers map[uint64]uint32 // by the hash of the name
	fetched []uint32          // number of pages of each group that have an entry
	factor  []float64         // the factor for pages without one
}

// groupBytes is the memory that a group takes.
const groupBytes = 8 + 4 + 4 + 8 + 16

// add puts the next page into the group of a name.
func (p *pageGroups) add(name uint64) {
	n, ok := p.numbers[name]
	if !ok {
		if p.numbers == nil {
			p.numbers = map[uint64]uint32{}
		}
		n = uint32(len(p.fetched))
		p.numbers[name] = n
		p.fetched = append(p.fetched, 0)
	}
	p.groupOf = append(p.groupOf, n)
}

// computeFactors computes the factor of each group.
func (p *pageGroups) computeFactors(power float64) {
	p.factor = p.factor[:0]
	if len(p.fetched) == 0 {
		return
	}
	most := slices.Max(p.fetched)
	for _, n := range p.fetched {
		p.factor = append(p.factor, math.Pow(float64(1+most)/float64(1+n), power))
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
