package webtest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// A test moves the clock and knows what has changed.
func ExampleWeb_Page() {
	clock := webtest.NewClock(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	web := &webtest.Web{Now: clock.Now, Start: clock.Now()}
	before, _ := web.Page("http://news.example.test/")
	clock.Advance(before.Next.Sub(clock.Now()))
	after, _ := web.Page("http://news.example.test/")
	fmt.Println("period:", before.Period)
	fmt.Println("versions:", before.Version, after.Version)
	fmt.Println("links:", len(after.Outlinks))
	// Output:
	// period: 24h0m0s
	// versions: 0 1
	// links: 10
}

// The web can be asked without a network, in a synctest bubble too.
func ExampleWeb_Protocol() {
	web := &webtest.Web{Calm: true}
	resp, err := web.Protocol().Fetch(context.Background(), protocol.Request{URL: "http://docs.example.test/robots.txt"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Outcome.Code)
	fmt.Print(string(resp.Content.Body))
	fmt.Println("requests:", web.HostLog("docs.example.test").Requests)
	// Output:
	// success
	// User-agent: *
	// Disallow:
	// requests: 1
}

// Over loopback, a client has to connect to the server whatever the host.
func ExampleServe() {
	server, err := webtest.Serve(&webtest.Web{Calm: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := server.Close(); err != nil {
			fmt.Println(err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Addr)
		},
	}}
	resp, err := client.Get("http://wiki.example.test/robots.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, err, resp.Body.Close())
	fmt.Print(string(body))
	// Output:
	// 200 OK <nil> <nil>
	// User-agent: *
	// Disallow:
}
