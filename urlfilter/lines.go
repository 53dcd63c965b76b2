package urlfilter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/recrawl/recrawl/internal/textlines"
)

// maxLine limits a line of a rule file, in bytes.
const maxLine = 1 << 20

// errNotText is the error for UTF-16 and compressed files, which some filters
// would turn into rules that match nothing.
var errNotText = errors.New("a zero byte; rules are text in UTF-8")

// readLines calls f with each line of r and its number, from 1, without the
// line end, which is "\n", "\r\n" or "\r" as in Java, and without a byte order
// mark. Its errors are a [*SyntaxError].
func readLines(r io.Reader, f func(n int, line string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	s.Split(textlines.Split)
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

// hostOf returns the host of a URL in normal form, without the port; empty if
// it has none.
func hostOf(url string) string {
	_, _, host, _, _, _ := cutURL(url)
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// pathOf returns the path of a URL; false if it has no scheme.
func pathOf(url string) (string, bool) {
	start, end, ok := pathAt(url)
	return url[start:end], ok
}

// pathAt returns where the path of a URL begins and ends; false if it has no scheme.
func pathAt(url string) (start, end int, ok bool) {
	for start < len(url) && url[start] != ':' {
		if c := url[start]; c == '/' || c == '?' || c == '#' {
			return 0, 0, false
		}
		start++
	}
	if start == 0 || start == len(url) {
		return 0, 0, false
	}
	start++
	if strings.HasPrefix(url[start:], "//") {
		for start += 2; start < len(url) && url[start] != '/'; start++ {
			if url[start] == '?' || url[start] == '#' {
				return start, start, true
			}
		}
	}
	end = len(url)
	for _, c := range [...]byte{'?', '#'} {
		if i := strings.IndexByte(url[start:end], c); i >= 0 {
			end = start + i
		}
	}
	return start, end, true
}
