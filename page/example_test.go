package page_test

import (
	"fmt"
	"time"

	"github.com/recrawl/recrawl/page"
)

// What the headers of a page ask for and what its meta elements do holds together.
func ExampleDirectives_And() {
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	header := page.Directives{UnavailableAfter: day(9)}
	meta := page.Directives{NoFollow: true, UnavailableAfter: day(5)}
	both := header.And(meta)
	fmt.Println(both.NoFollow, both.Indexable(day(4)), both.Indexable(day(6)))
	// Output: true true false
}
