package protocoltest_test

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/protocoltest"
)

// A program can check a protocol without package testing.
func ExampleCheck() {
	servers := &memory{sites: map[string]map[string]protocoltest.Page{}}
	err := protocoltest.Check(context.Background(), protocoltest.Harness{
		New:   func() (protocol.Protocol, error) { return servers, nil },
		Serve: servers.serve,
	})
	fmt.Println(err)
	// Output: <nil>
}
