package httpproto_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
			return
		}
		fmt.Fprint(w, "<p>Hello.")
	}))
	defer server.Close()

	// The map lets this example reach a server on this machine.
	to, err := httpproto.ParseConnectTo("example.com:80:" + strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := httpproto.New(httpproto.Options{
		Agent: "examplebot", Version: "1.0", AgentURL: "https://example.com/bot",
		ConnectTo: []httpproto.ConnectTo{to},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for _, url := range []string{
		"http://example.com/",
		"http://example.com/old",
		"http://169.254.169.254/latest/meta-data/",
		"ftp://example.com/",
	} {
		r, err := c.Fetch(context.Background(), protocol.Request{URL: url})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s %s%s%s\n", url, r.Outcome.Code, r.Outcome.Location, r.Outcome.Reason, r.Content.Body)
	}
	// Output:
	// http://example.com/: success <p>Hello.
	// http://example.com/old: moved_perm http://example.com/new
	// http://169.254.169.254/latest/meta-data/: refused address: host is not in the connect-to map
	// ftp://example.com/: refused url: scheme is neither http nor https
}

// inMemory answers requests by a handler, without a network.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w.Result(), nil
}

// A test crawls a handler of its own, with timers that only testing/synctest moves.
func ExampleOptions_handler() {
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "<p>This is ", r.Host, r.URL.Path)
	})
	c, err := httpproto.New(httpproto.Options{
		Agent:        "examplebot",
		RoundTripper: func(http.RoundTripper) http.RoundTripper { return inMemory{site} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	r, err := c.Fetch(context.Background(), protocol.Request{URL: "http://docs.example.test/start"})
	fmt.Println(r.Outcome.Code, string(r.Content.Body), err)
	// Output: success <p>This is docs.example.test/start <nil>
}

func ExampleGuard() {
	// A public name need not resolve to a public address.
	var r protocol.Response
	c, err := httpproto.New(httpproto.Options{Agent: "examplebot"})
	if err == nil {
		defer c.Close()
		r, err = c.Fetch(context.Background(), protocol.Request{URL: "http://[64:ff9b::7f00:1]:8080/admin"})
	}
	fmt.Println(r.Outcome.Code, r.Outcome.Reason, err)
	// Output: refused address: loopback in IPv6 <nil>
}
