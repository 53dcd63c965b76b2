package dom

import (
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/recrawl/recrawl/page"
)

// Decode returns a body in UTF-8: as its byte order mark, its Content-Type or its first 1,024 bytes say; else
// as it is if it is UTF-8, else from windows-1252.
func Decode(c *page.Content) []byte {
	enc, name, certain := charset.DetermineEncoding(c.Body, c.Type)
	if name == "utf-8" || !certain && utf8.Valid(c.Body) {
		return c.Body
	}
	b, err := enc.NewDecoder().Bytes(c.Body)
	if err != nil {
		return c.Body
	}
	return b
}
