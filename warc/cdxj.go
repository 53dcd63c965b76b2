package warc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Line is one of a CDXJ index: where the capture of a URL is.
type Line struct {
	// Key is the URL as a SURT, by which lines are sorted: see [SURT].
	Key  string
	Time time.Time
	URL  string
	// MIME is the media type without parameters, or "warc/revisit" for a revisit record.
	MIME string
	// Status is that of HTTP; empty for content that did not come by HTTP.
	Status string
	// Digest is that of the payload, with the name of its algorithm.
	Digest string
	// Filename, Offset and Length say where the record is, compressed as it is in the file.
	Filename       string
	Offset, Length int64
}

// revisitMIME is the MIME of lines for revisit records, by the convention of pywb.
const revisitMIME = "warc/revisit"

// cdxjJSON is the object of a line. Its numbers are strings, by the convention of pywb.
type cdxjJSON struct {
	URL      string `json:"url"`
	MIME     string `json:"mime,omitempty"`
	Status   string `json:"status,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Length   string `json:"length"`
	Offset   string `json:"offset"`
	Filename string `json:"filename"`
}

const cdxjTime = "20060102150405"

func newLine(c *capture, kind, name string, offset, length int64) Line {
	l := Line{Key: SURT(c.url), Time: c.at.UTC(), URL: c.url, MIME: c.mime, Digest: c.digest, Filename: name, Offset: offset, Length: length}
	if kind == TypeRevisit {
		l.MIME = revisitMIME
	}
	if c.status != 0 {
		l.Status = strconv.Itoa(c.status)
	}
	return l
}

// String returns the line without its end.
func (l Line) String() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(cdxjJSON{URL: l.URL, MIME: l.MIME, Status: l.Status, Digest: l.Digest, // of strings, which cannot fail
		Length: strconv.FormatInt(l.Length, 10), Offset: strconv.FormatInt(l.Offset, 10), Filename: l.Filename})
	return l.Key + " " + l.Time.UTC().Format(cdxjTime) + " " + strings.TrimSuffix(b.String(), "\n")
}

// ParseLine reads a line of CDXJ.
func ParseLine(s string) (Line, error) {
	key, rest, _ := strings.Cut(s, " ")
	stamp, object, ok := strings.Cut(rest, " ")
	if !ok {
		return Line{}, fmt.Errorf("warc: CDXJ line %.200q has no key, time and object", s)
	}
	t, err := time.Parse(cdxjTime, stamp)
	if err != nil {
		return Line{}, fmt.Errorf("warc: CDXJ line %.200q: its time has not fourteen digits", s)
	}
	var j cdxjJSON
	if err := json.Unmarshal([]byte(object), &j); err != nil {
		return Line{}, fmt.Errorf("warc: CDXJ line %.200q: %w", s, err)
	}
	l := Line{Key: key, Time: t, URL: j.URL, MIME: j.MIME, Status: j.Status, Digest: j.Digest, Filename: j.Filename}
	for _, n := range []struct {
		to   *int64
		text string
	}{{&l.Offset, j.Offset}, {&l.Length, j.Length}} {
		if *n.to, err = strconv.ParseInt(cmp.Or(n.text, "0"), 10, 64); err != nil || *n.to < 0 {
			return Line{}, fmt.Errorf("warc: CDXJ line %.200q: %q is no offset or length", s, n.text)
		}
	}
	return l, nil
}

// ReadLines yields the lines of an index. Empty lines, and those that begin with "!", which
// hold metadata, are left out. An error ends the sequence.
func ReadLines(r *bufio.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for {
			text, err := r.ReadString('\n')
			if text = strings.TrimRight(text, "\r\n"); text != "" && text[0] != '!' {
				l, err := ParseLine(text)
				if !yield(l, err) || err != nil {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Line{}, err)
				return
			}
		}
	}
}

// readIndex yields the lines of an index file. An error ends the sequence.
func readIndex(path string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(Line{}, fmt.Errorf("warc: %w", err))
			return
		}
		defer file.Close()
		for l, err := range ReadLines(bufio.NewReader(file)) {
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// Index yields a line for each capture in a file: each response, resource and revisit
// record, in the order of the file. Their Filename is the base name of the path. An error
// ends the sequence.
func Index(ctx context.Context, path string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for rec, err := range ReadFile(ctx, path) {
			if err != nil {
				yield(Line{}, err)
				return
			}
			l, ok, err := rec.line()
			if err != nil {
				yield(Line{}, fmt.Errorf("warc: %s: record at %d: %w", path, rec.Offset, err))
				return
			}
			if ok {
				l.Filename = filepath.Base(path)
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}

// compareLines orders lines as an index is: by their bytes.
func compareLines(a, b Line) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), a.Time.Compare(b.Time), cmp.Compare(a.String(), b.String()))
}

// indexBeside writes the index of the file at path beside the file at final, which is its
// name to come.
func indexBeside(path, final string) error {
	var lines []Line
	for l, err := range Index(context.Background(), path) {
		if err != nil {
			return err
		}
		l.Filename = filepath.Base(final)
		lines = append(lines, l)
	}
	return writeLines(final+".cdxj", lines)
}

// writeLines writes an index, sorted. It replaces the file as a whole.
func writeLines(path string, lines []Line) error {
	slices.SortFunc(lines, compareLines)
	file, err := os.CreateTemp(filepath.Dir(path), ".cdxj-*")
	if err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	defer os.Remove(file.Name()) // after the renaming it does not exist
	b := bufio.NewWriter(file)
	for _, l := range lines {
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	if err := errors.Join(b.Flush(), file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	return nil
}

// mediaType returns the media type of a Content-Type; empty if it names none.
func mediaType(contentType string) string {
	t, _, _ := mime.ParseMediaType(contentType)
	if t == "" {
		t, _, _ = strings.Cut(contentType, ";")
		t = strings.ToLower(strings.TrimSpace(t))
	}
	if strings.ContainsAny(t, " \t\"") {
		return ""
	}
	return t
}

// escapeGlob escapes what has a meaning in the patterns of filepath.Glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
