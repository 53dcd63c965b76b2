package warc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// ReplayOptions are the settings of an [Archive].
type ReplayOptions struct {
	// Client reads the answers: its limits on bytes and its agent, which X-Robots-Tag may
	// name, apply as they do to a server. An empty Agent means "recrawl".
	Client httpproto.Options
	// At is the time whose captures are answered: of the captures of a URL, the last that is
	// not later; the first if all are later. With the clock of a crawl, pages change as they
	// did when they were captured. Nil answers with the last capture.
	At func() time.Time
}

// An Archive is a protocol.Protocol that answers from WARC files. A URL is answered as its
// server did: status, headers and body, with a transfer that ended early or was cut. A
// request with the validators of the capture is answered with 304. A URL that was not
// captured is NotFound, with the Reason "archive: not captured"; so is the robots.txt of a
// host, which then allows all. A record that cannot be read is Failed.
//
// It may be used from many goroutines at once. It keeps an index in memory, some 400 bytes
// for each capture, and opens files for as long as a visit takes.
type Archive struct {
	o        ReplayOptions
	client   *httpproto.Client
	captures map[string][]stored // by URL, in the order of time
	payloads map[string]stored   // by digest: the first that has it
}

// A stored is a capture with the path of its file.
type stored struct {
	Line
	path string
}

// Open indexes files and returns an archive of them. The index NAME.cdxj is used for a file
// NAME if it is beside it; otherwise the whole file is read. Revisit records of a payload
// that no file has are left out.
func Open(ctx context.Context, o ReplayOptions, files ...string) (*Archive, error) {
	if len(files) == 0 {
		return nil, errors.New("warc: an archive needs a file")
	}
	if o.Client.Agent == "" {
		o.Client.Agent = "recrawl"
	}
	a := &Archive{o: o, captures: map[string][]stored{}, payloads: map[string]stored{}}
	o.Client.RoundTripper = func(http.RoundTripper) http.RoundTripper { return roundTripper{a} }
	var err error
	if a.client, err = httpproto.New(o.Client); err != nil {
		return nil, fmt.Errorf("warc: %w", err)
	}
	for _, path := range files {
		for l, err := range lines(ctx, path) {
			if err != nil {
				a.client.Close()
				return nil, err
			}
			s := stored{l, path}
			key := captureKey(l.URL)
			a.captures[key] = append(a.captures[key], s)
			if l.MIME != revisitMIME && l.Digest != "" {
				if first, ok := a.payloads[l.Digest]; !ok || l.Time.Before(first.Time) {
					a.payloads[l.Digest] = s
				}
			}
		}
	}
	for key, of := range a.captures {
		of = slices.DeleteFunc(of, func(s stored) bool {
			return s.MIME == revisitMIME && s.Status != "304" && a.payloads[s.Digest].path == ""
		})
		if len(of) == 0 {
			delete(a.captures, key)
			continue
		}
		slices.SortStableFunc(of, func(x, y stored) int { return x.Time.Compare(y.Time) })
		a.captures[key] = of
	}
	return a, nil
}

// lines yields the index of a file, from the file beside it if there is one.
func lines(ctx context.Context, path string) iter.Seq2[Line, error] {
	if _, err := os.Stat(path + ".cdxj"); errors.Is(err, os.ErrNotExist) {
		return Index(ctx, path)
	}
	return func(yield func(Line, error) bool) {
		for l, err := range readIndex(path + ".cdxj") {
			if (err != nil || l.Filename == filepath.Base(path)) && !yield(l, err) {
				return
			}
		}
	}
}

// captureKey returns the form of a URL under which its captures are found: as it is, but
// for the case of scheme and host, and for an empty path.
func captureKey(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	path := rest[end:]
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	scheme, host := strings.ToLower(scheme), strings.ToLower(rest[:end])
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host + path
}

// URLs yields the URLs that have a capture, in ascending order, as they were captured.
func (a *Archive) URLs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, key := range slices.Sorted(maps.Keys(a.captures)) {
			if !yield(a.captures[key][0].URL) {
				return
			}
		}
	}
}

// Close refuses further visits.
func (a *Archive) Close() error { return a.client.Close() }

// Fetch answers a visit.
func (a *Archive) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	if s, ok := a.find(req.URL, false); ok && s.Status == "" {
		return a.resource(ctx, req, s)
	}
	var failure error
	resp, err := a.client.Fetch(context.WithValue(ctx, failureKey{}, &failure), req)
	switch {
	case err != nil:
	case errors.Is(failure, errNotCaptured):
		resp.Outcome = protocol.Outcome{Code: protocol.NotFound, Reason: errNotCaptured.Error()}
	case failure != nil:
		resp.Outcome = protocol.Outcome{Code: protocol.Failed, Reason: "archive: record cannot be read"}
	}
	return resp, err
}

var errNotCaptured = errors.New("archive: not captured")

// failureKey is the key under which the context of a request has the *error of its round
// trip.
type failureKey struct{}

func (a *Archive) now() time.Time {
	if a.o.Client.Now != nil {
		return a.o.Client.Now()
	}
	return time.Now()
}

