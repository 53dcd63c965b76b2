package generate

import (
	"iter"
	"math"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

// levelExtra is the least number of candidates of one index level that are put
// into exact order.
const levelExtra = 1 << 16

// ordered puts the candidates of an index, which may yield priorities within an
// eighth of an octave in any order, into exact order. It holds those of one
// such level; if a level has more than most, the best of them are yielded
// early, as an index promises no more, and millions of seeds of equal priority cause no wait.
func ordered(hints iter.Seq2[crawldb.Candidate, error], most int) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		var held bestFirst
		for c, err := range hints {
			if err != nil {
				yield(crawldb.Candidate{}, err)
				return
			}
			for bound := rankOf(above(c.Priority)); len(held.heap) > 0 && held.heap[0].rank() < bound; {
				if !held.yieldBest(yield) {
					return
				}
			}
			if held.push(c); len(held.heap) > most && !yield(held.pop(), nil) {
				return
			}
		}
		for len(held.heap) > 0 {
			if !held.yieldBest(yield) {
				return
			}
		}
	}
}

// above returns a priority that is not exceeded by any that may follow p in an
// index.
func above(p float32) float32 {
	const level = 1.0906 // 2^(1/8) is 1.0905...
	const tiny = 1e-37   // below, floats are too coarse for levels
	switch {
	case p != p:
		return float32(math.Inf(-1))
	case p > tiny:
		return p * level
	case p >= -tiny:
		return tiny * level
	}
	return p / level
}

// rankOf numbers priorities, the highest first and NaN last.
func rankOf(p float32) uint32 {
	bits := math.Float32bits(p)
	switch {
	case p != p:
		return math.MaxUint32
	case p == 0: // and the negative zero
		bits = 1 << 31
	case p < 0:
		bits = ^bits
	default:
		bits |= 1 << 31
	}
	return ^bits
}

// bestFirst is a heap of candidates, with the highest priority first and, among
// equal ones, the one that came first. What is compared and moved is small:
// candidates stay where they are.
type bestFirst struct {
	heap []ranking
	at   []crawldb.Candidate
	free []uint32 // of at
	came uint32
	same []crawldb.Candidate
}

// ranking is the rank of a candidate, when it came, and where it is.
type ranking struct {
	order uint64
	at    uint32
}

func (r ranking) rank() uint32 { return uint32(r.order >> 32) }

func (b *bestFirst) push(c crawldb.Candidate) {
	at := uint32(len(b.at))
	if n := len(b.free); n > 0 {
		at, b.free = b.free[n-1], b.free[:n-1]
		b.at[at] = c
	} else {
		b.at = append(b.at, c)
	}
	h := append(b.heap, ranking{uint64(rankOf(c.Priority))<<32 | uint64(b.came), at})
	b.came++
	i := len(h) - 1
	for r := h[i]; i > 0; {
		up := (i - 1) / 2
		if h[up].order <= r.order {
			break
		}
		h[i], h[up] = h[up], r
		i = up
	}
	b.heap = h
}

// pop removes the first candidate. There must be one.
func (b *bestFirst) pop() crawldb.Candidate {
	h := b.heap
	at := h[0].at
	n := len(h) - 1
	r := h[n]
	h, b.heap = h[:n], h[:n]
	for i := 0; n > 0; {
		down := 2*i + 1
		if down >= n {
			h[i] = r
			break
		}
		if down+1 < n && h[down+1].order < h[down].order {
			down++
		}
		if r.order <= h[down].order {
			h[i] = r
			break
		}
		h[i] = h[down]
		i = down
	}
	c := b.at[at]
	b.at[at] = crawldb.Candidate{}
	b.free = append(b.free, at)
	return c
}

// yieldBest yields all candidates with the priority of the first, by key.
func (b *bestFirst) yieldBest(yield func(crawldb.Candidate, error) bool) bool {
	rank := b.heap[0].rank()
	first := b.pop()
	if len(b.heap) == 0 || b.heap[0].rank() != rank {
		return yield(first, nil)
	}
	b.same = append(b.same[:0], first)
	for len(b.heap) > 0 && b.heap[0].rank() == rank {
		b.same = append(b.same, b.pop())
	}
	byKey := func(a, b crawldb.Candidate) int { return crawldb.Compare(a.URL, b.URL) }
	if !slices.IsSortedFunc(b.same, byKey) { // nearly never
		slices.SortFunc(b.same, byKey)
	}
	for _, c := range b.same {
		if !yield(c, nil) {
			return false
		}
	}
	return true
}
