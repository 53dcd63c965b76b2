package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/segment"
)

func openStore(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func appendTo(t *testing.T, s *Store, keep int, blocks ...string) segment.BlockWriter {
	t.Helper()
	w, err := s.Append(t.Context(), "seg", "part", keep)
	for _, b := range blocks {
		if err == nil {
			err = w.Append(t.Context(), []byte(b))
		}
	}
	if err == nil {
		err = w.Sync(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func blocksOf(t *testing.T, s *Store) (blocks []string) {
	t.Helper()
	for b, err := range s.Read(t.Context(), "seg", "part", 0) {
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, string(b))
	}
	return blocks
}

func want(t *testing.T, s *Store, blocks ...string) {
	t.Helper()
	if got := blocksOf(t, s); !slices.Equal(got, blocks) {
		t.Fatalf("blocks are %q, want %q", got, blocks)
	}
}

func TestWriterWhosePartWasTakenOverChangesNothing(t *testing.T) {
	o := fakeServer(t)
	first, second := openStore(t, o), openStore(t, o)
	old := appendTo(t, first, 0, "a", "b")
	w := appendTo(t, second, 1, "c")
	want(t, second, "a", "c")
	if err := errors.Join(old.Append(t.Context(), []byte("late")), old.Sync(t.Context())); err != nil {
		t.Fatal(err)
	}
	want(t, openStore(t, o), "a", "c")
	if err := old.Commit(t.Context()); !errors.Is(err, ErrTakenOver) {
		t.Fatalf("Commit: %v, want ErrTakenOver", err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, openStore(t, o), "a", "c")
	if err := old.Commit(t.Context()); !errors.Is(err, ErrTakenOver) {
		t.Fatalf("second Commit: %v, want ErrTakenOver", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, openStore(t, o), "a", "c")
}

func TestWriterCannotCommitARemovedPart(t *testing.T) {
	o := fakeServer(t)
	first, second := openStore(t, o), openStore(t, o)
	w := appendTo(t, first, 0, "a")
	if err := second.Remove(t.Context(), "seg"); err != nil {
		t.Fatal(err)
	}
	for name, err := range first.List(t.Context()) {
		t.Errorf("List after a Remove by another process yields %q, %v", name, err)
	}
	appendTo(t, second, 0, "new")
	w.Commit(t.Context())
	want(t, openStore(t, o), "new")
}

// A reader of a committed part goes on when another process removes the pieces that were joined.
func TestCommitJoinsSmallPieces(t *testing.T) {
	o := fakeServer(t)
	s := openStore(t, o)
	var all []string
	w := appendTo(t, s, 0)
	for i := range 100 {
		block := fmt.Sprint("block ", i, strings.Repeat(".", 80))
		all = append(all, block)
		if err := errors.Join(w.Append(t.Context(), []byte(block)), w.Sync(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	other := openStore(t, o)
	var got []string
	for b, err := range other.Read(t.Context(), "seg", "part", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, string(b)); len(got) == 30 {
			if err := w.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(got, all) {
		t.Errorf("%d blocks, want %d", len(got), len(all))
	}
	want(t, other, all...)
	keys, _, err := s.bucket.list(t.Context(), "")
	if n := len(all)*100/o.PieceSize + 3; err != nil || len(keys) > n {
		t.Errorf("%d objects, want at most %d; %v", len(keys), n, err)
	}
}

func TestOpenCompletesAnInterruptedRemove(t *testing.T) {
	o := fakeServer(t)
	s := openStore(t, o)
	appendTo(t, s, 0, "a").Close()
	if err := s.bucket.put(t.Context(), goneDir+"seg", []byte("seg")); err != nil {
		t.Fatal(err)
	}
	o.ReadOnly = true
	want := func(s *Store) {
		t.Helper()
		for name, err := range s.List(t.Context()) {
			t.Errorf("List yields %q, %v", name, err)
		}
		if _, err := s.Stat(t.Context(), "seg", "part"); !errors.Is(err, segment.ErrNotFound) {
			t.Errorf("Stat: %v, want ErrNotFound", err)
		}
	}
	reading := openStore(t, o)
	want(reading)
	if _, err := reading.Append(t.Context(), "seg", "part", 0); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Append: %v, want ErrReadOnly", err)
	}
	if err := reading.Remove(t.Context(), "seg"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Remove: %v, want ErrReadOnly", err)
	}
	o.ReadOnly = false
	want(openStore(t, o))
	if keys, _, err := s.bucket.list(t.Context(), ""); len(keys) > 0 || err != nil {
		t.Errorf("objects left: %q, %v", keys, err)
	}
}

// changed is a transport that changes requests, and may answer them.
type changed struct {
	next   http.RoundTripper
	change func(*http.Request) *http.Response
}

func (c changed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if resp := c.change(r); resp != nil {
		return resp, nil
	}
	return c.next.RoundTrip(r)
}

func TestServerWithoutConditionalWritesIsRefused(t *testing.T) {
	o := fakeServer(t)
	o.Transport = changed{o.Transport, func(r *http.Request) *http.Response { r.Header.Del("If-None-Match"); return nil }}
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrConditions) {
		t.Errorf("Open: %v, want ErrConditions", err)
	}
}

func TestOpenErrorsSayWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no bucket":   {func(o *Options) { o.Bucket = "other" }, "s3store: open s3://other/: there is no such bucket"},
		"no rights":   {func(o *Options) { o.Transport = denying(o.Transport) }, "Access Denied"},
		"bad address": {func(o *Options) { o.Endpoint = "s3.example" }, `endpoint "s3.example" is not a URL`},
	} {
		t.Run(name, func(t *testing.T) {
			o := fakeServer(t)
			test.change(&o)
			if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v, want %q", err, test.want)
			}
		})
	}
}

func denying(next http.RoundTripper) http.RoundTripper {
	return changed{next, func(r *http.Request) *http.Response {
		if r.Method == http.MethodPut {
			return answerOf(r, http.StatusForbidden, "<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>")
		}
		return nil
	}}
}

// A server whose ETags are not MD5, as with encryption by KMS, is believed if sizes are right.
func TestOtherETags(t *testing.T) {
	o := fakeServer(t)
	o.Transport = etags{o.Transport}
	s := openStore(t, o)
	w := appendTo(t, s, 0, "a", "b")
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, openStore(t, o), "a", "b")
}

type etags struct{ next http.RoundTripper }

func (e etags) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.next.RoundTrip(r)
	if err == nil && resp.Header.Get("ETag") != "" {
		resp.Header.Set("ETag", `"0123456789abcdef0123456789abcdef"`)
	}
	return resp, err
}

func TestParseURL(t *testing.T) {
	o, err := ParseURL("s3://key:se%2Fcret@bucket/a/b/?endpoint=http://127.0.0.1:9000&region=eu&style=path")
	if err != nil {
		t.Fatal(err)
	}
	v, err := o.Credentials.GetWithContext(nil)
	if err != nil || v.AccessKeyID != "key" || v.SecretAccessKey != "se/cret" {
		t.Errorf("credentials are %+v, %v", v, err)
	}
	o.Credentials = nil
	if want := (Options{Bucket: "bucket", Prefix: "a/b", Endpoint: "http://127.0.0.1:9000", Region: "eu", PathStyle: true}); o != want {
		t.Errorf("options are %+v", o)
	}
	for _, bad := range []string{"", "http://bucket/", "s3:///prefix", "s3://bucket?style=host", "s3://bucket?endpont=x", "s3://key:secret@bucket/%zz"} {
		if _, err := ParseURL(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCancelledCommitIsRepeated(t *testing.T) {
	o := fakeServer(t)
	next := o.Transport
	ctx, cancel := context.WithCancel(t.Context())
	lost := false
	o.Transport = lostAnswer{next, func(r *http.Request) bool {
		lost = r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/"+headsDir) && !lost && ctx.Err() == nil && strings.Contains(r.URL.Path, "/1-")
		if lost {
			cancel()
		}
		return lost
	}}
	s := openStore(t, o)
	w := appendTo(t, s, 0, "a")
	if err := w.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Commit: %v, want that it was cancelled", err)
	}
	if err := w.Append(t.Context(), []byte("b")); err == nil {
		t.Error("a block was added to a part that may be committed")
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, openStore(t, o), "a")
}

type lostAnswer struct {
	next http.RoundTripper
	lose func(*http.Request) bool
}

func (l lostAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if l.lose(r) {
		return nil, errCut
	}
	return resp, err
}
