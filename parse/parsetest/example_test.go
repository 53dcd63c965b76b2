package parsetest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/parsetest"
)

// first reads the first line as the title, whatever its bytes.
type first struct{}

func (first) Parse(_ context.Context, c *page.Content) (page.Parsed, error) {
	title, _, _ := strings.Cut(string(c.Body), "\n")
	return page.Parsed{Title: title, Truncated: true}, nil
}

func ExampleCheck() {
	err := parsetest.Check(context.Background(), parsetest.Harness{
		New:       func() parse.Parser { return first{} },
		Documents: []page.Content{{URL: "http://h.example/", Type: "text/plain", Body: []byte("A title\nA text\n")}},
	})
	rule, _, _ := strings.Cut(err.Error(), " is broken")
	fmt.Println(rule)
	// Output: rule "strings are UTF-8"
}
