package scoringtest_test

import (
	"errors"
	"fmt"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/scoringtest"
)

// endless doubles a score without end.
type endless struct{ scoring.Base }

func (endless) Updated(_, d *crawldb.Datum, _ scoring.Flow) { d.Score *= 2 }

// Check tells a program which laws a filter breaks.
func ExampleCheck() {
	err := scoringtest.Check(scoringtest.Harness{New: func() scoring.Filter { return endless{} }})
	var first *scoringtest.Error
	if errors.As(err, &first) {
		fmt.Println(first.Rule)
	}
	// Output: no score is NaN or infinite
}
