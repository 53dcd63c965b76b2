package recrawl

import (
	"bytes"
	"testing"
)

func FuzzCutKnown(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(appendKnown(nil, "http://a.example/", known{"0123456789abcdef", true, false}))
	f.Add(appendKnown(appendKnown(nil, "http://a.example/", known{"", true, true}), "b", known{}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, block []byte) {
		var again []byte
		rest, ok := block, true
		for n := 0; len(rest) > 0; n++ {
			var url string
			var k known
			if url, k, rest, ok = cutKnown(rest); !ok {
				return
			}
			again = appendKnown(again, url, k)
			if n > len(block) {
				t.Fatal("it has no end")
			}
		}
		twice := []byte(nil)
		for rest = again; len(rest) > 0; {
			url, k, r, ok := cutKnown(rest)
			if !ok {
				t.Fatalf("%x was read as %x, which cannot be read", block, again)
			}
			twice, rest = appendKnown(twice, url, k), r
		}
		if !bytes.Equal(again, twice) {
			t.Errorf("%x, and then %x", again, twice)
		}
	})
}
