package generate_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
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

// No page is due before it is, and none lies so far ahead that a clock was wrong, however
// long ago the selection looks.
func TestAheadOfLessThanNothing(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, math.MinInt64} {
		var db memstore.DB
		late := due("http://a.example.test/late", 1)
		late.FetchTime = now.Add(time.Hour)
		putAll(t, db.Crawl(), []crawldb.Datum{due("http://a.example.test/due", 1), late})
		if r := run(t, db.Crawl(), db.Segments(), generate.Options{Ahead: ahead}); r.Selected != 1 {
			t.Errorf("ahead by %v: %d were selected", ahead, r.Selected)
		}
	}
}
