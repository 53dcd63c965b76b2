package htmlparse

import (
	"bytes"

	"golang.org/x/net/html"
)

const replacement = "\uFFFD"

// readText returns the text of the token with references decoded. It is valid
// until the next token; line ends are as sent.
func (z *tokens) readText() []byte {
	t := z.text
	refs := !z.verbatim && bytes.IndexByte(t, '&') >= 0
	nuls := z.replace && bytes.IndexByte(t, 0) >= 0
	if !refs && !nuls {
		return t
	}
	start := len(z.decoded)
	for i := 0; i < len(t); {
		switch c := t[i]; {
		case c == '&' && refs:
			i = z.charRef(t, i, false)
		case c == 0 && nuls:
			z.decoded = append(z.decoded, replacement...)
			i++
		default:
			from := i
			for i++; i < len(t) && t[i] != '&' && t[i] != 0; i++ {
			}
			z.decoded = append(z.decoded, t[from:i]...)
		}
	}
	return z.decoded[start:len(z.decoded):len(z.decoded)]
}

// value returns a value with references decoded. It is valid until the next
// token.
func (z *tokens) value(v []byte) []byte {
	plain := true
	for _, c := range v {
		if tagClasses[c]&decoded != 0 {
			plain = false
			break
		}
	}
	if plain {
		return v
	}
	start := len(z.decoded)
	for i := 0; i < len(v); {
		switch v[i] {
		case '&':
			i = z.charRef(v, i, true)
		case 0:
			z.decoded = append(z.decoded, replacement...)
			i++
		case '\r':
			z.decoded = append(z.decoded, '\n')
			if i++; i < len(v) && v[i] == '\n' {
				i++
			}
		default:
			from := i
			for i++; i < len(v) && tagClasses[v[i]]&decoded == 0; i++ {
			}
			z.decoded = append(z.decoded, v[from:i]...)
		}
	}
	return z.decoded[start:len(z.decoded):len(z.decoded)]
}

// charRef decodes the character reference that begins at i, if there is one, and
// returns where it ends. In a value a name must be complete, since many authors write
// a bare ampersand between the parameters of a URL.
func (z *tokens) charRef(s []byte, i int, inValue bool) int {
	end := i + 1
	if end < len(s) && s[end] == '#' {
		end++
	}
	for end < len(s) && (isLetter(s[end]) || '0' <= s[end] && s[end] <= '9') {
		end++
	}
	whole := end < len(s) && s[end] == ';'
	if whole {
		end++
	}
	ref := s[i:end]
	if len(ref) == 1 {
		z.decoded = append(z.decoded, '&')
		return end
	}
	if inValue && ref[1] != '#' {
		if !whole && end < len(s) && s[end] == '=' {
			z.decoded = append(z.decoded, ref...)
			return end
		}
		char := html.UnescapeString(string(ref))
		// It may have replaced only the beginning of the name, which counts in text
		// alone.
		last := char[len(char)-1]
		rest := isLetter(last) || '0' <= last && last <= '9'
		if whole {
			rest = last == ';' && string(ref) != "&semi;"
		}
		if rest {
			char = string(ref)
		}
		z.decoded = append(z.decoded, char...)
		return end
	}
	z.decoded = append(z.decoded, html.UnescapeString(string(ref))...)
	return end
}