// find returns the capture that answers a URL. One that says 304 answers a request with
// validators, or if there is no other.
func (a *Archive) find(url string, conditional bool) (stored, bool) {
	of := a.captures[captureKey(url)]
	if len(of) == 0 {
		return stored{}, false
	}
	n := len(of)
	if a.o.At != nil {
		at := a.o.At()
		n = max(1, countUntil(of, at))
	}
	for _, s := range slices.Backward(of[:n]) {
		if s.Status != "304" || conditional {
			return s, true
		}
	}
	for _, s := range of[n:] {
		if s.Status != "304" {
			return s, true
		}
	}
	return of[n-1], true
}

// countUntil counts the captures that are not later than a time.
func countUntil(of []stored, at time.Time) int {
	n, _ := slices.BinarySearchFunc(of, at, func(s stored, t time.Time) int {
		if s.Time.After(t) {
			return 1
		}
		return -1
	})
	return n
}

// resource answers from a resource record.
func (a *Archive) resource(ctx context.Context, req protocol.Request, s stored) (protocol.Response, error) {
	resp := protocol.Response{Content: page.Content{URL: req.URL, Time: a.now()}}
	if err := ctx.Err(); err != nil {
		return protocol.Response{}, fmt.Errorf("warc: fetch %q: %w", req.URL, err)
	}
	unreadable := protocol.Outcome{Code: protocol.Failed, Reason: "archive: record cannot be read"}
	rec, file, err := s.open()
	if err != nil {
		resp.Outcome = unreadable
		return resp, nil
	}
	defer file.Close()
	limit := req.MaxBytes
	if limit == 0 {
		limit = a.o.Client.Limits.MaxBytes
	}
	if limit == 0 {
		limit = 8 << 20
	}
	if limit < 0 {
		limit = rec.BlockLength
	}
	body, err := io.ReadAll(io.LimitReader(rec.Block, limit))
	if err != nil {
		resp.Outcome = unreadable
		return resp, nil
	}
	resp.Outcome.Code = protocol.Success
	resp.Content.Type, resp.Content.Body = rec.Fields.Get("Content-Type"), body
	resp.Content.Truncated = int64(len(body)) < rec.BlockLength || rec.Fields.Get("WARC-Truncated") != ""
	resp.Bytes = int64(len(body))
	return resp, nil
}

// open opens the record of a capture.
func (s stored) open() (*Record, io.Closer, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return nil, nil, err
	}
	rec, closer, err := recordAt(file, s.Offset)
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("%s: record at %d: %w", s.path, s.Offset, err)
	}
	return rec, closers{closer, file}, nil
}

type closers []io.Closer

func (c closers) Close() error {
	var err error
	for _, closer := range c {
		err = errors.Join(err, closer.Close())
	}
	return err
}

// A roundTripper answers the requests of the client from the archive.
type roundTripper struct{ a *Archive }

func (rt roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := rt.a.respond(req)
	if failure, ok := req.Context().Value(failureKey{}).(*error); ok {
		*failure = err
	}
	return resp, err
}

func (a *Archive) respond(req *http.Request) (*http.Response, error) {
	etag, modified := req.Header.Get("If-None-Match"), req.Header.Get("If-Modified-Since")
	s, ok := a.find(req.URL.String(), etag != "" || modified != "")
	if !ok {
		return nil, errNotCaptured
	}
	rec, file, err := s.open()
	if err != nil {
		return nil, err
	}
	resp, err := a.answer(req, s, rec, file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: record at %d: %w", s.path, s.Offset, err)
	}
	if resp.StatusCode == http.StatusOK && (etag != "" && etag == resp.Header.Get("Etag") || etag == "" && modified != "" && modified == resp.Header.Get("Last-Modified")) {
		resp.Body.Close()
		resp.StatusCode, resp.Status, resp.Body, resp.ContentLength = http.StatusNotModified, "304 Not Modified", http.NoBody, 0
	}
	return resp, nil
}

// answer makes the response of a record. Its body closes the files.
func (a *Archive) answer(req *http.Request, s stored, rec *Record, file io.Closer) (*http.Response, error) {
	block := bufio.NewReader(rec.Block)
	head, err := readHead(block)
	if err != nil {
		return nil, err
	}
	body := block
	if s.MIME == revisitMIME && s.Status != "304" {
		of, opened, err := a.payloads[s.Digest].open()
		if err != nil {
			return nil, err
		}
		file = closers{opened, file}
		body = bufio.NewReader(of.Block)
		if _, err := readHead(body); err != nil {
			opened.Close()
			return nil, err
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(unchunked(readable(head), body)), body)), req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{resp.Body, file}
	return resp, nil
}

// unchunked returns the head without Transfer-Encoding if the body is not coded in chunks:
// some writers decode it, and leave the header.
func unchunked(head []byte, body *bufio.Reader) []byte {
	if !bytes.Contains(bytes.ToLower(head), []byte("transfer-encoding")) {
		return head
	}
	start, _ := body.Peek(32)
	size, _, ok := bytes.Cut(start, []byte("\n"))
	size, _, _ = bytes.Cut(bytes.TrimSpace(size), []byte(";"))
	if ok && len(size) > 0 && len(bytes.Trim(size, "0123456789abcdefABCDEF")) == 0 {
		return head
	}
	var kept []byte
	for line := range bytes.Lines(head) {
		if name, _, _ := bytes.Cut(line, []byte(":")); !strings.EqualFold(string(bytes.TrimSpace(name)), "Transfer-Encoding") {
			kept = append(kept, line...)
		}
	}
	return kept
}
