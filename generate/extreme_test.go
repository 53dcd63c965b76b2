package generate_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/stores/memstore"
)

// The greatest number there is stands for no limit, in each option and together.
func TestGreatestNumbers(t *testing.T) {
	const n = 40
	for name, o := range map[string]generate.Options{
		"TopN":                  {TopN: math.MaxInt},
		"half of that":          {TopN: math.MaxInt/2 + 1},
		"TopN of two":           {TopN: math.MaxInt, Segments: 2},
		"less than none":        {TopN: -1},
		"MaxPerHost":            {MaxPerHost: math.MaxInt, Segments: 3},
		"MaxPerPart":            {MaxPerPart: math.MaxInt, Segments: 2},
		"half of that, of four": {MaxPerPart: math.MaxInt/4 + 1, Segments: 4},
		"Segments":              {Segments: math.MaxInt},
		"Segments of few":       {Segments: math.MaxInt, TopN: 7},
		"Segments of few hosts": {Segments: math.MaxInt, MaxPerHost: 2},
		"all":                   {Segments: math.MaxInt, TopN: math.MaxInt, MaxPerHost: math.MaxInt, MaxPerPart: math.MaxInt},
	} {
		for _, compat := range []bool{false, true} {
			t.Run(fmt.Sprint(name, compat), func(t *testing.T) {
				var db memstore.DB
				putAll(t, db.Crawl(), many(n, 4))
				o := o
				o.NutchCompat = compat
				if r := run(t, db.Crawl(), db.Segments(), o); r.Selected != n {
					t.Errorf("%d of %d were selected, rejected %v", r.Selected, n, r.Rejected)
				}
			})
		}
	}
}
