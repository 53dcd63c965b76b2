// Package charset finds the charset that a document or its Content-Type declares: [Mark] in a byte
// order mark, [Param] in a header or pragma, [XML] in an XML declaration. It does not decide which
// of them counts; parse/htmlparse and parse/sitemap do.
package charset

import (
	"bytes"

	"golang.org/x/text/encoding/htmlindex"
)

const spaces = " \t\n\f\r"

// Mark returns the charset of a byte order mark and the length of the mark, or nothing.
func Mark(b []byte) (name string, n int) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return "utf-8", 3
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		return "utf-16be", 2
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return "utf-16le", 2
	}
	return "", 0
}

// Lookup returns the WHATWG name of an encoding, or nothing for a label unknown
// to the standard.
func Lookup(label []byte) string {
	if len(label) == 0 || len(label) > 64 {
		return ""
	}
	enc, err := htmlindex.Get(string(label))
	if err != nil {
		return ""
	}
	name, err := htmlindex.Name(enc)
	if err != nil {
		return ""
	}
	return name
}

// Param returns what follows "charset=" in a Content-Type or a pragma, by the
// lenient rules for meta elements (HTML, section 2.5.2). A comma ends it, too:
// headers that were sent twice are joined by it.
func Param(s []byte) []byte {
	const word = "charset"
	for i := 0; i+len(word) <= len(s); i++ {
		if !bytes.EqualFold(s[i:i+len(word)], []byte(word)) {
			continue
		}
		rest := bytes.TrimLeft(s[i+len(word):], spaces)
		if len(rest) == 0 || rest[0] != '=' {
			continue
		}
		rest = bytes.TrimLeft(rest[1:], spaces)
		if len(rest) == 0 {
			return nil
		}
		if rest[0] == '"' || rest[0] == '\'' {
			return quoted(rest)
		}
		if end := bytes.IndexAny(rest, ";,"+spaces); end >= 0 {
			rest = rest[:end]
		}
		return rest
	}
	return nil
}

// quoted returns what is between the quotes that s begins with.
func quoted(s []byte) []byte {
	if label, _, ok := bytes.Cut(s[1:], s[:1]); ok {
		return label
	}
	return nil
}

// XML returns the WHATWG name of the encoding in the XML declaration that b begins
// with, or nothing.
func XML(b []byte) string {
	if !bytes.HasPrefix(b, []byte("<?xml")) {
		return ""
	}
	b, _, ok := bytes.Cut(b, []byte(">"))
	if !ok {
		return ""
	}
	_, b, ok = bytes.Cut(b, []byte("encoding"))
	b = bytes.TrimLeft(b, spaces)
	if !ok || len(b) == 0 || b[0] != '=' {
		return ""
	}
	b = bytes.TrimLeft(b[1:], spaces)
	if len(b) == 0 || b[0] != '"' && b[0] != '\'' {
		return ""
	}
	return Lookup(quoted(b))
}
