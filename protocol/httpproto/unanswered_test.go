package httpproto_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// An h2Server speaks HTTP/2 over TLS and counts the requests.
type h2Server struct {
	*rawServer
	requests atomic.Int64 // HEADERS frames
}

// serveFrames starts a server that calls answer for each request, with its number on the
// connection. The answer is written before the next request is read.
func serveFrames(t testing.TB, answer func(f *http2.Framer, stream uint32, n int) error) *h2Server {
	t.Helper()
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	config := &tls.Config{Certificates: cert.TLS.Certificates, NextProtos: []string{http2.NextProtoTLS}}
	cert.Close()
	s := new(h2Server)
	s.rawServer = serveRaw(t, func(nc net.Conn) {
		defer nc.Close()
		tc := tls.Server(nc, config)
		if _, err := io.ReadFull(tc, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(tc, tc)
		err := f.WriteSettings()
		for n := 0; err == nil; {
			var frame http2.Frame
			if frame, err = f.ReadFrame(); err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					err = f.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				n++
				s.requests.Add(1)
				err = answer(f, frame.StreamID, n)
			}
		}
	})
	s.url = strings.Replace(s.url, "http:", "https:", 1)
	return s
}

// writePage answers a stream with status 200 and a short body.
func writePage(f *http2.Framer, stream uint32) error {
	// :status 200 of the static table.
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x88}, EndHeaders: true}); err != nil {
		return err
	}
	return f.WriteData(stream, true, []byte("hello"))
}

// A server that asks for another attempt of a request gets none in the same visit, whether
// the connection is new or has served a visit before: each request takes a turn of its host.
func TestUnansweredRequestIsNotRepeated(t *testing.T) {
	const refused = "http: stream refused (REFUSED_STREAM)"
	const closed = "connect: closed while waiting for the answer"
	for name, c := range map[string]struct {
		answer func(f *http2.Framer, stream uint32, n int) error
		good   int // visits that are answered with a page first
		reason string
	}{
		"refused stream": {reason: refused, answer: func(f *http2.Framer, stream uint32, _ int) error {
			return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		}},
		"refused stream of a connection kept alive": {reason: refused, good: 1, answer: func(f *http2.Framer, stream uint32, n int) error {
			if n == 1 {
				return writePage(f, stream)
			}
			return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		}},
		"GOAWAY": {reason: closed, answer: func(f *http2.Framer, _ uint32, _ int) error {
			return f.WriteGoAway(0, http2.ErrCodeNo, nil)
		}},
		"GOAWAY on a connection kept alive": {reason: closed, good: 1, answer: func(f *http2.Framer, stream uint32, n int) error {
			if n == 1 {
				return writePage(f, stream)
			}
			return f.WriteGoAway(1, http2.ErrCodeNo, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s := serveFrames(t, c.answer)
			client := newClient(t, httpproto.Options{InsecureSkipVerify: true, Limits: httpproto.Limits{TimeLimit: 10 * time.Second}})
			for range c.good {
				get(t, client, s.url, protocol.Success, 200, "")
			}
			if r := get(t, client, s.url, protocol.Failed, 0, c.reason); r.Unanswered != (c.good > 0 && c.reason == closed) {
				t.Errorf("Unanswered is %v", r.Unanswered)
			}
			if n := s.requests.Load(); n != int64(c.good)+1 {
				t.Errorf("%d requests for %d visits", n, c.good+1)
			}
			if n := s.accepted.Load(); n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
			within(t, "the connection is open", func() bool { return s.open.Load() == 0 })
		})
	}
}

// Over HTTP/1.1, too, a request that was written to a connection kept alive is not written
// to another one when the server closes the first.
func TestUnansweredRequestOfKeptConnectionIsNotRepeated(t *testing.T) {
	noLeak(t)
	var requests atomic.Int64
	s := serveRaw(t, func(nc net.Conn) {
		defer nc.Close()
		for n := 0; ; n++ {
			if _, ok := readRequest(nc); !ok {
				return
			}
			requests.Add(1)
			if n == 1 {
				return
			}
			io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		}
	})
	c := newClient(t, httpproto.Options{})
	get(t, c, s.url, protocol.Success, 200, "")
	if r := get(t, c, s.url, protocol.Failed, 0, "connect: closed while waiting for the answer"); !r.Unanswered {
		t.Error("the failure is not Unanswered")
	}
	get(t, c, s.url, protocol.Success, 200, "")
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests for 3 visits", n)
	}
}

// A connection that the server has closed between two visits is replaced in the second one,
// which writes no request to it.
func TestConnectionClosedBetweenVisitsIsReplaced(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP2 %v", h2), func(t *testing.T) {
			noLeak(t)
			var requests atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				io.WriteString(w, "hello")
			}))
			s.EnableHTTP2 = h2
			s.StartTLS()
			t.Cleanup(s.Close)
			c := newClient(t, httpproto.Options{InsecureSkipVerify: true})
			for range 20 {
				get(t, c, s.URL, protocol.Success, 200, "")
				s.CloseClientConnections()
				within(t, "the client has not noticed the end", func() bool { return c.Open() == 0 })
			}
			if n := requests.Load(); n != 20 {
				t.Errorf("%d requests for 20 visits", n)
			}
		})
	}
}

// A connection is not used again when the server may close it while the request is on its
// way: the server says how long it keeps idle connections.
func TestKeepAliveTimeoutIsHeeded(t *testing.T) {
	for header, want := range map[string]int64{"timeout=1, max=100": 3, "Timeout = 60": 1, "max=100": 1, "timeout=x": 1} {
		t.Run(header, func(t *testing.T) {
			noLeak(t)
			s := serveRaw(t, func(nc net.Conn) {
				for {
					if _, ok := readRequest(nc); !ok {
						return
					}
					io.WriteString(nc, "HTTP/1.1 200 OK\r\nKeep-Alive: "+header+"\r\nContent-Length: 5\r\n\r\nhello")
				}
			})
			c := newClient(t, httpproto.Options{})
			for range 3 {
				get(t, c, s.url, protocol.Success, 200, "")
			}
			if n := s.accepted.Load(); n != want {
				t.Errorf("%d connections for 3 visits, want %d", n, want)
			}
		})
	}
}
