package index

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"syscall"
)

// JSONL is a [Writer] of JSON lines, the format that bulk loaders of search
// engines and jq read. Each line is one JSON object, ends with a line feed, and
// is of one of two kinds:
//
//	{"url":"http://example.com/","title":"Example","host":"example.com","fetched":"2026-01-02T03:04:05Z","score":1}
//	{"url":"http://example.com/old","deleted":true}
//
// The first is a [Document]: its fields by their JSON names, in the order of the
// type, the empty ones left out except url and score, times in UTC as RFC 3339
// has them. The second says that there is no longer a document for the URL. Of
// several lines for a URL the last counts. Fields may be added to the format;
// none will change its meaning.
//
// There is no HTML escaping. Invalid UTF-8 becomes U+FFFD. A score or boost
// that is NaN becomes 0, an infinite one the largest number.
//
// After an error from the io.Writer, or its Sync, every method returns that error; the
// last line may then be incomplete, as after a crash. See [ReadJSONL].
type JSONL struct {
	w    io.Writer
	buf  *bufio.Writer
	line bytes.Buffer
	enc  *json.Encoder
	err  error // of a Commit: what it should have made durable may be lost
}

// NewJSONL returns a JSONL that writes to w. Commit flushes its buffer and calls
// w's Sync method, if it has one as os.File does. The caller closes w, after the
// last Commit.
func NewJSONL(w io.Writer) *JSONL {
	j := &JSONL{w: w, buf: bufio.NewWriterSize(w, 64<<10)}
	j.enc = json.NewEncoder(&j.line)
	j.enc.SetEscapeHTML(false)
	return j
}

// deletion is the second kind of line.
type deletion struct {
	URL     string `json:"url"`
	Deleted bool   `json:"deleted"`
}

// Write adds the line of a document.
func (j *JSONL) Write(ctx context.Context, d *Document) error {
	out := *d
	out.Fetched, out.Modified, out.UnavailableAfter = d.Fetched.UTC(), d.Modified.UTC(), d.UnavailableAfter.UTC()
	out.Score, out.Boost = finite(d.Score), finite(d.Boost)
	return j.add(ctx, "write", d.URL, &out)
}

// finite returns the number nearest to f that JSON can represent.
func finite(f float32) float32 {
	switch s := float64(f); {
	case math.IsNaN(s):
		return 0
	case math.IsInf(s, 0):
		return float32(math.Copysign(math.MaxFloat32, s))
	}
	return f
}

// Delete adds a line that says that the document is gone.
func (j *JSONL) Delete(ctx context.Context, url string) error {
	return j.add(ctx, "delete", url, deletion{url, true})
}

// add encodes before writing, so that a document that JSON cannot represent
// leaves no partial line.
func (j *JSONL) add(ctx context.Context, op, url string, v any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := j.err
	if err == nil {
		j.line.Reset()
		err = j.enc.Encode(v)
	}
	if err == nil {
		_, err = j.buf.Write(j.line.Bytes())
	}
	if err != nil {
		return fmt.Errorf("index: %s %s: %w", op, url, err)
	}
	return nil
}

// Commit writes out every line added so far. If the io.Writer can Sync, they
// are then on disk.
func (j *JSONL) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if j.err == nil {
		j.err = j.flush()
	}
	if j.err != nil {
		return fmt.Errorf("index: commit: %w", j.err)
	}
	return nil
}

func (j *JSONL) flush() error {
	if err := j.buf.Flush(); err != nil {
		return err
	}
	s, ok := j.w.(interface{ Sync() error })
	if !ok {
		return nil
	}
	err := s.Sync()
	// A pipe or a terminal has no disk, and reports that with these errors.
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// Entry is one line of a JSONL. If Deleted is set, only the URL is, too.
type Entry struct {
	Document
	Deleted bool `json:"deleted,omitempty"`
}

// ReadJSONL reads what a JSONL wrote, line by line. It ends at the first error,
// which names the line; io.ErrUnexpectedEOF says that the last line is
// incomplete, so it was never committed. Empty lines and unknown fields are
// skipped. The length of lines is not limited.
func ReadJSONL(r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := bufio.NewReaderSize(r, 64<<10)
		for n := 1; ; n++ {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF && len(line) == 0 {
				return
			}
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			var e Entry
			if err == nil {
				if line = bytes.TrimSpace(line); len(line) == 0 {
					continue
				}
				err = json.Unmarshal(line, &e)
				if err == nil && e.URL == "" {
					err = errors.New("no url")
				}
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("index: line %d: %w", n, err))
				return
			}
			if e.Deleted {
				e.Document = Document{URL: e.URL}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
