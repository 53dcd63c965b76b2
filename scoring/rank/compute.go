package rank

import (
	"encoding/binary"
	"iter"
	"math"
)

// The parameters of the computation. On graphs of 5,000 to 300,000 pages, more
// passes or a finer tolerance were measured not to improve the order.
const (
	maxPasses = 8
	tolerance = 1.0 / 256
	// A pass is the last if fewer than one page in fewPages had something to give.
	fewPages = 64
)

// Compute computes what each page receives along its links: the damping factor times
// what each page that links to it has, divided by the number of links of that page. A
// page has 1 of its own, what Link gave it in addition, and what it receives.
//
// Pages are processed in the order in which their links came, and each passes on what
// it has received since it last did, unless that is too little to matter (Gauss-Seidel
// iteration on residuals: McSherry, A Uniform Approach to Accelerated PageRank
// Computation, WWW 2005). New links mostly lead to pages that were fetched later, so a
// few passes are enough.
func (g *Graph) Compute() {
	n := len(g.hashes)
	if cap(g.rank) < n {
		g.rank, g.residual = make([]float32, n+n/8), make([]float32, n+n/8)
	}
	g.rank, g.residual = g.rank[:n], g.residual[:n]
	clear(g.rank)
	clear(g.residual)
	for pass := range maxPasses {
		if gave, pages := g.pass(pass == 0); gave*fewPages < pages {
			break
		}
	}
	g.hosts.computeFactors(g.power)
	g.directories.computeFactors(g.power)
}

// pass has each page give what it has received since the pass before. It returns how
// many did, and how many could have.
func (g *Graph) pass(first bool) (gave, pages int) {
	rank, rest, damping := g.rank, g.residual, float32(g.damping)
	for _, b := range g.log {
		number := b.first
		for data := b.data; len(data) > 0; number++ {
			size, k := binary.Uvarint(data)
			body := data[k : k+int(size)]
			data = data[k+int(size):]
			p, k := binary.Uvarint(body)
			page := uint32(p)
			if g.entryOf[page] != number {
				continue
			}
			pages++
			has := rest[page]
			if !first && has <= tolerance*(1+rank[page]) {
				continue
			}
			gave++
			rank[page] += has
			rest[page] = 0
			if first { // what it has of its own
				has++
			}
			head, j := binary.Uvarint(body[k:])
			body = body[k+j:]
			if head&1 != 0 {
				if first {
					has += math.Float32frombits(binary.BigEndian.Uint32(body))
				}
				body = body[4:]
			}
			if len(body) == 0 {
				continue
			}
			// The conversion prevents a fused multiply-add, which would give
			// different results on different machines.
			share := float32(damping * has / float32(head>>1))
			delta, k := binary.Varint(body)
			to := uint32(int64(page) + delta)
			rest[to] += share
			for i := k; i < len(body); {
				d := uint32(body[i])
				i++
				if d >= 0x80 {
					d &= 0x7f
					for s := 7; ; s += 7 {
						c := body[i]
						i++
						d |= uint32(c&0x7f) << s
						if c < 0x80 {
							break
						}
					}
				}
				to += d
				rest[to] += share
			}
		}
	}
	return gave, pages
}

// Received returns what a page received as of the last Compute.
func (g *Graph) Received(page uint32) float64 {
	if int(page) >= len(g.rank) {
		return 0
	}
	return float64(g.rank[page]) + float64(g.residual[page])
}

// score returns the score of a page as of the last Compute: what it received, multiplied, if
// the page was not fetched, by the factors of its host and directory: see
// [scoring.PageRank].
func (g *Graph) score(page uint32) float64 {
	received := g.Received(page)
	if int(page) < len(g.rank) && g.entryOf[page] == 0 {
		received *= g.hosts.factor[g.hosts.groupOf[page]] * g.directories.factor[g.directories.groupOf[page]]
	}
	return received
}

// Changed yields, in ascending order, the pages whose level of score as of the last
// Compute differs from that at the last Settle, or that are new since, with their scores.
// A level of a fetched page is an octave of what it receives, of one that was not fetched
// a quarter of that: when a page is fetched again depends less on its score than when it
// is fetched first.
func (g *Graph) Changed() iter.Seq2[uint32, float64] {
	return func(yield func(uint32, float64) bool) {
		for i := range g.rank {
			score, shift := g.score(uint32(i)), 0
			if g.entryOf[i] != 0 {
				shift = 2
			}
			was, is := g.writtenLevel[i], level(score)
			if was>>shift != is>>shift && !yield(uint32(i), score) {
				return
			}
		}
	}
}

// MarkWritten says that the records have the scores of the last Compute.
func (g *Graph) MarkWritten() { g.setLevels(len(g.rank)) }

func (g *Graph) setLevels(pages int) {
	for i := range pages {
		g.writtenLevel[i] = level(g.score(uint32(i)))
	}
	g.counts.changed = 0
}

// level returns the level of a score, of which there are four in an octave. Zero is
// no level.
func level(score float64) uint16 {
	const mantissa = 23 - 2
	return uint16(math.Float32bits(float32(score))>>mantissa) + 4
}
