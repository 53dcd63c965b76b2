package urlfilter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxLine bounds a line of a rule file, in bytes.
const maxLine = 1 << 20

// errNotText is what UTF-16 and compressed files give, of which some filters would
// make rules that match nothing.
var errNotText = errors.New("a zero byte; a file of rules is text in UTF-8")

// readLines calls f with each line of r and its number, from 1, without the
// line end, which is "\n", "\r\n" or "\r" as in Java, and without a byte order
// mark. Its errors are a [*SyntaxError].
func readLines(r io.Reader, f func(n int, line string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	s.Split(splitLines)
	n := 1
	for ; s.Scan(); n++ {
		line := s.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		err := errNotText
		if strings.IndexByte(line, 0) < 0 {
			err = f(n, line)
		}
		if err != nil {
			return &SyntaxError{Line: n, Err: err}
		}
	}
	if err := s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line of more than %d bytes", maxLine)
		}
		return &SyntaxError{Line: n, Err: err}
	}
	return nil
}

func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case i < 0, data[i] == '\r' && i+1 == len(data) && !atEOF:
		return 0, nil, nil // more of it
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	}
	return i + 1, data[:i], nil
}

// hostOf returns the host of a URL in normal form, without the port; empty if
// it has none.
func hostOf(url string) string {
	i := 0
	for ; i < len(url) && url[i] != ':'; i++ {
		if c := url[i]; c == '/' || c == '?' || c == '#' {
			return ""
		}
	}
	if i == 0 || !strings.HasPrefix(url[i:], "://") {
		return ""
	}
	start := i + len("://")
	colon, upper := -1, false
scan:
	for i = start; i < len(url); i++ {
		switch c := url[i]; {
		case c == '/' || c == '?' || c == '#':
			break scan
		case c == '@':
			start, colon = i+1, -1
		case c == ':':
			colon = i
		case c == ']':
			colon = -1 // that was of an IPv6 address
		case 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf:
			upper = true
		}
	}
	host := url[start:i]
	if colon >= 0 {
		host = url[start:colon]
	}
	host = strings.TrimSuffix(host, ".")
	if upper {
		host = strings.ToLower(host)
	}
	return host
}

// pathOf returns the path of a URL; false if it has no scheme.
func pathOf(url string) (string, bool) {
	start := 0
	for ; start < len(url) && url[start] != ':'; start++ {
		if c := url[start]; c == '/' || c == '?' || c == '#' {
			return "", false
		}
	}
	if start == 0 || start == len(url) {
		return "", false
	}
	start++
	if strings.HasPrefix(url[start:], "//") {
		for start += 2; start < len(url) && url[start] != '/'; start++ {
			if url[start] == '?' || url[start] == '#' {
				return "", true
			}
		}
	}
	end := start
	for end < len(url) && url[end] != '?' && url[end] != '#' {
		end++
	}
	return url[start:end], true
}
