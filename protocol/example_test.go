package protocol_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// shout is a protocol of one method: the page is the path of its URL.
type shout struct{}

func (shout) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	if err := ctx.Err(); err != nil {
		return protocol.Response{}, err
	}
	return protocol.Response{
		Outcome: protocol.Outcome{Code: protocol.Success},
		Content: page.Content{URL: req.URL, Type: "text/plain", Body: []byte(strings.ToUpper(req.URL[len("shout:"):]))},
	}, nil
}

func ExampleMux() {
	m := protocol.Mux{"shout": shout{}}
	for _, url := range []string{"shout:hello", "gopher://example.com/"} {
		r, err := m.Fetch(context.Background(), protocol.Request{URL: url})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s %q\n", url, r.Outcome.Code, r.Content.Body)
	}
	// Output:
	// shout:hello: success "HELLO"
	// gopher://example.com/: refused ""
}
