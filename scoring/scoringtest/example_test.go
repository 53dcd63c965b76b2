package scoringtest_test

import (
	"fmt"
	"strings"

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
	rule, _, _ := strings.Cut(err.Error(), " is broken")
	fmt.Println(rule)
	// Output: rule "no score is NaN or infinite"
}
