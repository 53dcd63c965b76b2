package main

import (
	"bytes"
	"fmt"
	"os"
)

// writeInto puts text between two lines of a file, which say what it is:
//
//	<!-- bench db -->
//	<!-- end -->
//
// The rest of the file stays, and so does what is there if text is nil.
func writeInto(file, name string, text []byte) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := []byte("<!-- bench "+name+" -->\n"), []byte("<!-- end -->\n")
	before, rest, ok := bytes.Cut(b, begin)
	if !ok {
		return fmt.Errorf("%s has no line %q", file, bytes.TrimSpace(begin))
	}
	_, after, ok := bytes.Cut(rest, end)
	if !ok {
		return fmt.Errorf("%s has no line %q behind %q", file, bytes.TrimSpace(end), bytes.TrimSpace(begin))
	}
	if text == nil {
		return nil
	}
	return os.WriteFile(file, bytes.Join([][]byte{before, begin, text, end, after}, nil), 0o644)
}
