package dom

import (
	"bytes"
	"encoding/json"
)

// maxData limits the bytes of one block of JSON-LD.
const maxData = 1 << 20

// DecodeJSON decodes a block. Several values after each other are accepted, and control characters within
// strings, both of which occur.
func DecodeJSON(s string) (all []any) {
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
