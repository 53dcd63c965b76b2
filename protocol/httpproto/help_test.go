package httpproto_test

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// TestMain keeps quiet what net/http has to say about servers like these.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// newClient returns a client that may dial loopback. In the exhaustive form it captures all
// exchanges, which must change nothing.
func newClient(t testing.TB, o httpproto.Options) *httpproto.Client {
	t.Helper()
	if o.Agent == "" {
		o.Agent = "bot"
	}
	o.Guard.AllowPrivate = true
	if o.Capture == nil && testlevel.Pick(false, true) {
		o.Capture = func(httpproto.Exchange) error { return nil }
	}
	c, err := httpproto.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func fetch(t testing.TB, c *httpproto.Client, req protocol.Request) protocol.Response {
	t.Helper()
	r, err := c.Fetch(context.Background(), req)
	if err != nil {
		t.Fatalf("fetch %s: %v", req.URL, err)
	}
	if r.Content.URL != req.URL {
		t.Errorf("content is of %q, want %q", r.Content.URL, req.URL)
	}
	if strings.ContainsFunc(r.Outcome.Reason, func(c rune) bool { return c < ' ' || c > '~' }) {
		t.Errorf("reason %q is not one line of ASCII", r.Outcome.Reason)
	}
	return r
}

// get fetches a URL and demands an outcome: its code, status and reason.
func get(t testing.TB, c *httpproto.Client, url string, code protocol.Code, status int, reason string) protocol.Response {
	t.Helper()
	r := fetch(t, c, protocol.Request{URL: url})
	if o := r.Outcome; o.Code != code || o.Status != status || o.Reason != reason {
		t.Errorf("outcome %v %d %q, want %v %d %q", o.Code, o.Status, o.Reason, code, status, reason)
	}
	return r
}

// patience is how long a busy machine may take for what is a matter of milliseconds.
const patience = 30 * time.Second

// within waits until ok holds, which it must do soon.
func within(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Errorf("after %v: %s", patience, what)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// noLeak fails the test if, at its end and after its other cleanups, more
// goroutines run than now.
func noLeak(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		var stacks string
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; {
			if time.Now().After(end) {
				buf := make([]byte, 1<<20)
				stacks = string(buf[:runtime.Stack(buf, true)])
				t.Errorf("%d goroutines before, %d after\n%s", before, runtime.NumGoroutine(), stacks)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// pipes are connections that a client dials, each served by a goroutine. A transport
// may dial for a visit that is over, even while they end.
type pipes struct {
	mu      sync.Mutex
	ended   bool
	serving sync.WaitGroup
}

func (p *pipes) dial(serve func(net.Conn)) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, net.ErrClosed
	}
	client, server := net.Pipe()
	p.serving.Go(func() {
		defer server.Close()
		serve(server)
	})
	return client, nil
}

// end waits for what serves; it hangs if the client has left a connection open.
func (p *pipes) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.serving.Wait()
}

// A rawServer speaks whatever its handler writes, and counts.
type rawServer struct {
	url      string
	accepted atomic.Int64
	open     atomic.Int64
	written  atomic.Int64
}

// serveRaw starts a server on loopback. A connection whose handler has returned
// is read from until the client closes it, unless the handler closed it.
func serveRaw(t testing.TB, handle func(net.Conn)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{url: "http://" + l.Addr().String() + "/"}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
	)
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			s.open.Add(1)
			mu.Lock()
			conns = append(conns, nc)
			mu.Unlock()
			wg.Go(func() {
				defer s.open.Add(-1)
				defer nc.Close()
				handle(countingConn{nc, &s.written})
				io.Copy(io.Discard, nc)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return s
}

type countingConn struct {
	net.Conn
	n *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// readRequest reads one HTTP/1 request and reports whether there was one.
func readRequest(nc net.Conn) (*http.Request, bool) {
	r, err := http.ReadRequest(bufio.NewReader(nc))
	return r, err == nil
}

// answering returns a handler that reads a request and writes raw bytes.
func answering(raw string) func(net.Conn) {
	return func(nc net.Conn) {
		if _, ok := readRequest(nc); ok {
			io.WriteString(nc, raw)
		}
	}
}

// closing returns a handler that does the same and closes the connection.
func closing(raw string) func(net.Conn) {
	return func(nc net.Conn) {
		answering(raw)(nc)
		nc.Close()
	}
}
