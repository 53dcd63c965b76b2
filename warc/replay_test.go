package warc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/protocoltest"
	"github.com/recrawl/recrawl/warc"
)

func openArchive(t testing.TB, o warc.ReplayOptions, files ...string) *warc.Archive {
	t.Helper()
	a, err := warc.Open(context.Background(), o, files...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// archived writes exchanges and returns an archive of them.
func archived(t testing.TB, o warc.ReplayOptions, exchanges ...httpproto.Exchange) *warc.Archive {
	t.Helper()
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{})
	capture(t, w, exchanges...)
	closeWriter(t, w)
	return openArchive(t, o, filesOf(t, dir, "recrawl-*")...)
}

func get(t testing.TB, a *warc.Archive, req protocol.Request) protocol.Response {
	t.Helper()
	r, err := a.Fetch(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestArchiveIsAProtocol runs the kit of protocols over archived answers of its server.
func TestArchiveIsAProtocol(t *testing.T) {
	var files []string
	protocoltest.Run(t, protocoltest.Harness{
		New: func() (protocol.Protocol, error) {
			return warc.Open(context.Background(), warc.ReplayOptions{}, files...)
		},
		Serve: func(pages map[string]protocoltest.Page) (string, func(), error) {
			dir := t.TempDir()
			w, err := warc.NewWriter(dir, warc.Options{})
			if err != nil {
				return "", nil, err
			}
			handler := protocoltest.Handler(pages)
			for path, page := range pages {
				if page.Stall {
					return "", nil, fmt.Errorf("%w: an archive does not wait", errors.ErrUnsupported)
				}
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://site.example"+path, nil))
				var response bytes.Buffer
				if err := answer.Result().Write(&response); err != nil {
					return "", nil, err
				}
				if err := w.Capture(exchange("http://site.example"+path, response.String())); err != nil {
					return "", nil, err
				}
			}
			if err := w.Close(); err != nil {
				return "", nil, err
			}
			files = filesOf(t, dir, "recrawl-*")
			if len(files) == 0 { // of a site without pages
				files = []string{filepath.Join(dir, "empty.warc")}
				if err := os.WriteFile(files[0], nil, 0o666); err != nil {
					return "", nil, err
				}
			}
			return "http://site.example", func() {
				for _, path := range files {
					os.Truncate(path, 0)
				}
			}, nil
		},
	})
}

func TestReplayAnswersAsTheServerDid(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("unpacked"))
	z.Close()
	chunks := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	for name, test := range map[string]struct {
		response, body string
		code           protocol.Code
		truncated      bool
	}{
		"plain":         {response: okay("hello"), body: "hello", code: protocol.Success},
		"gzip":          {response: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", packed.Len(), packed.String()), body: "unpacked", code: protocol.Success},
		"chunks":        {response: chunks, body: "abc", code: protocol.Success},
		"no chunks":     {response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n<p>text", body: "<p>text", code: protocol.Success},
		"HTTP/2":        {response: "HTTP/2 200\r\nContent-Length: 2\r\n\r\nhi", body: "hi", code: protocol.Success},
		"broken off":    {response: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", body: "hello", code: protocol.Success, truncated: true},
		"not found":     {response: "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", code: protocol.NotFound},
		"moved":         {response: "HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", code: protocol.MovedPerm},
		"server broken": {response: "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n", code: protocol.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			a := archived(t, warc.ReplayOptions{}, exchange("http://A.example:80", test.response))
			r := get(t, a, protocol.Request{URL: "http://a.example/"})
			if r.Outcome.Code != test.code || string(r.Content.Body) != test.body || r.Content.Truncated != test.truncated {
				t.Errorf("%v %q truncated %v: %s", r.Outcome.Code, r.Content.Body, r.Content.Truncated, r.Outcome.Reason)
			}
			if missing := get(t, a, protocol.Request{URL: "http://a.example/other"}); missing.Outcome.Code != protocol.NotFound || missing.Outcome.Reason != "archive: not captured" {
				t.Errorf("missing: %+v", missing.Outcome)
			}
		})
	}
}

func TestReplayAtATime(t *testing.T) {
	at := captureTime
	versions := []httpproto.Exchange{
		exchange("http://a.example/", okay("one")), exchange("http://a.example/", okay("two")),
		exchange("http://a.example/", "HTTP/1.1 304 Not Modified\r\n\r\n"), exchange("http://a.example/", okay("one")),
	}
	for i := range versions {
		versions[i].Time = captureTime.Add(time.Duration(i) * time.Hour)
	}
	a := archived(t, warc.ReplayOptions{At: func() time.Time { return at }}, versions...)
	for i, want := range []string{"one", "one", "two", "two", "one", "one"} {
		at = captureTime.Add(time.Duration(i-1)*time.Hour + time.Minute)
		if r := get(t, a, protocol.Request{URL: "http://a.example/"}); string(r.Content.Body) != want {
			t.Errorf("at %v: %q, want %q: %s", at, r.Content.Body, want, r.Outcome.Reason)
		}
	}
	at = captureTime.Add(150 * time.Minute)
	if r := get(t, a, protocol.Request{URL: "http://a.example/", ETag: `"x"`}); r.Outcome.Code != protocol.NotModified {
		t.Errorf("with a validator: %v", r.Outcome.Code)
	}
	if urls := slices.Collect(a.URLs()); !slices.Equal(urls, []string{"http://a.example/"}) {
		t.Errorf("URLs %q", urls)
	}
}

func TestReplayOfValidators(t *testing.T) {
	a := archived(t, warc.ReplayOptions{}, exchange("http://a.example/", "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 1\r\n\r\nx"))
	first := get(t, a, protocol.Request{URL: "http://a.example/"})
	if again := get(t, a, protocol.Request{URL: "http://a.example/", ETag: first.ETag}); again.Outcome.Code != protocol.NotModified {
		t.Errorf("same ETag: %v", again.Outcome.Code)
	}
	if other := get(t, a, protocol.Request{URL: "http://a.example/", ETag: `"v0"`}); other.Outcome.Code != protocol.Success {
		t.Errorf("other ETag: %v", other.Outcome.Code)
	}
}

func TestReplayOfResource(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{CDXJ: true})
	if err := w.Resource("file:///a.txt", "text/plain", captureTime, []byte("12345")); err != nil {
		t.Fatal(err)
	}
	closeWriter(t, w)
	a := openArchive(t, warc.ReplayOptions{}, filesOf(t, dir, "recrawl-*.gz")...)
	r := get(t, a, protocol.Request{URL: "file:///a.txt", MaxBytes: 3})
	if r.Outcome.Code != protocol.Success || string(r.Content.Body) != "123" || !r.Content.Truncated || r.Content.Type != "text/plain" {
		t.Errorf("%+v", r)
	}
}

func TestVisitOfADamagedRecordFails(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{CDXJ: true, Compression: warc.None})
	capture(t, w, exchange("http://a.example/", okay("hello")))
	closeWriter(t, w)
	path := filesOf(t, dir, "*.warc")[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte("WARC/1.1"), []byte("XXXX/1.1")), 0o666); err != nil {
		t.Fatal(err)
	}
	a := openArchive(t, warc.ReplayOptions{}, path)
	if o := get(t, a, protocol.Request{URL: "http://a.example/"}).Outcome; o.Code != protocol.Failed || o.Reason != "archive: record cannot be read" {
		t.Errorf("outcome %+v", o)
	}
}
