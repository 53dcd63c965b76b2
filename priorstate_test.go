package recrawl

import (
	"bytes"
	"github.com/recrawl/recrawl/crawldb"
	"testing"
)

func FuzzCutPriorState(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(appendPriorState(nil, "http://a.example/", priorState{signature: "0123456789abcdef", signed: true, status: crawldb.Gone, visited: 1 << 40}))
	f.Add(appendPriorState(appendPriorState(nil, "http://a.example/", priorState{signed: true, sitemap: true}), "b", priorState{}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, block []byte) {
		var again []byte
		rest, ok := block, true
		for n := 0; len(rest) > 0; n++ {
			var url string
			var k priorState
			if url, k, rest, ok = cutPriorState(rest); !ok {
				return
			}
			again = appendPriorState(again, url, k)
			if n > len(block) {
				t.Fatal("it has no end")
			}
		}
		twice := []byte(nil)
		for rest = again; len(rest) > 0; {
			url, k, r, ok := cutPriorState(rest)
			if !ok {
				t.Fatalf("%x was read as %x, which cannot be read", block, again)
			}
			twice, rest = appendPriorState(twice, url, k), r
		}
		if !bytes.Equal(again, twice) {
			t.Errorf("%x, and then %x", again, twice)
		}
	})
}
