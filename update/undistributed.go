package update

import (
	"math"
	"math/big"

	"github.com/recrawl/recrawl/segment"
)

// undistributedScore adds up the score that pages gave away and no link received. The sum is
// exact, whatever the order of the pages: it has room for every bit that a float64 can have.
type undistributedScore struct{ sum big.Float }

func (p *undistributedScore) add(of *segment.Parse) {
	rest := of.Gave
	for _, l := range of.Links {
		rest -= l.Score
	}
	// A rest that is only due to rounding does not count.
	if rest > 1e-12*of.Gave && !math.IsInf(rest, 0) {
		p.sum.SetPrec(2200).Add(&p.sum, big.NewFloat(rest))
	}
}

func (p *undistributedScore) share(visits int) float64 {
	all, _ := p.sum.Float64()
	if visits == 0 || math.IsInf(all, 0) {
		return 0
	}
	return all / float64(visits)
}
