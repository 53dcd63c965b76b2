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
