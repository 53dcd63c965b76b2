package parse_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
)

// A parser for another format has one method, and takes one more entry.
func ExampleMux() {
	m := htmlparse.Mux(nil)
	m["text/x-lines"] = lineCounter{}

	for _, c := range []*page.Content{
		{URL: "http://h.example/a", Type: "text/html", Body: []byte("<title>A page</title>")},
		{URL: "http://h.example/b", Type: "text/x-lines", Body: []byte("one\ntwo\n")},
		{URL: "http://h.example/c", Type: "video/mp4"},
	} {
		got, err := m.Parse(context.Background(), c)
		fmt.Println(got.Title, errors.Is(err, parse.ErrUnsupported))
	}
	// Output:
	// A page false
	// 2 lines false
	//  true
}

type lineCounter struct{}

func (lineCounter) Parse(_ context.Context, c *page.Content) (page.Parsed, error) {
	n := 0
	for _, b := range c.Body {
		if b == '\n' {
			n++
		}
	}
	return page.Parsed{Title: fmt.Sprint(n, " lines")}, nil
}
