package fileproto_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/fileproto"
)

func Example() {
	docs := fstest.MapFS{"guide/start.html": {Data: []byte("<p>Begin here.")}}
	c := fileproto.New(docs, "/docs", fileproto.Options{})
	for _, url := range []string{"file:///docs/guide", "file:///docs/guide/start.html", "file:///etc/passwd"} {
		r, err := c.Fetch(context.Background(), protocol.Request{URL: url})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s %s%s\n", url, r.Outcome.Code, r.Outcome.Location, r.Content.Body)
	}
	// Output:
	// file:///docs/guide: moved_perm file:///docs/guide/
	// file:///docs/guide/start.html: success <p>Begin here.
	// file:///etc/passwd: refused
}
