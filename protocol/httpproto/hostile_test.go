package httpproto_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// TestBrokenAnswers has one raw answer in each row, and demands an exact outcome and that no
// connection is left.
func TestBrokenAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct {
		handle    func(net.Conn)
		code      protocol.Code
		status    int
		reason    string
		body      string
		truncated bool
	}{
		"short body":                  {handle: closing(ok + "Content-Length: 10\r\n\r\nhello"), code: protocol.Success, status: 200, body: "hello", truncated: true},
		"short chunk":                 {handle: closing(ok + "Transfer-Encoding: chunked\r\n\r\na\r\nhello"), code: protocol.Success, status: 200, body: "hello", truncated: true},
		"no last chunk":               {handle: closing(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), code: protocol.Success, status: 200, body: "hello", truncated: true},
		"bad chunk":                   {handle: answering(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n"), code: protocol.Success, status: 200, body: "hello", truncated: true},
		"no body of a length":         {handle: closing(ok + "Content-Length: 10\r\n\r\n"), code: protocol.Failed, status: 200, reason: "connect: closed while reading the body"},
		"until close":                 {handle: closing(ok + "\r\nhello"), code: protocol.Success, status: 200, body: "hello"},
		"10 TB promised":              {handle: closing(ok + "Content-Length: 10000000000000\r\n\r\nhello"), code: protocol.Success, status: 200, body: "hello", truncated: true},
		"more than promised":          {handle: closing(ok + "Connection: close\r\nContent-Length: 5\r\n\r\nhello world"), code: protocol.Success, status: 200, body: "hello"},
		"length and chunks":           {handle: closing(ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), code: protocol.Success, status: 200, body: "hello"},
		"two lengths":                 {handle: answering(ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), code: protocol.Failed, reason: "http: broken answer"},
		"negative length":             {handle: answering(ok + "Content-Length: -1\r\n\r\nhello"), code: protocol.Failed, reason: "http: broken answer"},
		"nothing":                     {handle: closing(""), code: protocol.Failed, reason: "connect: closed while waiting for the answer"},
		"half a header":               {handle: closing(ok + "Content-Le"), code: protocol.Failed, reason: "http: broken answer"},
		"half of the headers":         {handle: closing(ok + "Content-Length: 0\r\n"), code: protocol.Failed, reason: "connect: closed while waiting for the answer"},
		"not HTTP":                    {handle: answering("SSH-2.0-OpenSSH_9.9\x1b[31m\r\n\r\n"), code: protocol.Failed, reason: "http: broken answer"},
		"status 99":                   {handle: answering("HTTP/1.1 99 x\r\n\r\n"), code: protocol.Failed, reason: "http: broken answer"},
		"status 999":                  {handle: closing("HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n"), code: protocol.Failed, status: 999, reason: "http: status 999"},
		"NUL in a header":             {handle: answering(ok + "X: a\x00b\r\n\r\n"), code: protocol.Failed, reason: "http: broken answer"},
		"switching protocols":         {handle: closing("HTTP/1.1 101 Switching\r\n\r\n"), code: protocol.Failed, status: 101, reason: "http: status 101"},
		"redirect with endless body":  {handle: endless("HTTP/1.1 301 x\r\nLocation: http://a.example/\r\n\r\n"), code: protocol.MovedPerm, status: 301},
		"not found with endless body": {handle: endless("HTTP/1.1 404 x\r\n\r\n"), code: protocol.NotFound, status: 404, reason: "http: status 404"},
		"endless body":                {handle: endless(ok + "\r\n"), code: protocol.Success, status: 200, body: strings.Repeat("x", 1000), truncated: true},
		"endless chunks":              {handle: flooding(ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), code: protocol.Success, status: 200, body: strings.Repeat("x", 1000), truncated: true},
		"endless header":              {handle: endless(ok + "X: "), code: protocol.Failed, reason: "http: headers are too large"},
		"endless headers":             {handle: flooding(ok, "X-Y: z\r\n"), code: protocol.Failed, reason: "http: headers are too large"},
		"endless early hints":         {handle: flooding("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), code: protocol.Failed, reason: "http: headers are too large"},
		"endless trailers":            {handle: flooding(ok+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", "X-Y: z\r\n"), code: protocol.Success, status: 200, body: "hello", truncated: true},
		"endless chunk extension":     {handle: endless(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5;"), code: protocol.Success, status: 200, body: "hello", truncated: true},
		"folded header":               {handle: closing(ok + "Content-Length: 5\r\nX: a\r\n b\r\n\r\nhello"), code: protocol.Success, status: 200, body: "hello"},
		"blank before a colon":        {handle: closing(ok + "Content-Length: 5\r\nX : y\r\n\r\nhello"), code: protocol.Success, status: 200, body: "hello"},
		"bare line feeds":             {handle: closing("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"), code: protocol.Success, status: 200, body: "hello"},
		"bare line feed in a chunk":   {handle: closing(ok + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"), code: protocol.Failed, status: 200, reason: "body: broken encoding"},
		"chunk extensions":            {handle: closing(ok + "Transfer-Encoding: chunked\r\n\r\n5;a=b;c\r\nhello\r\n0;x\r\n\r\n"), code: protocol.Success, status: 200, body: "hello"},
		"chunks of one byte":          {handle: closing(ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nx\r\n", 500) + "0\r\n\r\n"), code: protocol.Success, status: 200, body: strings.Repeat("x", 500)},
		"chunk of 2^64 bytes":         {handle: answering(ok + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\nhello"), code: protocol.Failed, status: 200, reason: "body: broken encoding"},
		"signed length":               {handle: answering(ok + "Content-Length: +5\r\n\r\nhello"), code: protocol.Failed, reason: "http: broken answer"},
		"length in words":             {handle: answering(ok + "Content-Length: thousand\r\n\r\nhello"), code: protocol.Failed, reason: "http: broken answer"},
		"length of zero and a body":   {handle: closing(ok + "Content-Length: 0\r\n\r\nhello"), code: protocol.Success, status: 200},
		"no status line":              {handle: closing("<p>Hello, this is a page.\r\n\r\n"), code: protocol.Failed, reason: "http: broken answer"},
		"colon behind the status":     {handle: closing("HTTP/1.1 200: OK\r\nContent-Length: 5\r\n\r\nhello"), code: protocol.Failed, reason: "http: broken answer"},
		"not modified, with a body":   {handle: closing("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"), code: protocol.Failed, status: 304, reason: "http: 304 to a request without validators"},
		"unknown transfer encoding":   {handle: answering(ok + "Transfer-Encoding: gzip\r\n\r\nhello"), code: protocol.Failed, reason: "http: broken answer"},
		"a header of 1 MB":            {handle: answering(ok + "X: " + strings.Repeat("y", 1<<20) + "\r\n\r\n"), code: protocol.Failed, reason: "http: headers are too large"},
		"100,000 headers":             {handle: answering(ok + strings.Repeat("X: y\r\n", 100_000) + "\r\n"), code: protocol.Failed, reason: "http: headers are too large"},
		"10,000 headers":              {handle: closing(ok + strings.Repeat("X: y\r\n", 10_000) + "Connection: close\r\n\r\nhello"), code: protocol.Success, status: 200, body: "hello"},
		"10,000 cookies":              {handle: closing(ok + strings.Repeat("Set-Cookie: a=b\r\n", 10_000) + "Connection: close\r\n\r\nhello"), code: protocol.Success, status: 200, body: "hello"},
		"unknown encoding":            {handle: closing(ok + "Content-Encoding: rot13\r\n\r\nuryyb"), code: protocol.Failed, status: 200, reason: "encoding: unknown"},
		"brotli":                      {handle: closing(ok + "Content-Encoding: br\r\n\r\nxxxxx"), code: protocol.Failed, status: 200, reason: "encoding: br was not asked for"},
		"three encodings":             {handle: closing(ok + "Content-Encoding: gzip\r\nContent-Encoding: gzip, gzip\r\n\r\nxxxxx"), code: protocol.Failed, status: 200, reason: "encoding: too many encodings"},
		"gzip without a beginning":    {handle: closing(ok + "Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08"), code: protocol.Failed, status: 200, reason: "connect: closed while reading the body"},
		"gzip with a broken header":   {handle: closing(ok + "Content-Encoding: gzip\r\n\r\n\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), code: protocol.Failed, status: 200, reason: "body: broken encoding"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s := serveRaw(t, c.handle)
			client := newClient(t, httpproto.Options{Limits: httpproto.Limits{MaxBytes: 1000}})
			r := get(t, client, s.url, c.code, c.status, c.reason)
			if string(r.Content.Body) != c.body || r.Content.Truncated != c.truncated {
				t.Errorf("body %q, truncated %v, want %q, %v", r.Content.Body, r.Content.Truncated, c.body, c.truncated)
			}
			within(t, "a connection is open", func() bool { return s.open.Load() == 0 })
			if n := s.accepted.Load(); n > 2 {
				t.Errorf("%d connections for one visit", n)
			}
		})
	}
}

// endless writes head, and then the letter x until the client hangs up.
func endless(head string) func(net.Conn) { return flooding(head, strings.Repeat("x", 1<<10)) }

// flooding writes head, and then again until the client hangs up.
func flooding(head, again string) func(net.Conn) {
	return func(nc net.Conn) {
		if _, ok := readRequest(nc); !ok {
			return
		}
		io.WriteString(nc, head)
		for {
			if _, err := io.WriteString(nc, again); err != nil {
				return
			}
		}
	}
}

// Validators of a body that broke off would keep the rest from ever coming.
func TestBrokenOffBodyHasNoValidators(t *testing.T) {
	noLeak(t)
	const head = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nLast-Modified: Wed, 01 Apr 2026 00:00:00 GMT\r\nContent-Length: 10\r\n\r\n"
	s := serveRaw(t, closing(head+"hello"))
	r := get(t, newClient(t, httpproto.Options{}), s.url, protocol.Success, 200, "")
	if !r.Content.Truncated || r.ETag != "" || r.LastModified != "" || !r.Modified.IsZero() {
		t.Errorf("%+v", r)
	}
	r = get(t, newClient(t, httpproto.Options{Limits: httpproto.Limits{MaxBytes: 3}}), s.url, protocol.Success, 200, "")
	if !r.Content.Truncated || r.ETag == "" || r.LastModified == "" || r.Modified.IsZero() {
		t.Errorf("cut by a limit of ours: %+v", r)
	}
}

// What is read from the socket stays near the limit: nothing is drained. Over
// HTTP/2 a server may have sent a window more.
func TestNothingIsDrained(t *testing.T) {
	const limit = 100 << 10
	for name, k := range map[string]struct {
		s    func(testing.TB) *rawServer
		most int64
	}{
		"HTTP/1": {func(t testing.TB) *rawServer { return serveRaw(t, endless("HTTP/1.1 200 OK\r\n\r\n")) }, limit + 64<<10},
		"HTTP/2": {func(t testing.TB) *rawServer {
			return serveHTTP2(t, func(nc net.Conn) {
				_, err := io.WriteString(nc, frame(4, 0, 0, "")+frame(1, 4, 1, "\x88"))
				for err == nil {
					_, err = io.WriteString(nc, frame(0, 0, 1, strings.Repeat("x", 16<<10)))
				}
			})
		}, limit + 256<<10 + 128<<10},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s := k.s(t)
			c := newClient(t, httpproto.Options{Limits: httpproto.Limits{MaxBytes: limit}, InsecureSkipVerify: true})
			var read atomic.Int64
			c.SetDial(func(ctx context.Context, network, address string) (net.Conn, error) {
				nc, err := new(net.Dialer).DialContext(ctx, network, address)
				return readCounter{nc, &read}, err
			})
			r := get(t, c, s.url, protocol.Success, 200, "")
			if len(r.Content.Body) != limit || !r.Content.Truncated || r.Bytes > limit+64<<10 {
				t.Errorf("%d bytes of body, %d read", len(r.Content.Body), r.Bytes)
			}
			within(t, "the connection is open", func() bool { return s.open.Load() == 0 })
			if n := read.Load(); n > k.most {
				t.Errorf("%d bytes read from the socket for %d", n, limit)
			}
		})
	}
}

type readCounter struct {
	net.Conn
	n *atomic.Int64
}

func (c readCounter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func TestSizeLimits(t *testing.T) {
	noLeak(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(bytes.Repeat([]byte("x"), 1000)) }))
	t.Cleanup(s.Close)
	for _, k := range []struct {
		option, asked int64
		want          int
	}{
		{0, 0, 1000}, {1000, 0, 1000}, {999, 0, 999}, {1, 0, 1}, {-1, 0, 1000},
		{10, -1, 1000}, {10, 20, 20}, {-1, 20, 20}, {0, 1000, 1000}, {0, 1001, 1000},
	} {
		r := fetch(t, newClient(t, httpproto.Options{Limits: httpproto.Limits{MaxBytes: k.option}}), protocol.Request{URL: s.URL, MaxBytes: k.asked})
		if r.Outcome.Code != protocol.Success || len(r.Content.Body) != k.want || r.Content.Truncated != (k.want < 1000) {
			t.Errorf("option %d, asked %d: %v, %d bytes, truncated %v", k.option, k.asked, r.Outcome, len(r.Content.Body), r.Content.Truncated)
		}
	}
	r := fetch(t, newClient(t, httpproto.Options{Limits: httpproto.Limits{MaxEncodedBytes: 10}}), protocol.Request{URL: s.URL})
	if len(r.Content.Body) != 10 || !r.Content.Truncated || r.Bytes != 10 {
		t.Errorf("encoded bytes: %d bytes, %d read", len(r.Content.Body), r.Bytes)
	}
}

func encode(t testing.TB, coding string, b []byte) []byte {
	t.Helper()
	var (
		buf bytes.Buffer
		w   io.WriteCloser
	)
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&buf)
	case "deflate":
		w = zlib.NewWriter(&buf)
	case "raw":
		w, _ = flate.NewWriter(&buf, 9)
	case "zstd":
		w, _ = zstd.NewWriter(&buf)
	default:
		return b
	}
	w.Write(b)
	w.Close()
	return buf.Bytes()
}

func TestEncodings(t *testing.T) {
	noLeak(t)
	text := []byte(strings.Repeat("The quick brown fox. ", 1000))
	short := []byte("<p>x")
	skipped := []byte("\x5a\x2a\x4d\x18\x03\x00\x00\x00abc")    // RFC 8878, 3.1.2
	repeated := []byte("\x28\xb5\x2f\xfd\x20\xc8\x43\x06\x00x") // a frame of one block, which says 200 times x
	enc := func(coding string) []byte { return encode(t, coding, text) }
	var header []string
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Encoding"] = header
		w.Write(body)
	}))
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{})
	// A body as long as a limit is whole.
	exact := newClient(t, httpproto.Options{Limits: httpproto.Limits{MaxBytes: int64(len(text)), MaxEncodedBytes: int64(len(text))}})
	body = text
	if r := get(t, exact, s.URL, protocol.Success, 200, ""); len(r.Content.Body) != len(text) || r.Content.Truncated {
		t.Errorf("at the limit: %d bytes, truncated %v", len(r.Content.Body), r.Content.Truncated)
	}
	for name, k := range map[string]struct {
		header     []string
		body, want []byte
		truncated  bool
	}{
		"none":                  {nil, text, text, false},
		"identity":              {[]string{"identity"}, text, text, false},
		"a charset":             {[]string{"UTF-8"}, text, text, false},
		"gzip":                  {[]string{"gzip"}, enc("gzip"), text, false},
		"x-gzip":                {[]string{"X-GZip"}, enc("gzip"), text, false},
		"gzip twice":            {[]string{"gzip, gzip"}, encode(t, "gzip", enc("gzip")), text, false},
		"two headers":           {[]string{"zstd", "gzip"}, encode(t, "gzip", enc("zstd")), text, false},
		"gzip members":          {[]string{"gzip"}, append(enc("gzip"), enc("gzip")...), append(bytes.Clone(text), text...), false},
		"gzip and padding":      {[]string{"gzip"}, append(enc("gzip"), make([]byte, 100)...), text, false},
		"gzip and a line end":   {[]string{"gzip"}, append(enc("gzip"), '\n'), text, false},
		"gzip and nine bytes":   {[]string{"gzip"}, append(enc("gzip"), make([]byte, 9)...), text, false},
		"gzip and half of it":   {[]string{"gzip"}, append(enc("gzip"), enc("gzip")[:5]...), text, true},
		"gzip of nothing":       {[]string{"gzip"}, encode(t, "gzip", nil), nil, false},
		"gzip, no body":         {[]string{"gzip"}, nil, nil, false},
		"deflate":               {[]string{"deflate"}, enc("deflate"), text, false},
		"raw deflate":           {[]string{"deflate"}, enc("raw"), text, false},
		"raw deflate, short":    {[]string{"deflate"}, encode(t, "raw", short), short, false},
		"zstd":                  {[]string{"zstd"}, enc("zstd"), text, false},
		"zstd frames":           {[]string{"zstd"}, append(enc("zstd"), enc("zstd")...), append(bytes.Clone(text), text...), false},
		"gzip, but plain":       {[]string{"gzip"}, text, text, false},
		"gzip, but one byte":    {[]string{"gzip"}, []byte("x"), []byte("x"), false},
		"deflate, but plain":    {[]string{"deflate"}, []byte("<!DOCTYPE html><p>plain"), []byte("<!DOCTYPE html><p>plain"), false},
		"zstd, but plain":       {[]string{"zstd"}, text, text, false},
		"twice, but once":       {[]string{"gzip, gzip"}, enc("gzip"), text, false},
		"gzip, end missing":     {[]string{"gzip"}, enc("gzip")[:len(enc("gzip"))-9], text, true},
		"gzip, checksum wrong":  {[]string{"gzip"}, flip(enc("gzip"), -8), text, true},
		"deflate, end missing":  {[]string{"deflate"}, enc("deflate")[:len(enc("deflate"))-4], text, true},
		"zstd and zeros":        {[]string{"zstd"}, append(enc("zstd"), make([]byte, 600)...), text, false},
		"zstd and a comment":    {[]string{"zstd"}, append(enc("zstd"), "<!-- 1.2 ms -->\n"...), text, false},
		"zstd and a line end":   {[]string{"zstd"}, append(enc("zstd"), '\n'), text, false},
		"zstd and CR LF":        {[]string{"zstd"}, append(enc("zstd"), "\r\n"...), text, false},
		"zstd and half a magic": {[]string{"zstd"}, append(enc("zstd"), "\x28\xb5\x2f"...), text, false},
		"zstd, skipping":        {[]string{"zstd"}, slices.Concat(skipped, enc("zstd"), skipped, skipped, enc("zstd"), skipped), append(bytes.Clone(text), text...), false},
		"zstd, repeating":       {[]string{"zstd"}, slices.Concat(repeated, repeated, []byte("\n")), bytes.Repeat([]byte("x"), 400), false},
		"zstd, half skipped":    {[]string{"zstd"}, append(enc("zstd"), skipped[:10]...), text, true},
		"zstd, head missing":    {[]string{"zstd"}, append(enc("zstd"), enc("zstd")[:6]...), text, true},
		"zstd, sum missing":     {[]string{"zstd"}, append(enc("zstd"), enc("zstd")[:len(enc("zstd"))-2]...), text, true},
		"zstd, end missing":     {[]string{"zstd"}, append(enc("zstd"), enc("zstd")[:10]...), text, true},
	} {
		t.Run(name, func(t *testing.T) {
			header, body = k.header, k.body
			r := get(t, c, s.URL, protocol.Success, 200, "")
			if !bytes.Equal(r.Content.Body, k.want) || r.Content.Truncated != k.truncated {
				t.Errorf("got %d bytes, truncated %v, want %d, %v", len(r.Content.Body), r.Content.Truncated, len(k.want), k.truncated)
			}
			if r.Bytes != int64(len(k.body)) {
				t.Errorf("%d bytes over the wire, want %d", r.Bytes, len(k.body))
			}
		})
	}
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[len(b)+at] ^= 0xff
	return b
}

// Bombs stop at the ratio or the limit, in little memory.
func TestBombs(t *testing.T) {
	testlevel.SkipInRace(t)
	noLeak(t)
	zeros := make([]byte, 24<<20)
	gz := encode(t, "gzip", zeros)
	bombs := map[string]struct {
		header string
		body   []byte
		limit  int64 // of the decoded body
	}{
		"gzip":          {"gzip", gz, 0},
		"gzip in gzip":  {"gzip, gzip", encode(t, "gzip", gz), 0},
		"deflate":       {"deflate", encode(t, "deflate", zeros), 0},
		"raw deflate":   {"deflate", encode(t, "raw", zeros), 0},
		"zstd":          {"zstd", encode(t, "zstd", zeros), 0},
		"zstd in gzip":  {"zstd, gzip", encode(t, "gzip", encode(t, "zstd", zeros)), 0},
		"unlimited":     {"gzip", gz, -1},
		"empty members": {"gzip", bytes.Repeat(encode(t, "gzip", nil), 1<<19), 0},
		// Much in the middle, nothing in the end.
		"empty members in gzip": {"gzip, gzip", encode(t, "gzip", bytes.Repeat(encode(t, "gzip", nil), 1<<18)), 0},
		// A frame that asks for a window of 2 GiB.
		"zstd window": {"zstd", append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8}, make([]byte, 1<<10)...), 0},
		// A second frame asks for a window of 256 MiB, or is one segment of 200 MiB.
		"zstd window of a second frame": {"zstd", append(encode(t, "zstd", []byte("<p>x")), 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x90, 0x18, 0, 0, 'a', 'b', 'c'), 0},
		"zstd size of a second frame":   {"zstd", append(encode(t, "zstd", []byte("<p>x")), 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x80, 0x0c, 0x18, 0, 0, 'a', 'b', 'c'), 0},
	}
	for name, b := range bombs {
		t.Run(name, func(t *testing.T) {
			s := serveRaw(t, closing(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", b.header, len(b.body), b.body)))
			c := newClient(t, httpproto.Options{Limits: httpproto.Limits{MaxBytes: b.limit}})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := fetch(t, c, protocol.Request{URL: s.url})
			runtime.ReadMemStats(&after)
			if name == "zstd window" {
				if r.Outcome.Code != protocol.Failed || r.Outcome.Reason != "body: broken encoding" {
					t.Errorf("%+v", r.Outcome)
				}
			} else if r.Outcome.Code != protocol.Success || !r.Content.Truncated {
				t.Errorf("%+v, truncated %v", r.Outcome, r.Content.Truncated)
			}
			if n, most := int64(len(r.Content.Body)), max(httpproto.RatioFloor, httpproto.MaxRatio*r.Bytes)+1<<20; n > most {
				t.Errorf("%d bytes decoded of %d", n, r.Bytes)
			}
			if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 64 {
				t.Errorf("%d MiB allocated", n)
			}
			within(t, "the connection is open", func() bool { return s.open.Load() == 0 })
		})
	}
}

// overHTTP2 returns a handler that agrees on HTTP/2, reads a request and leaves
// the rest to handle.
func overHTTP2(handle func(net.Conn)) func(net.Conn) {
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	// A ticket would be in the way of a client on a pipe, which has no buffer.
	config := &tls.Config{Certificates: cert.TLS.Certificates, NextProtos: []string{"h2"}, SessionTicketsDisabled: true}
	cert.Close()
	return func(nc net.Conn) {
		tc := tls.Server(nc, config)
		if tc.Handshake() != nil {
			return
		}
		preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		if _, err := io.ReadFull(tc, preface); err != nil {
			return
		}
		// An answer before the request would be a fault of another kind.
		for head := make([]byte, 9); head[3] != 1; {
			if _, err := io.ReadFull(tc, head); err != nil {
				return
			}
			if _, err := io.CopyN(io.Discard, tc, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
				return
			}
		}
		go io.Copy(io.Discard, tc)
		handle(tc)
	}
}

// serveHTTP2 starts a raw server that speaks HTTP/2.
func serveHTTP2(t testing.TB, handle func(net.Conn)) *rawServer {
	s := serveRaw(t, overHTTP2(handle))
	s.url = strings.Replace(s.url, "http:", "https:", 1)
	return s
}

// frame returns an HTTP/2 frame.
func frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
}

// TestHostileHTTP2 has malicious HTTP/2 servers. Whatever the outcome of the visit, it ends
// in time and closes its connections.
func TestHostileHTTP2(t *testing.T) {
	var (
		settings = frame(4, 0, 0, "")
		goaway   = frame(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")
		refuse   = frame(3, 0, 1, "\x00\x00\x00\x07")
		ok       = frame(1, 4, 1, "\x88") // HEADERS, :status 200 of the static table
	)
	say := func(first, again string) func(net.Conn) {
		return func(nc net.Conn) {
			_, err := io.WriteString(nc, first)
			for err == nil && again != "" {
				_, err = io.WriteString(nc, again)
			}
		}
	}
	for name, k := range map[string]struct {
		handle func(net.Conn)
		code   protocol.Code
	}{
		"goaway":                {say(settings+goaway, ""), protocol.Failed},
		"refused stream":        {say(settings+refuse, ""), protocol.Failed},
		"ping flood":            {say(settings, frame(6, 0, 0, "12345678")), protocol.Failed},
		"settings flood":        {say(settings, settings), protocol.Failed},
		"window update flood":   {say(settings, frame(8, 0, 0, "\x00\x00\x00\x01")), protocol.Failed},
		"unknown frame flood":   {say(settings, frame(0xfa, 0, 0, "12345678")), protocol.Failed},
		"continuation flood":    {say(settings+frame(1, 0, 1, ""), frame(9, 0, 1, "\x00\x01a\x01b")), protocol.Failed},
		"header list":           {say(settings+frame(1, 0, 1, "\x88\x40\x01a\x7f\x80\x1f"+strings.Repeat("a", 4000)), frame(9, 0, 1, strings.Repeat("\xbe", 16000))), protocol.Failed},
		"empty data flood":      {say(settings+ok, frame(0, 0, 1, "")), protocol.Failed},
		"data beyond window":    {say(settings+ok, frame(0, 0, 1, strings.Repeat("x", 16384))), protocol.Success},
		"ping flood after data": {say(settings+ok+frame(0, 0, 1, "hello"), frame(6, 0, 0, "12345678")), protocol.Success},
		"silence":               {say(settings, ""), protocol.Failed},
		"endless early hints":   {say(settings, frame(1, 4, 1, "\x48\x03103\x00\x01a\x01b")), protocol.Failed},
		"endless trailers":      {say(settings+ok+frame(0, 0, 1, "hello")+frame(1, 1, 1, ""), frame(9, 0, 1, "\x00\x01a\x01b")), protocol.Success},
		"reset flood":           {say(settings, frame(3, 0, 1, "\x00\x00\x00\x08")), protocol.Failed},
		"reset in the body":     {say(settings+ok+frame(0, 0, 1, "hello")+frame(3, 0, 1, "\x00\x00\x00\x02"), ""), protocol.Success},
		"resets of others":      {say(settings+ok+frame(0, 0, 1, "hello"), frame(3, 0, 3, "\x00\x00\x00\x08")), protocol.Success},
		"push":                  {say(settings+frame(5, 4, 1, "\x00\x00\x00\x02\x88"), ""), protocol.Failed},
		"frame size of zero":    {say(frame(4, 0, 0, "\x00\x05\x00\x00\x00\x00"), ""), protocol.Failed},
		"window overflow":       {say(settings+frame(8, 0, 0, "\x7f\xff\xff\xff"), frame(8, 0, 0, "\x7f\xff\xff\xff")), protocol.Failed},
		"stream overflow":       {say(settings+frame(8, 0, 1, "\x7f\xff\xff\xff"), ""), protocol.Failed},
		"overflow in the body":  {say(settings+ok+frame(0, 0, 1, "hello")+frame(8, 0, 1, "\x7f\xff\xff\xff"), ""), protocol.Success},
		"giant frame":           {say(settings+"\xff\xff\xff\x00\x00\x00\x00\x00\x01", strings.Repeat("x", 16384)), protocol.Failed},
		"padding flood":         {say(settings+ok, frame(0, 8, 1, "\xff"+strings.Repeat("\x00", 255))), protocol.Failed},
		"priority flood":        {say(settings, frame(2, 0, 1, "\x00\x00\x00\x00\x10")), protocol.Failed},
		"altsvc flood":          {say(settings, frame(10, 0, 0, "\x00\x00h2=\"evil.example:443\"")), protocol.Failed},
		"HTTP/1":                {say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", ""), protocol.Failed},
		"closed":                {func(nc net.Conn) { io.WriteString(nc, settings); nc.Close() }, protocol.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s := serveHTTP2(t, k.handle)
			limit := 10 * time.Second
			if name == "silence" || name == "refused stream" { // which are tried again, and then silent
				limit = 400 * time.Millisecond
			}
			c := newClient(t, httpproto.Options{InsecureSkipVerify: true, Limits: httpproto.Limits{TimeLimit: limit, MaxBytes: 100 << 10}})
			start := time.Now()
			r := fetch(t, c, protocol.Request{URL: s.url})
			if d := time.Since(start); d > limit+patience/3 {
				t.Errorf("took %v", d)
			}
			if r.Outcome.Code != k.code || k.code == protocol.Success && !r.Content.Truncated {
				t.Errorf("%+v, %d bytes, truncated %v", r.Outcome, len(r.Content.Body), r.Content.Truncated)
			}
			t.Logf("%s %q", r.Outcome.Code, r.Outcome.Reason)
			if n := s.accepted.Load(); n > 2 {
				t.Errorf("%d connections for one visit", n)
			}
			within(t, "a connection is open", func() bool { return s.open.Load() == 0 })
		})
	}
}

// A few kilobytes of HPACK stand for a megabyte of headers. They are counted as
// what they stand for.
func TestHeadersOfHTTP2AreBounded(t *testing.T) {
	noLeak(t)
	for refs, want := range map[int]string{3: "", 300: "http: headers are too large"} {
		// A field of 4,000 bytes goes into the table, and is then referred to.
		block := "\x88\x40\x01a\x7f\xa1\x1e" + strings.Repeat("a", 4000) + strings.Repeat("\xbe", refs)
		s := serveHTTP2(t, func(nc net.Conn) {
			io.WriteString(nc, frame(4, 0, 0, "")+frame(1, 5, 1, block))
		})
		c := newClient(t, httpproto.Options{InsecureSkipVerify: true})
		if r := fetch(t, c, protocol.Request{URL: s.url}); r.Outcome.Reason != want {
			t.Errorf("%d references: %+v, want %q", refs, r.Outcome, want)
		}
	}
}

// A server that allows no streams gets no request, and costs a connection a
// visit at most.
func TestNoStreamsAreAllowed(t *testing.T) {
	noLeak(t)
	s := serveHTTP2(t, func(nc net.Conn) {
		// After the answer to the first request it is too late to say so.
		io.WriteString(nc, frame(4, 0, 0, "\x00\x03\x00\x00\x00\x00")+frame(1, 4, 1, "\x88")+frame(0, 1, 1, "hello"))
	})
	c := newClient(t, httpproto.Options{InsecureSkipVerify: true, Limits: httpproto.Limits{TimeLimit: 10 * time.Second}})
	for range 3 {
		get(t, c, s.url, protocol.Success, 200, "")
	}
	if n := s.accepted.Load(); n != 3 {
		t.Errorf("%d connections for three visits", n)
	}
	c.Close()
	within(t, "a connection is open", func() bool { return s.open.Load() == 0 })
}

// A connection that has served a visit well is idle, and may not be kept busy.
func TestIdleConnectionIsBounded(t *testing.T) {
	noLeak(t)
	s := serveHTTP2(t, func(nc net.Conn) {
		io.WriteString(nc, frame(4, 0, 0, "")+frame(1, 4, 1, "\x88")+frame(0, 1, 1, "hello"))
		for {
			if _, err := io.WriteString(nc, frame(6, 0, 0, "12345678")); err != nil {
				return
			}
		}
	})
	c := newClient(t, httpproto.Options{InsecureSkipVerify: true})
	r := get(t, c, s.url, protocol.Success, 200, "")
	if string(r.Content.Body) != "hello" || r.Content.Truncated {
		t.Errorf("%q", r.Content.Body)
	}
	within(t, "the connection is open", func() bool { return s.open.Load() == 0 })
}

// One visit of a shared connection fails; the others go on.
func TestFailureSparesOtherVisits(t *testing.T) {
	noLeak(t)
	both := make(chan bool)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good":
			fmt.Fprint(w, "go")
			w.(http.Flusher).Flush()
			both <- true
			<-both
			fmt.Fprint(w, "od")
		case "/bad":
			<-both
			fmt.Fprint(w, "x")
			panic(http.ErrAbortHandler)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{InsecureSkipVerify: true})
	get(t, c, s.URL, protocol.Success, 200, "") // the connection both share
	done := make(chan protocol.Response)
	go func() {
		r, err := c.Fetch(context.Background(), protocol.Request{URL: s.URL + "/good"})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	bad := fetch(t, c, protocol.Request{URL: s.URL + "/bad"})
	if bad.Outcome.Code == protocol.Success && !bad.Content.Truncated {
		t.Errorf("bad: %+v", bad.Outcome)
	}
	both <- true
	if r := <-done; string(r.Content.Body) != "good" || r.Content.Truncated {
		t.Errorf("good: %+v %q", r.Outcome, r.Content.Body)
	}
}

// A visit that closes its connection takes it away from no later one.
func TestCutVisitsInARow(t *testing.T) {
	noLeak(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 1000)) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{InsecureSkipVerify: true})
	for i := range 200 {
		r := fetch(t, c, protocol.Request{URL: s.URL, MaxBytes: int64(999 + i%2)})
		if r.Outcome.Code != protocol.Success || r.Content.Truncated != (i%2 == 0) {
			t.Errorf("visit %d: %+v, truncated %v", i, r.Outcome, r.Content.Truncated)
		}
	}
}

// An unsolicited answer never ends up under another URL, whether it comes together with the
// answer before or on an idle connection.
func TestAnswersStayWithTheirRequest(t *testing.T) {
	noLeak(t)
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	late := make(chan bool)
	s := serveRaw(t, func(nc net.Conn) {
		for {
			r, ok := readRequest(nc)
			if !ok {
				return
			}
			body := r.URL.Path
			answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			switch body[len(body)-1] {
			case '0', '3', '6':
				answer += poison
			case '7':
				answer = "HTTP/1.1 204 No Content\r\n\r\n" + poison
			case '8':
				answer = "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\npoison" + poison
			}
			io.WriteString(nc, answer)
			if strings.HasSuffix(body, "9") {
				<-late
				io.WriteString(nc, poison)
				late <- true
			}
		}
	})
	c := newClient(t, httpproto.Options{})
	for i := range 1000 {
		path := fmt.Sprintf("/page%d", i)
		if i%10 == 7 {
			get(t, c, s.url+path[1:], protocol.Success, 204, "")
			continue
		}
		if i%10 == 8 {
			if r := fetch(t, c, protocol.Request{URL: s.url + path[1:], ETag: `"a"`}); r.Outcome.Code != protocol.NotModified || r.Content.Body != nil {
				t.Errorf("%s: %+v with %q", path, r.Outcome, r.Content.Body)
			}
			continue
		}
		if r := get(t, c, s.url+path[1:], protocol.Success, 200, ""); string(r.Content.Body) != path {
			t.Errorf("%s: got %q", path, r.Content.Body)
		}
		if i%10 == 9 {
			late <- true
			<-late
			within(t, "the connection is open", func() bool { return s.open.Load() == 0 })
		}
	}
}

// FuzzBody decodes what a server may send under any encoding it may claim.
func FuzzBody(f *testing.F) {
	text := []byte(strings.Repeat("hello ", 100))
	for _, coding := range []string{"gzip", "deflate", "raw", "zstd", "identity"} {
		b := encode(f, coding, text)
		f.Add(strings.Replace(coding, "raw", "deflate", 1), b)
		f.Add("gzip, "+coding, b[:len(b)/2])
	}
	f.Add("gzip, gzip, gzip", []byte{})
	f.Add("zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0, 0, 0})
	c, err := httpproto.New(httpproto.Options{Agent: "bot"})
	if err != nil {
		f.Fatal(err)
	}
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		first, cut, err := c.ReadBody(coding, body, limit)
		// Two encodings may be cut between the two.
		if len(first) > limit || cut && len(first) != limit && !strings.Contains(coding, ",") {
			t.Errorf("%d bytes, cut %v", len(first), cut)
		}
		kept := bytes.Clone(first)
		// Decoders are used again: nothing of one body shows in the next.
		if again, _, err2 := c.ReadBody(coding, body, limit); !bytes.Equal(again, kept) || (err == nil) != (err2 == nil) {
			t.Errorf("%d bytes and %v, then %d and %v", len(kept), err, len(again), err2)
		}
		if !bytes.Equal(first, kept) {
			t.Error("a body changed with the next")
		}
	})
}
