package index_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/indextest"
)

// fileIndex is a JSONL on a file, as a program would use it.
type fileIndex struct {
	*index.JSONL
	name string
}

func openFile(t *testing.T, name string) (index.Writer, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return fileIndex{index.NewJSONL(f), name}, nil
}

func TestJSONLIsAWriter(t *testing.T) {
	indextest.Run(t, indextest.Harness{
		Open: func() (index.Writer, error) { return openFile(t, filepath.Join(t.TempDir(), "index.jsonl")) },
		Reopen: func(w index.Writer) (index.Writer, error) {
			return openFile(t, w.(fileIndex).name)
		},
		Read: func(w index.Writer) (map[string]index.Document, error) {
			f, err := os.Open(w.(fileIndex).name)
			if err != nil {
				return nil, err
			}
			docs := make(map[string]index.Document)
			for e, err := range index.ReadJSONL(f) {
				if errors.Is(err, io.ErrUnexpectedEOF) {
					break // never committed
				}
				if err != nil {
					return nil, errors.Join(err, f.Close())
				}
				if e.Deleted {
					delete(docs, e.URL)
				} else {
					docs[e.URL] = e.Document
				}
			}
			return docs, f.Close()
		},
	})
}

// The format is a promise.
func TestJSONLFormat(t *testing.T) {
	var b bytes.Buffer
	j := index.NewJSONL(&b)
	when := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 3600))
	for _, d := range []*index.Document{
		{
			URL: "http://example.com/?a=1&b=2", Title: "<b>\"one\"\n&\u2028two</b>", Text: "not \xff UTF-8 \x00", Anchors: []string{"a", "b"},
			Host: "example.com", ContentType: "text/html", Fetched: when, Modified: when.Add(-time.Hour), Signature: "00ff", Score: 0.1, UnavailableAfter: when, Segment: "s1",
		},
		{URL: "http://example.com/nan", Score: float32(math.NaN())},
		{URL: "http://example.com/inf", Score: float32(math.Inf(-1))},
		{},
	} {
		if err := j.Write(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Delete(t.Context(), "http://example.com/<old>"); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 0 {
		t.Error("written before Commit")
	}
	if err := j.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		`{"url":"http://example.com/?a=1&b=2","title":"<b>\"one\"\n&\u2028two</b>","text":"not \ufffd UTF-8 \u0000","anchors":["a","b"],` +
			`"host":"example.com","content_type":"text/html","fetched":"2026-01-02T02:04:05.006Z","modified":"2026-01-02T01:04:05.006Z",` +
			`"signature":"00ff","score":0.1,"unavailable_after":"2026-01-02T02:04:05.006Z","segment":"s1"}`,
		`{"url":"http://example.com/nan","score":0}`,
		`{"url":"http://example.com/inf","score":-3.4028235e+38}`,
		`{"url":"","score":0}`,
		`{"url":"http://example.com/<old>","deleted":true}`,
		``,
	}, "\n")
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJSONLWritesWholeLines(t *testing.T) {
	var b bytes.Buffer
	j := index.NewJSONL(&b)
	bad := &index.Document{URL: "http://example.com/", Fetched: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if err := j.Write(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "index: write http://example.com/: ") {
		t.Errorf("a year that RFC 3339 cannot say: %v", err)
	}
	if err := j.Delete(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	if err := j.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "{\"url\":\"u\",\"deleted\":true}\n"; got != want {
		t.Errorf("got %q", got)
	}
}

// syncer counts its calls, and fails on demand.
type syncer struct {
	bytes.Buffer
	syncs            int
	writeErr, sycErr error
}

func (s *syncer) Write(p []byte) (int, error) {
	if s.writeErr != nil {
		return 0, s.writeErr
	}
	return s.Buffer.Write(p)
}

func (s *syncer) Sync() error { s.syncs++; return s.sycErr }

func TestJSONLCommit(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, c := range []struct {
		name        string
		write, sync error
		want        error
		syncs       int
	}{
		{"sound", nil, nil, nil, 1},
		{"pipe", nil, &os.PathError{Op: "sync", Path: "|1", Err: syscall.EINVAL}, nil, 1},
		{"unsupported", nil, errors.ErrUnsupported, nil, 1},
		{"sync fails", nil, broken, broken, 1},
		{"write fails", broken, nil, broken, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &syncer{writeErr: c.write, sycErr: c.sync}
			j := index.NewJSONL(s)
			if err := j.Write(t.Context(), &index.Document{URL: "u"}); err != nil {
				t.Fatal(err)
			}
			if err := j.Commit(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("err = %v, want %v", err, c.want)
			}
			if s.syncs != c.syncs {
				t.Errorf("%d syncs, want %d", s.syncs, c.syncs)
			}
			// What could not be made durable may be lost, even if the next attempt succeeds.
			s.writeErr, s.sycErr = nil, nil
			for name, err := range map[string]error{
				"Write":  j.Write(context.Background(), &index.Document{URL: "u"}),
				"Delete": j.Delete(context.Background(), "u"),
				"Commit": j.Commit(context.Background()),
			} {
				if !errors.Is(err, c.want) {
					t.Errorf("a %s after the failure: %v", name, err)
				}
			}
		})
	}
}

func TestReadJSONL(t *testing.T) {
	for _, c := range []struct{ in, urls, err string }{
		{"", "", ""},
		{"\n \r\n", "", ""},
		{`{"url":"a","score":1,"new field":{}}` + "\r\n" + `{"url":"b","deleted":true,"title":"x"}` + "\n", "a b-", ""},
		{`{"url":"a"}` + "\n" + `{"url":"b"`, "a", "index: line 2: unexpected EOF"},
		{`{"url":"a"}` + "\n{}\n", "a", "index: line 2: no url"},
		{"[]\n", "", "index: line 1: json: "},
	} {
		var urls, failure string
		for e, err := range index.ReadJSONL(strings.NewReader(c.in)) {
			if err != nil {
				failure = err.Error()
				continue
			}
			urls += " " + e.URL
			if e.Deleted {
				urls += "-"
			}
			if e.Deleted && e.Title != "" {
				t.Error("a deletion has a title")
			}
		}
		if strings.TrimSpace(urls) != c.urls || !strings.HasPrefix(failure, c.err) || (failure == "") != (c.err == "") {
			t.Errorf("%q: read %q, error %q", c.in, urls, failure)
		}
	}
	for range index.ReadJSONL(strings.NewReader("{\"url\":\"a\"}\n{\"url\":\"b\"}\n")) {
		break
	}
}

func FuzzReadJSONL(f *testing.F) {
	f.Add([]byte("{\"url\":\"a\",\"anchors\":[\"x\"],\"fetched\":\"2026-01-02T03:04:05Z\",\"score\":1e9}\n{\"url\":\"a\",\"deleted\":true}\n"))
	f.Add([]byte("{\"url\":\"a\xff\"}\n\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var again bytes.Buffer
		j := index.NewJSONL(&again)
		var urls []string
		for e, err := range index.ReadJSONL(bytes.NewReader(data)) {
			if err != nil {
				break
			}
			urls = append(urls, e.URL)
			if e.Deleted {
				err = j.Delete(t.Context(), e.URL)
			} else {
				err = j.Write(t.Context(), &e.Document)
			}
			if err != nil {
				t.Fatal(err) // what was read can be written
			}
		}
		if err := j.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for e, err := range index.ReadJSONL(&again) {
			if err != nil {
				t.Fatal(err)
			}
			if e.URL != urls[0] {
				t.Fatalf("%q came back as %q", urls[0], e.URL)
			}
			urls = urls[1:]
		}
		if len(urls) > 0 {
			t.Fatalf("%d entries did not come back", len(urls))
		}
	})
}
