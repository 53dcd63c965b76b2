package dom

import (
	"bytes"
	"encoding/json"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxData limits the bytes of one block of JSON-LD.
const maxData = 1 << 20

// JSONLD returns the values of an element that is a block of JSON-LD, as encoding/json decodes them; ok is false for
// other elements. Several values after each other are accepted, and control characters within strings, both of
// which occur.
func JSONLD(n *html.Node) (all []any, ok bool) {
	if n.DataAtom != atom.Script || n.FirstChild == nil || !strings.EqualFold(strings.TrimSpace(Attr(n, "type")), "application/ld+json") {
		return nil, false
	}
	return decodeJSON(n.FirstChild.Data), true
}

func decodeJSON(s string) (all []any) {
	if len(s) > maxData {
		return nil
	}
	b := bytes.TrimSpace([]byte(s))
	b = bytes.TrimPrefix(bytes.TrimPrefix(b, []byte("<!--")), []byte("//<![CDATA["))
	for i, c := range b {
		if c < ' ' {
			b[i] = ' '
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	for {
		var v any
		if d.Decode(&v) != nil {
			return all
		}
		all = append(all, v)
	}
}
