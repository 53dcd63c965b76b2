package render

import (
	"fmt"
	"io"
	"strings"
)

// Marked prints a text on one line, in bold where it matches if it is seen on a terminal. matches are offsets
// in the text, of the first byte and of that behind the last, in order.
func Marked(w io.Writer, text string, matches [][2]int) {
	line := func(s string) string { return strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(s) }
	terminal := Terminal(w)
	if terminal == nil {
		fmt.Fprint(w, line(text))
		return
	}
	at := 0
	for _, m := range matches {
		fmt.Fprint(w, line(text[at:m[0]]))
		fmt.Fprint(terminal, "\x1b[1m")
		fmt.Fprint(w, line(text[m[0]:m[1]]))
		fmt.Fprint(terminal, "\x1b[0m")
		at = m[1]
	}
	fmt.Fprint(w, line(text[at:]))
}
