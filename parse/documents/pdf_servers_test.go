//go:build servers

package documents_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/documents"
)

func words(text string) map[string]int {
	m := map[string]int{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		m[w]++
	}
	return m
}

// f1 is the harmonic mean of precision and recall of words.
func f1(got, want map[string]int) float64 {
	both, all := 0, 0
	for w, n := range got {
		both += min(n, want[w])
		all += n
	}
	for _, n := range want {
		all += n
	}
	return 2 * float64(both) / float64(all)
}

// TestPDF reads PDF of Debian's documentation beside pdftotext of poppler, and documents that are damaged. The
// reader is compiled once for all of it, which takes seconds.
func TestPDF(t *testing.T) {
	parser := &documents.Parser{PDFMemory: 128 << 20}
	defer parser.Close()
	c := content(t, "burrows.pdf")
	c.Type = "application/pdf"
	p, err := parser.Mux().Parse(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "burrows.pdf", p)
	files, sum, size, took := 0, 0.0, 0, time.Duration(0)
	err = filepath.WalkDir("/usr/share/doc", func(path string, e fs.DirEntry, err error) error {
		if err != nil || files >= 30 || filepath.Ext(path) != ".pdf" || !e.Type().IsRegular() {
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil || len(body) > 4<<20 {
			return nil
		}
		out, err := exec.CommandContext(t.Context(), "pdftotext", path, "-").Output()
		if err != nil {
			return err
		}
		want := words(string(out))
		if len(want) < 5 {
			return nil
		}
		began := time.Now()
		p, err := parser.Parse(t.Context(), &page.Content{URL: "http://h.example/a.pdf", Type: "application/pdf", Body: body})
		took += time.Since(began)
		f := f1(words(p.Text), want)
		if err != nil || f < 0.95 {
			t.Errorf("%s: %.3f of the words of poppler, %v", path, f, err)
		}
		files++
		sum += f
		size += len(body)
		return nil
	})
	if err != nil || files < 1 {
		t.Fatalf("%d files, %v", files, err)
	}
	t.Logf("%d files, %d bytes in %v: F1 beside poppler %.3f", files, size, took, sum/float64(files))
	for n := 0; n < len(c.Body); n += len(c.Body)/12 + 1 { // cut, and with bytes changed
		for _, body := range [][]byte{c.Body[:n], append(append(append([]byte{}, c.Body[:n]...), "\xff\x00<<"...), c.Body[n:]...)} {
			body = append([]byte("%PDF-1.4\n"), body...)
			if _, err := parser.Parse(t.Context(), &page.Content{URL: c.URL, Type: c.Type, Body: body}); err != nil && !errors.Is(err, documents.ErrDocument) {
				t.Errorf("cut at %d: %v", n, err)
			}
		}
	}
	// A parse that is cancelled ends at once, and the parser goes on.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := parser.Parse(ctx, &c); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if p, err := parser.Parse(t.Context(), &c); err != nil || p.Title == "" {
		t.Errorf("%+v, %v", p, err)
	}
}
