package textlines

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// A Scanner reads lines like a [bufio.Scanner] with [Split]. A line of the limit or longer
// does not end it: the line is cut to its first bytes, and LineErr says so.
type Scanner struct {
	lines    *bufio.Scanner
	limit    int
	head     []byte // of the long line being skipped
	skipping bool
	long     bool // the current line
	number   int
}

// NewScanner returns a Scanner for lines of fewer than limit bytes.
func NewScanner(r io.Reader, limit int) *Scanner {
	s := &Scanner{lines: bufio.NewScanner(r), limit: limit}
	s.lines.Buffer(make([]byte, min(limit, 64<<10)), limit+len("\r\n"))
	s.lines.Split(s.split)
	return s
}

// Scan reads the next line and reports whether there is one.
func (s *Scanner) Scan() bool {
	s.long = false
	s.number++
	return s.lines.Scan()
}

// Bytes returns the current line without its end; it is valid until the next Scan.
func (s *Scanner) Bytes() []byte { return s.lines.Bytes() }

// Number returns the number of the current line, from 1; after the last Scan, that of the
// line at which reading ended.
func (s *Scanner) Number() int { return s.number }

// LineErr returns an error if the current line was too long.
func (s *Scanner) LineErr() error {
	if !s.long {
		return nil
	}
	return fmt.Errorf("the line is longer than %d bytes: %w", s.limit, bufio.ErrTooLong)
}

// Err returns the first error of reading.
func (s *Scanner) Err() error { return s.lines.Err() }

// headBytes is how much of a line that is too long is kept.
const headBytes = 100

func (s *Scanner) split(data []byte, atEOF bool) (advance int, line []byte, err error) {
	advance, line, err = Split(data, atEOF)
	if advance == 0 && len(data) >= s.limit+len("\r\n") { // the buffer is full
		if !s.skipping {
			s.skipping, s.head = true, bytes.Clone(data[:min(len(data), headBytes)])
		}
		return len(bytes.TrimSuffix(data, []byte{'\r'})), nil, nil
	}
	if s.skipping && (advance > 0 || atEOF) {
		s.skipping, s.long = false, true
		return advance, s.head, err
	}
	if len(line) >= s.limit {
		s.long, line = true, line[:min(len(line), headBytes)]
	}
	return advance, line, err
}
