package warc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/warc"
)

var captureTime = time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC)

func exchange(url, response string) httpproto.Exchange {
	return httpproto.Exchange{
		URL: url, Time: captureTime, Addr: "192.0.2.1:80", Protocol: "http/1.1",
		Request:  []byte("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
		Response: []byte(response),
	}
}

func okay(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func newWriter(t testing.TB, dir string, o warc.Options) *warc.Writer {
	t.Helper()
	w, err := warc.NewWriter(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func capture(t testing.TB, w *warc.Writer, exchanges ...httpproto.Exchange) {
	t.Helper()
	for _, x := range exchanges {
		if err := w.Capture(x); err != nil {
			t.Fatal(err)
		}
	}
}

func closeWriter(t testing.TB, w *warc.Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func filesOf(t testing.TB, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// a readRecord is a record with its block.
type readRecord struct {
	*warc.Record
	block string
}

func readFile(t testing.TB, path string) []readRecord {
	t.Helper()
	var records []readRecord
	for rec, err := range warc.ReadFile(context.Background(), path) {
		if err != nil {
			t.Fatal(err)
		}
		block, err := io.ReadAll(rec.Block)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, readRecord{rec, string(block)})
	}
	return records
}

func compressions() map[string]warc.Compression {
	return map[string]warc.Compression{"gz": warc.Gzip, "zst": warc.Zstd, "warc": warc.None}
}

func TestRecordsAreReadAsWritten(t *testing.T) {
	for name, compression := range compressions() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := newWriter(t, dir, warc.Options{Compression: compression, Info: warc.Fields{{"operator", "me\r\nX: y"}}})
			big := strings.Repeat("0123456789abcdef", 1<<16)
			x := exchange("http://a.example/", okay(big))
			x.Truncated, x.Protocol = "length", "h2"
			capture(t, w, x)
			if err := w.Resource("file:///x", "text/plain; charset=utf-8", captureTime, []byte("text")); err != nil {
				t.Fatal(err)
			}
			closeWriter(t, w)
			files := filesOf(t, dir, "recrawl-*."+name)
			if len(files) != 1 {
				t.Fatalf("files %q", filesOf(t, dir, "*"))
			}
			records := readFile(t, files[0])
			var types []string
			for _, r := range records {
				types = append(types, r.Type())
				if r.Version != "WARC/1.1" || len(r.Fields.Get("WARC-Record-ID")) != len("<urn:uuid:00000000-0000-4000-8000-000000000000>") || r.Time().IsZero() {
					t.Errorf("%s: %v", r.Version, r.Fields)
				}
			}
			if got := strings.Join(types, " "); got != "warcinfo response request resource" {
				t.Fatalf("records %s", got)
			}
			info, response, request, resource := records[0], records[1], records[2], records[3]
			if !strings.Contains(info.block, "operator: me  X: y\r\n") || info.Fields.Get("WARC-Filename") != filepath.Base(files[0]) {
				t.Errorf("%v %q", info.Fields, info.block)
			}
			if response.block != string(x.Response) || response.URL() != x.URL || !response.Time().Equal(captureTime) ||
				response.Fields.Get("WARC-IP-Address") != "192.0.2.1" || response.Fields.Get("WARC-Truncated") != "length" || response.Fields.Get("WARC-Protocol") != "h2" {
				t.Errorf("%v", response.Fields)
			}
			if request.block != string(x.Request) || request.Fields.Get("WARC-Concurrent-To") != response.Fields.Get("WARC-Record-ID") {
				t.Errorf("%v %q", request.Fields, request.block)
			}
			if resource.block != "text" || resource.Fields.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%v %q", resource.Fields, resource.block)
			}
		})
	}
}

func TestRevisits(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{CDXJ: true})
	first := exchange("http://a.example/1", okay("same"))
	copied := exchange("http://a.example/2", okay("same"))
	other := exchange("http://a.example/3", okay("other"))
	same304 := exchange("http://a.example/1", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n")
	unknown304 := exchange("http://a.example/4", "HTTP/1.1 304 Not Modified\r\n\r\n")
	empty := exchange("http://a.example/5", okay(""))
	capture(t, w, first, copied, other, same304, unknown304, empty, empty)
	closeWriter(t, w)

	// What the index lists is known to the next writer in the folder.
	w = newWriter(t, dir, warc.Options{CDXJ: true})
	capture(t, w, copied)
	closeWriter(t, w)
	var got []string
	for _, path := range filesOf(t, dir, "*.warc.gz") {
		for _, r := range readFile(t, path) {
			if r.Type() == "response" || r.Type() == "revisit" {
				_, profile, _ := strings.Cut(r.Fields.Get("WARC-Profile"), "revisit/")
				got = append(got, strings.Join([]string{r.URL()[len("http://a.example"):], r.Type(), profile, r.Fields.Get("WARC-Refers-To-Target-URI"), r.Fields.Get("WARC-Refers-To-Date")}, " "))
				if r.Type() == "revisit" && strings.Contains(r.block, "same") {
					t.Errorf("revisit with payload: %q", r.block)
				}
			}
		}
	}
	// A CDXJ file has no fractions of seconds.
	want := []string{
		"/1 response   ", "/2 revisit identical-payload-digest http://a.example/1 2026-03-04T05:06:07.089Z", "/3 response   ",
		"/1 revisit server-not-modified http://a.example/1 2026-03-04T05:06:07.089Z", "/4 revisit server-not-modified  ",
		"/5 response   ", "/5 response   ",
		"/2 revisit identical-payload-digest http://a.example/1 2026-03-04T05:06:07.000Z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestKnownPayloadsAreBounded(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{KnownPayloads: 2})
	for _, body := range []string{"a", "b", "c", "a", "c"} {
		capture(t, w, exchange("http://a.example/"+body, okay(body)))
	}
	closeWriter(t, w)
	var got []string
	for _, r := range readFile(t, filesOf(t, dir, "*.warc.gz")[0]) {
		if r.Type() != "request" && r.Type() != "warcinfo" {
			got = append(got, r.Type())
		}
	}
	if s := strings.Join(got, " "); s != "response response response response revisit" {
		t.Error(s)
	}
}

func TestFilesRotate(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{MaxBytes: 2000, Compression: warc.None, CDXJ: true, Prefix: "site"})
	for i := range 10 {
		capture(t, w, exchange(fmt.Sprintf("http://a.example/%d", i), okay(strings.Repeat("x", 300)+fmt.Sprint(i))))
	}
	closeWriter(t, w)
	files := filesOf(t, dir, "site-*.warc")
	urls := map[string]bool{}
	for _, path := range files {
		records := readFile(t, path)
		if records[0].Type() != "warcinfo" {
			t.Errorf("%s begins with %s", path, records[0].Type())
		}
		index, err := os.ReadFile(path + ".cdxj")
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for l, err := range warc.Index(context.Background(), path) {
			if err != nil {
				t.Fatal(err)
			}
			urls[l.URL] = true
			lines = append(lines, l.String()+"\n")
		}
		slices.Sort(lines)
		if string(index) != strings.Join(lines, "") {
			t.Errorf("index written\n%s\nread from the file\n%s", index, strings.Join(lines, ""))
		}
	}
	if len(files) < 3 || len(urls) != 10 || len(filesOf(t, dir, "*.open")) > 0 {
		t.Errorf("%d files, %d URLs", len(files), len(urls))
	}
}

// TestWriterRecoversEveryTornFile cuts a file after many of its bytes, or all, as a killed
// process does.
func TestWriterRecoversEveryTornFile(t *testing.T) {
	for name, compression := range compressions() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := newWriter(t, dir, warc.Options{Compression: compression})
			capture(t, w, exchange("http://a.example/1", okay("one")), exchange("http://a.example/2", okay("two")))
			closeWriter(t, w)
			path := filesOf(t, dir, "recrawl-*")[0]
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var ends []int64
			for _, r := range readFile(t, path)[1:] {
				ends = append(ends, r.Offset)
			}
			for n := 0; n < len(whole); n += testlevel.Pick(17, 1) {
				dir := t.TempDir()
				torn := filepath.Join(dir, filepath.Base(path))
				if err := os.WriteFile(torn+".open", whole[:n], 0o666); err != nil {
					t.Fatal(err)
				}
				w := newWriter(t, dir, warc.Options{CDXJ: true})
				closeWriter(t, w)
				left, err := os.ReadFile(torn)
				if errors.Is(err, os.ErrNotExist) && int64(n) < ends[0] {
					continue
				}
				if err != nil {
					t.Fatalf("cut at %d: %v", n, err)
				}
				want := 0
				for _, end := range append(ends, int64(len(whole))) {
					// Without compression a record is whole before the line ends after it.
					if slack := int64(len("\r\n\r\n")); compression == warc.None && end-slack <= int64(n) {
						want = int(min(end, int64(n)))
					} else if end <= int64(n) {
						want = int(end)
					}
				}
				if len(left) != want {
					t.Fatalf("cut at %d of %d: %d bytes left, want %d", n, len(whole), len(left), want)
				}
				readFile(t, torn)
			}
		})
	}
}

