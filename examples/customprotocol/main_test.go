package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/parsetest"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/protocoltest"
)

func TestCustomprotocol(t *testing.T) {
	const want = `wiki://handbook/Home: Read about Crawling and Politeness.
wiki://handbook/Crawling: A crawler follows links; see Politeness and Robots.
wiki://handbook/Politeness: One request at a time. Back to Home.
wiki://handbook/Robots to wiki://handbook/Crawling
wiki://handbook/Crawling has 1 inlinks
wiki://handbook/Home has 1 inlinks
wiki://handbook/Politeness has 2 inlinks
wiki://handbook/Robots has 1 inlinks
`
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	// Pages of one round come in the order in which they are ready.
	if !slices.Equal(sorted(out.String()), sorted(want)) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// Every rule of protocol.Protocol, by name; what a wiki cannot say is skipped.
func TestProtocol(t *testing.T) {
	w := wiki{}
	protocoltest.Run(t, protocoltest.Harness{
		New: func() (protocol.Protocol, error) { return w, nil },
		Serve: func(pages map[string]protocoltest.Page) (string, func(), error) {
			for path, p := range pages {
				title := strings.TrimPrefix(path, "/")
				switch {
				case p.ETag != "" || p.LastModified != "" || p.Stall || strings.Contains(p.Location, ":"):
					return "", nil, errors.ErrUnsupported
				case p.Code == protocol.MovedPerm:
					w[title] = article{MovedTo: strings.TrimPrefix(p.Location, "/")}
				case p.Code == 0 || p.Code == protocol.Success:
					w[title] = article{Text: string(p.Body), Type: p.Type}
				default:
					return "", nil, errors.ErrUnsupported
				}
			}
			return "wiki://site", func() { clear(w) }, nil
		},
	})
}

// Every rule of parse.Parser, by name.
func TestParser(t *testing.T) {
	parsetest.Run(t, parsetest.Harness{
		New: func() parse.Parser { return wikiParser{} },
		Documents: []page.Content{
			{URL: "wiki://site/A", Type: wikiType, Body: []byte("See [[B]], [[C]] and [[B]] again.")},
		},
	})
}

func sorted(text string) []string { return slices.Sorted(strings.Lines(text)) }
