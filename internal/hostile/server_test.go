package hostile_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A server is one hostile server on loopback, and what it has seen.
type server struct {
	addr     string
	accepted atomic.Int64 // connections
	open     atomic.Int64
	written  atomic.Int64 // bytes

	mu   sync.Mutex
	seen []seen
}

// seen is one request.
type seen struct {
	at     time.Time
	path   string
	header http.Header
}

// serve starts a server whose handler says what it likes on each connection. A
// connection whose handler has returned is read from until the client closes it,
// unless the handler closed it. The server is closed by stop.
func serve(t testing.TB, handle func(*conn)) (s *server, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = &server{addr: l.Addr().String()}
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
				handle(newConn(counting{nc, &s.written}, s))
				io.Copy(io.Discard, nc)
			})
		}
	})
	return s, func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	}
}

type counting struct {
	net.Conn
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// A conn is the server's end of a connection.
type conn struct {
	net.Conn
	r *bufio.Reader
	s *server
	// streams are those of the requests over HTTP/2.
	streams <-chan uint32
}

func newConn(nc net.Conn, s *server) *conn { return &conn{Conn: nc, r: bufio.NewReader(nc), s: s} }

// request reads a request, notes it, and reports whether there was one.
func (c *conn) request() (*http.Request, bool) {
	r, err := http.ReadRequest(c.r)
	if err != nil {
		return nil, false
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.seen = append(c.s.seen, seen{time.Now(), r.RequestURI, r.Header})
	return r, true
}

func (c *conn) say(s string) bool {
	_, err := io.WriteString(c, s)
	return err == nil
}

// requests returns what was asked for, robots.txt left out.
func (s *server) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []seen
	for _, r := range s.seen {
		if r.path != "/robots.txt" {
			all = append(all, r)
		}
	}
	return all
}

// count returns how often a path was asked for.
func (s *server) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.seen {
		if r.path == path {
			n++
		}
	}
	return n
}

// answer is an HTTP/1 answer with a length.
func answer(status, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, header, len(body), body)
}

func html(body string) string { return answer("200 OK", "Content-Type: text/html\r\n", body) }

func redirect(location string) string { return answer("302 Found", "Location: "+location+"\r\n", "") }

var nothing = answer("404 Not Found", "", "")

// replying returns a handler that keeps its connection and answers each request with the
// result of reply. If that is empty, the answer is that the file is missing.
func replying(reply func(*http.Request) string) func(*conn) {
	return func(c *conn) {
		for {
			r, ok := c.request()
			if !ok {
				return
			}
			a := reply(r)
			if a == "" {
				a = nothing
			}
			if !c.say(a) {
				return
			}
		}
	}
}

// paths is a handler with an answer for each path.
func paths(answers map[string]string) func(*conn) {
	return replying(func(r *http.Request) string { return answers[r.RequestURI] })
}

// only is a handler with one page, and no robots.txt.
func only(raw string) func(*conn) { return paths(map[string]string{"/": raw}) }

// after returns a handler that answers requests for robots.txt and leaves the
// first other one, and the connection, to handle.
func after(handle func(*conn)) func(*conn) {
	return func(c *conn) {
		for {
			r, ok := c.request()
			if !ok {
				return
			}
			if r.RequestURI != "/robots.txt" {
				handle(c)
				return
			}
			if !c.say(nothing) {
				return
			}
		}
	}
}

// closing returns a handler that says raw to a request and closes the connection.
func closing(raw string) func(*conn) {
	return after(func(c *conn) {
		c.say(raw)
		c.Close()
	})
}

// keeping does the same and waits for the client to close.
func keeping(raw string) func(*conn) { return after(func(c *conn) { c.say(raw) }) }

// flood says head, and then again until the client hangs up: 16 MB a second, so
// that it costs the client what a fast network would bring, and not the processor
// that the two share.
func (c *conn) flood(head, again string) {
	const burst = 16 << 10
	again = strings.Repeat(again, (burst+len(again)-1)/len(again))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ok := c.say(head); ok; ok = c.say(again) {
		<-tick.C
	}
}

// flooding floods when it is asked for a page.
func flooding(head, again string) func(*conn) {
	return after(func(c *conn) { c.flood(head, again) })
}

// endless says head and then the letter x until the client hangs up.
func endless(head string) func(*conn) { return flooding(head, "x") }

// dripping says head and then a byte at a time.
func dripping(head, drop string) func(*conn) {
	return after(func(c *conn) {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ok := c.say(head); ok; ok = c.say(drop) {
			<-tick.C
		}
	})
}

// secure returns a handler that does a TLS handshake and continues with handle.
func secure(config *tls.Config, handle func(*conn)) func(*conn) {
	return func(c *conn) {
		tc := tls.Server(c.Conn, config)
		if tc.Handshake() != nil {
			return
		}
		handle(newConn(tc, c.s))
		io.Copy(io.Discard, tc)
	}
}
