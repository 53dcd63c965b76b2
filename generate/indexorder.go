package generate

import (
	"container/heap"
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
// equal ones, the one that came first.
type bestFirst struct {
	heap ranked
	came uint32
	same []crawldb.Candidate
}

// ranking is a candidate with its rank, followed by when it came.
type ranking struct {
	order uint64
	crawldb.Candidate
}

func (r *ranking) rank() uint32 { return uint32(r.order >> 32) }

// ranked is what container/heap works on.
type ranked []ranking

func (r ranked) Len() int           { return len(r) }
func (r ranked) Less(i, j int) bool { return r[i].order < r[j].order }
func (r ranked) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ranked) Push(x any)        { *r = append(*r, x.(ranking)) }
func (r *ranked) Pop() any {
	last := (*r)[len(*r)-1]
	(*r)[len(*r)-1] = ranking{}
	*r = (*r)[:len(*r)-1]
	return last
}

func (b *bestFirst) push(c crawldb.Candidate) {
	heap.Push(&b.heap, ranking{uint64(rankOf(c.Priority))<<32 | uint64(b.came), c})
	b.came++
}

// pop removes the first candidate. There must be one.
func (b *bestFirst) pop() crawldb.Candidate { return heap.Pop(&b.heap).(ranking).Candidate }

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
