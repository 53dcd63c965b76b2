package warc_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/warc"
)

// FuzzRead reads what may be no WARC file. What is read must lie within the file, and end.
func FuzzRead(f *testing.F) {
	for _, compression := range compressions() {
		dir := f.TempDir()
		w := newWriter(f, dir, warc.Options{Compression: compression})
		capture(f, w, exchange("http://a.example/1", okay("one")), exchange("http://a.example/2", okay("one")))
		closeWriter(f, w)
		b, err := os.ReadFile(filesOf(f, dir, "recrawl-*")[0])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("WARC/1.0\r\nWARC-Target-URI: <http://a/>\r\nContent-Length: 3\r\n folded\r\n\r\nabc\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		last := int64(-1)
		for rec, err := range warc.Read(context.Background(), bytes.NewReader(b)) {
			if err != nil {
				break
			}
			if rec.Offset < last || rec.Offset >= int64(len(b)) || rec.BlockLength < 0 {
				t.Fatalf("record at %d after %d, of %d bytes", rec.Offset, last, len(b))
			}
			last = rec.Offset
			n, _ := io.Copy(io.Discard, io.LimitReader(rec.Block, 1<<20))
			if n > rec.BlockLength {
				t.Fatalf("block of %d bytes, longer than its length %d", n, rec.BlockLength)
			}
		}
	})
}

// FuzzReadLines reads what may be no CDXJ index. What is read is written as the same line.
func FuzzReadLines(f *testing.F) {
	f.Add("!meta {}\n\ncom,example)/ 20260102030405 {\"url\": \"http://example.com/\", \"length\": \"1\", \"offset\": \"2\", \"filename\": \"x\"}\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		for l, err := range warc.ReadLines(bufio.NewReader(strings.NewReader(s))) {
			if err != nil {
				break
			}
			again, err := warc.ParseLine(l.String())
			if err != nil || again != l {
				t.Fatalf("%+v is read again as %+v: %v", l, again, err)
			}
		}
	})
}

func FuzzSURT(f *testing.F) {
	f.Add("http://www.example.com:80/a/../b?c=1&b=%2541#x")
	f.Fuzz(func(t *testing.T, url string) {
		if key := warc.SURT(url); strings.ContainsAny(key, " \n") {
			t.Errorf("%q: key %q", url, key)
		}
	})
}
