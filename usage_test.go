package recrawl_test

import (
	"context"
	"strings"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// reservedSite has a robots.txt and two pages; one page has directives of its own.
type reservedSite struct{}

func (reservedSite) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	c := page.Content{URL: r.URL, Type: "text/html"}
	switch {
	case strings.HasSuffix(r.URL, "/robots.txt"):
		c.Type, c.Body = "text/plain", []byte("User-agent: *\nContent-Signal: search=yes\nContent-Usage: /art/ train-ai=n\n")
	case strings.HasSuffix(r.URL, "/art/"):
		c.Body = []byte("<p>art")
	default:
		c.Robots = "tdm=n"
		c.Body = []byte(`<meta name=robots content="noai"><p>text <a href="/art/">art</a>`)
	}
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Content: c}, nil
}

// What a page and the robots.txt of its site say that it may be used for gets to the consumer and the index,
// and is honoured if the crawl has a purpose.
func TestUsageIsPassedOnAndHonoured(t *testing.T) {
	for _, honour := range []bool{false, true} {
		s := newSetup(&webtest.Web{})
		s.opts.Protocol = reservedSite{}
		if honour {
			s.opts.Robots.Purposes = []string{"search", "train-ai"}
		}
		s.run(t, "http://h.example/")
		c := s.crawler(t)
		x := &tableIndex{}
		if _, err := s.index(t, c, x, recrawl.IndexOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		got := map[string]string{}
		for u, d := range x.pages {
			got[strings.TrimPrefix(u, "http://h.example")] = d.Usage
		}
		if want := "search=y, tdm=n, train-ai=n"; got["/"] != want {
			t.Errorf("/ is for %q, want %q", got["/"], want)
		}
		art, there := got["/art/"]
		if there == honour || there && art != "train-ai=n" {
			t.Errorf("honoured %v: /art/ is there: %v, for %q", honour, there, art)
		}
	}
}
