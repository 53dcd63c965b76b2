package httpproto_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// captured is a client with the exchanges that it has captured.
type captured struct {
	*httpproto.Client
	exchanges []httpproto.Exchange // of one visit at a time
}

func capturing(t testing.TB, o httpproto.Options) *captured {
	c := new(captured)
	o.Capture = func(x httpproto.Exchange) error {
		c.exchanges = append(c.exchanges, x)
		return nil
	}
	c.Client = newClient(t, o)
	return c
}

// inTurn serves each connection: it answers each request with the next of the answers, and
// then closes it.
func inTurn(answers ...string) func(net.Conn) {
	return func(nc net.Conn) {
		r := bufio.NewReader(nc)
		for _, answer := range answers {
			if _, err := http.ReadRequest(r); err != nil {
				break
			}
			io.WriteString(nc, answer)
		}
		nc.Close()
	}
}

func hostOf(s *rawServer) string {
	return strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/")
}

func TestCaptureIsVerbatimOverHTTP1(t *testing.T) {
	chunked := "HTTP/1.1 200 Fine\r\nx-odd:  1\r\nContent-type: text/plain\r\nX-Odd: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
	bareLines := "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi"
	for name, test := range map[string]struct {
		answer, response, truncated, body string
		limit                             int64
	}{
		"chunks":          {answer: chunked, response: chunked, body: "abcde"},
		"lines end in LF": {answer: bareLines, response: bareLines, body: "hi"},
		"interim answers": {answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + bareLines, response: bareLines, body: "hi"},
		"no length":       {answer: "HTTP/1.0 200 OK\r\n\r\nhello", response: "HTTP/1.0 200 OK\r\n\r\nhello", body: "hello"},
		"broken off": {answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", response: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
			truncated: "disconnect", body: "hello"},
		"more than the answer": {answer: bareLines + "stray", response: bareLines, body: "hi"},
		"limit":                {answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", response: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", truncated: "length", body: "hel", limit: 3},
		"no body":              {answer: "HTTP/1.1 204 No Content\r\n\r\n", response: "HTTP/1.1 204 No Content\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			address := hostOf(serveRaw(t, inTurn(test.answer)))
			c := capturing(t, httpproto.Options{})
			r := fetch(t, c.Client, protocol.Request{URL: "http://" + address + "/p?q", MaxBytes: test.limit})
			if len(c.exchanges) != 1 {
				t.Fatalf("%d exchanges", len(c.exchanges))
			}
			x := c.exchanges[0]
			if string(x.Response) != test.response || x.Truncated != test.truncated {
				t.Errorf("response %q truncated %q, want %q %q", x.Response, x.Truncated, test.response, test.truncated)
			}
			if !strings.HasPrefix(string(x.Request), "GET /p?q HTTP/1.1\r\nHost: "+address+"\r\nUser-Agent: bot\r\n") || !strings.HasSuffix(string(x.Request), "\r\n\r\n") {
				t.Errorf("request %q", x.Request)
			}
			if x.URL != r.Content.URL || x.Addr != address || x.Protocol != "http/1.1" || !x.Time.Equal(r.Content.Time) {
				t.Errorf("%q %q %q %v", x.URL, x.Addr, x.Protocol, x.Time)
			}
			if string(r.Content.Body) != test.body {
				t.Errorf("body %q, want %q", r.Content.Body, test.body)
			}
		})
	}
}

func TestCaptureOfEachVisitOverOneConnection(t *testing.T) {
	one, two := "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none", "HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\ntwo"
	address := hostOf(serveRaw(t, inTurn(one, two)))
	c := capturing(t, httpproto.Options{})
	for range 2 {
		fetch(t, c.Client, protocol.Request{URL: "http://" + address + "/"})
	}
	if len(c.exchanges) != 2 || string(c.exchanges[0].Response) != one || string(c.exchanges[1].Response) != two {
		t.Errorf("%q", c.exchanges)
	}
}

func TestCaptureOverTLS(t *testing.T) {
	packed := string(encode(t, "gzip", []byte("hello")))
	for name, http2 := range map[string]bool{"http/1.1": false, "h2": true} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "text/plain")
				io.WriteString(w, packed)
			}))
			s.EnableHTTP2 = http2
			s.StartTLS()
			defer s.Close()
			c := capturing(t, httpproto.Options{InsecureSkipVerify: true})
			r := fetch(t, c.Client, protocol.Request{URL: s.URL + "/"})
			if string(r.Content.Body) != "hello" || len(c.exchanges) != 1 {
				t.Fatalf("body %q, %d exchanges", r.Content.Body, len(c.exchanges))
			}
			x := c.exchanges[0]
			if x.Protocol != name || x.Truncated != "" || x.Addr == "" {
				t.Errorf("%q %q %q", x.Protocol, x.Truncated, x.Addr)
			}
			m, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(x.Response))), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(m.Body)
			if err != nil || string(body) != packed || m.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("body %q, headers %v: %v", body, m.Header, err)
			}
			if _, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(x.Request)))); err != nil {
				t.Errorf("request %q: %v", x.Request, err)
			}
		})
	}
}

func TestErrorOfCaptureIsThatOfTheVisit(t *testing.T) {
	full := errors.New("disk is full")
	c := newClient(t, httpproto.Options{Capture: func(httpproto.Exchange) error { return full }})
	_, err := c.Fetch(context.Background(), protocol.Request{URL: serveRaw(t, closing("HTTP/1.1 204 No Content\r\n\r\n")).url})
	if !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

func TestCaptureOfRoundTripperThatAnswers(t *testing.T) {
	var got []httpproto.Exchange
	c := newClient(t, httpproto.Options{
		Capture: func(x httpproto.Exchange) error { got = append(got, x); return nil },
		RoundTripper: func(http.RoundTripper) http.RoundTripper {
			return answerer(func(*http.Request) *http.Response {
				return &http.Response{StatusCode: 200, ProtoMajor: 1, Header: http.Header{"B": {"1"}, "A": {"2", "3"}}, Body: io.NopCloser(strings.NewReader("hi")), ContentLength: 2}
			})
		},
	})
	get(t, c, "http://site.example/", protocol.Success, 200, "")
	if len(got) != 1 || string(got[0].Response) != "HTTP/1.1 200 OK\r\nA: 2\r\nA: 3\r\nB: 1\r\n\r\nhi" || got[0].Protocol != "" {
		t.Errorf("%q", got)
	}
}

// An answerer is a RoundTripper that answers by itself.
type answerer func(*http.Request) *http.Response

func (a answerer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
