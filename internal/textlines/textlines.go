// Package textlines reads the lines of text files with the line ends of any system, and
// names files and lines in errors. It does not know what the lines mean. Start with
// [Scanner].
package textlines

import (
	"bytes"
	"io"
	"strconv"
)

// Split is a [bufio.SplitFunc] for lines that end with a line feed, a carriage return, or both.
func Split(data []byte, atEOF bool) (advance int, line []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case i < 0, data[i] == '\r' && i+1 == len(data) && !atEOF:
		return 0, nil, nil // it continues
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	}
	return i + 1, data[:i], nil
}

// Place names a line: "hosts.txt:3" if r knows the name of its file, as an [os.File] does,
// otherwise "line 3".
func Place(r io.Reader, line int) string {
	if f, ok := r.(interface{ Name() string }); ok {
		return f.Name() + ":" + strconv.Itoa(line)
	}
	return "line " + strconv.Itoa(line)
}
