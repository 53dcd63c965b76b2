package update

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
)

// Links without a bound are put in order once, when all are there.
func TestLinksWithoutABound(t *testing.T) {
	const n = 2000
	g := grouper{maxLinks: math.MaxInt}
	for i := range n { // the best comes last
		value := binary.BigEndian.AppendUint64([]byte{kindLink}, math.Float64bits(float64(i)))
		value = append(binary.AppendUvarint(value, 0), "http://from.example/"...)
		if err := g.add(extsort.Pair{Key: []byte(crawldb.Key("http://to.example/")), Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if first := g.links[0].Score; first != 0 {
		t.Errorf("they were put in order before: the first has the score %v", first)
	}
	in, ok := g.last()
	if !ok || len(in.Links) != n || in.Links[0].Score != n-1 {
		t.Errorf("%d links, %v", len(in.Links), ok)
	}
}
