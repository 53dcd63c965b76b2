package s3store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
)

// inProcess is a transport to a server in this process, without a network.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r = r.Clone(r.Context()) // which a transport does not change
	r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// A fault is what goes wrong with a request.
type fault int

const (
	cutBefore     fault = iota // the server never gets the request
	cutAfter                   // the server does what it is asked, and its answer is lost
	late                       // as cutAfter, but the server gets an upload only after the next request
	unavailable                // 503
	brokenAfter                // the server does what it is asked, and answers with 500
	tornUpload                 // half of an upload is stored, and confirmed
	tornUploadCut              // half of an upload is stored, and the answer is lost
	cutBody                    // half of the answer arrives
	staleList                  // a list is that of an earlier time
	silence                    // there is no answer
	faults
)

var errCut = errors.New("connection reset by peer")

// faulty is a transport to a server that fails, is slow, and returns stale lists.
type faulty struct {
	next http.RoundTripper

	mu      sync.Mutex
	random  *rand.Rand
	rate    float64 // of faults
	lists   map[string][]byte
	pending []*http.Request
	counts  [faults]int
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	send := func(body []byte) (*http.Response, error) {
		c := r.Clone(r.Context())
		c.Body, c.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if len(body) == 0 {
			c.Body = http.NoBody
		}
		return f.next.RoundTrip(c)
	}
	f.mu.Lock()
	overdue := f.pending
	f.pending = nil
	what := faults
	if f.random.Float64() < f.rate {
		what = fault(f.random.IntN(int(faults)))
	}
	f.mu.Unlock()
	for _, o := range overdue {
		if resp, err := f.next.RoundTrip(o); err == nil {
			resp.Body.Close()
		}
	}
	isList := r.Method == http.MethodGet && r.URL.Query().Has("list-type")
	if isList && what == faults && f.chooseStaleList() && f.listBefore(r) != nil {
		what = staleList
	}
	isUpload := r.Method == http.MethodPut && len(body) > 1
	switch what {
	case late:
		if !isUpload || !strings.Contains(r.URL.Path, "/"+blocksDir) {
			what = cutBefore
		}
	case tornUpload, tornUploadCut:
		// What is stored under gone/ has no checksum, nor does it need one.
		if !isUpload || strings.Contains(r.URL.Path, "/"+goneDir) {
			what = cutAfter
		}
	case cutBody:
		if r.Method != http.MethodGet {
			what = unavailable
		}
	case staleList:
		if !isList || f.listBefore(r) == nil {
			what = faults
		}
	}
	f.mu.Lock()
	if what < faults {
		f.counts[what]++
	}
	f.mu.Unlock()
	switch what {
	case cutBefore:
		return nil, errCut
	case late:
		c := r.Clone(context.WithoutCancel(r.Context()))
		c.Body, c.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		f.mu.Lock()
		defer f.mu.Unlock()
		f.pending = append(f.pending, c)
		return nil, errCut
	case unavailable:
		return answerOf(r, http.StatusServiceUnavailable, "<Error><Code>SlowDown</Code></Error>"), nil
	case tornUpload, tornUploadCut:
		r.Header.Del("Content-Md5")
		body = body[:len(body)/2]
	case staleList:
		return answerOf(r, http.StatusOK, string(f.listBefore(r))), nil
	case silence:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	resp, err := send(body)
	if err != nil {
		return nil, err
	}
	switch what {
	case cutAfter, tornUploadCut:
		resp.Body.Close()
		return nil, errCut
	case brokenAfter:
		resp.Body.Close()
		return answerOf(r, http.StatusInternalServerError, "<Error><Code>InternalError</Code></Error>"), nil
	case cutBody:
		data, _ := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(data[:len(data)/2]), failingReader{}))
	}
	if isList && what == faults {
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(data))
		f.mu.Lock()
		if resp.StatusCode == http.StatusOK && f.random.IntN(3) > 0 {
			f.lists[r.URL.String()] = data
		}
		f.mu.Unlock()
	}
	return resp, nil
}

// chooseStaleList reports whether a list is to be stale, if it can be: few can.
func (f *faulty) chooseStaleList() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(3) == 0
}

// listBefore returns an earlier answer to a request for a list; nil if there was none.
func (f *faulty) listBefore(r *http.Request) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists[r.URL.String()]
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errCut }

func answerOf(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/xml"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// clocked is a store whose Stat takes some time: rules that call it until something has happened would
// keep a bubble of synctest busy, whose clock stands still then.
type clocked struct{ *Store }

func (s clocked) Stat(ctx context.Context, seg, part string) (segment.Info, error) {
	time.Sleep(time.Millisecond)
	return s.Store.Stat(ctx, seg, part)
}

// forget makes lists as new as the server is: a process that begins cannot know better.
func (f *faulty) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.lists)
}

// clockedHarness makes clocked stores.
func clockedHarness(f *faulty, h segmenttest.Harness) segmenttest.Harness {
	wrap := func(open func(segment.Store) (segment.Store, error)) func(segment.Store) (segment.Store, error) {
		return func(s segment.Store) (segment.Store, error) {
			f.forget()
			s, err := open(s.(clocked).Store)
			if err != nil {
				return nil, err
			}
			return clocked{s.(*Store)}, nil
		}
	}
	open := h.Open
	h.Open = func() (segment.Store, error) {
		return wrap(func(segment.Store) (segment.Store, error) { return open() })(clocked{})
	}
	h.Close = func(s segment.Store) error { return s.(clocked).Store.Close() }
	h.Reopen, h.Crash = wrap(h.Reopen), wrap(h.Crash)
	return h
}

// All rules of the kit hold if every tenth request to the server fails, hangs, is answered
// wrongly or does half of what it says.
func TestKitWithFailingSlowAndLyingServer(t *testing.T) {
	for seed := range uint64(testlevel.Pick(1, 8)) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{random: rand.New(rand.NewPCG(seed, 35)), rate: 0.1, lists: map[string][]byte{}}
			o := fakeServer(t)
			f.next, o.Transport, o.attempt = o.Transport, f, time.Second
			if err := segmenttest.Check(t.Context(), clockedHarness(f, harness(t, o))); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			for what, n := range f.counts {
				if n == 0 {
					t.Errorf("fault %d did not happen", what)
				}
			}
		})
	}
}
