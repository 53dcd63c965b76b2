package urlfiltertest_test

import (
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/urlfilter"
	"github.com/recrawl/recrawl/urlfilter/urlfiltertest"
)

// slashes adds a slash to each URL, whether or not it has one.
type slashes struct{}

func (slashes) Normalize(_ urlfilter.Scope, url string) (string, error) { return url + "/", nil }

// Check tells a program which laws a filter or normalizer breaks.
func ExampleCheck() {
	err := urlfiltertest.Check(urlfiltertest.Harness{Normalizer: func() urlfilter.Normalizer { return slashes{} }})
	rule, _, _ := strings.Cut(err.Error(), " is broken")
	fmt.Println(rule)
	// Output: rule "a normal form is its own normal form"
}
