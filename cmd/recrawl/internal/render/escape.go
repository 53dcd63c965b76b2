package render

import (
	"fmt"
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"
)

// An Escaper passes on text without control characters, which a page or a URL could use to
// command a terminal, and without bytes that are not UTF-8: "\u001b" is written in the place of
// an escape, as in JSON, and "\xff" in that of a byte 255. Newlines and tabs stay. The meaning of JSON
// stays the same, since JSON has no invalid bytes. An Escaper may be used by many goroutines.
type Escaper struct {
	W io.Writer

	mu    sync.Mutex
	exact bool
	rest  []byte // the beginning of a character
}

// Write writes p, but for the beginning of a character at its end.
func (e *Escaper) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.exact {
		return e.W.Write(p)
	}
	text := p
	if len(e.rest) > 0 {
		text = append(e.rest, p...)
		e.rest = nil
	}
	var out []byte
	done := 0 // how much of text is in out
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		invalid := r == utf8.RuneError && size == 1
		if invalid && !utf8.FullRune(text[i:]) {
			e.rest = append([]byte(nil), text[i:]...)
			text = text[:i]
			break
		}
		if invalid || unicode.IsControl(r) && r != '\n' && r != '\t' {
			out = append(out, text[done:i]...)
			if invalid {
				out = fmt.Appendf(out, `\x%02x`, text[i])
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			done = i + size
		}
		i += size
	}
	if out == nil {
		out = text
	} else {
		out = append(out, text[done:]...)
	}
	if _, err := e.W.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what is left of a character that was never completed.
func (e *Escaper) Flush() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	for _, b := range e.rest {
		if _, e := fmt.Fprintf(e.W, `\x%02x`, b); err == nil {
			err = e
		}
	}
	e.rest = nil
	return err
}

// escaperOf returns the Escaper below a writer; nil if there is none.
func escaperOf(w io.Writer) *Escaper {
	if c, ok := w.(*CheckedWriter); ok {
		w = c.W
	}
	e, _ := w.(*Escaper)
	return e
}

// Exact makes a writer of the command pass on each byte, unless it leads to a terminal: for formats
// of Nutch, in which nothing is escaped.
func Exact(w io.Writer) {
	if e := escaperOf(w); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.exact = Terminal(e) == nil
	}
}

// Terminal returns the terminal to which a writer leads; nil if there is none.
func Terminal(w io.Writer) *os.File {
	if e := escaperOf(w); e != nil {
		w = e.W
	}
	if f, ok := w.(*os.File); ok && IsTerminal(f) {
		return f
	}
	return nil
}

// Cell returns a text as a cell of a CSV file that no spreadsheet takes for a formula.
func Cell(text string) string {
	if text != "" {
		switch text[0] {
		case '=', '+', '-', '@', '\t', '\r':
			return "'" + text
		}
	}
	return text
}