func TestFolderHasOneWriter(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{})
	if _, err := warc.NewWriter(dir, warc.Options{}); !errors.Is(err, warc.ErrLocked) {
		t.Errorf("second writer: %v", err)
	}
	closeWriter(t, w)
	if err := w.Capture(exchange("http://a.example/", okay(""))); !errors.Is(err, warc.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	closeWriter(t, newWriter(t, dir, warc.Options{}))
	if files := filesOf(t, dir, "recrawl-*"); len(files) > 0 {
		t.Errorf("an unused writer leaves %q", files)
	}
}

func TestDamagedFileIsNotCut(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{Compression: warc.None})
	capture(t, w, exchange("http://a.example/1", okay("one")), exchange("http://a.example/2", okay("two")))
	closeWriter(t, w)
	path := filesOf(t, dir, "*.warc")[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(b, []byte("WARC/1.1"), []byte("WARP/1.1"), 2)
	for _, test := range []struct {
		content []byte
		ok      bool
	}{{damaged, false}, {append(bytes.Clone(b), make([]byte, 5000)...), true}} {
		if err := os.WriteFile(path, test.content, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := warc.Cut(path)
		left, readErr := os.ReadFile(path)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if test.ok && (err != nil || !bytes.Equal(left, b)) {
			t.Errorf("zeros at the end: %v, %d bytes left of %d", err, len(left), len(b))
		}
		if format := new(warc.FormatError); !test.ok && (!errors.As(err, &format) || !bytes.Equal(left, damaged)) {
			t.Errorf("damage: %v, %d bytes left of %d", err, len(left), len(b))
		}
	}
}
