package codec

import (
	"bytes"
	"testing"
)

// A key of a layer divides into the layer and the page, and layers do not overlap.
func TestLayerKeys(t *testing.T) {
	layers := []Layer{{From: 0, To: 0}, {From: 1, To: 1}, {From: 1, To: 0xff}, {From: 0xffff_fffe, To: 0xffff_ffff}, {From: 0, To: 0xffff_ffff}, {From: 0xffff_ffff, To: 0xffff_ffff}}
	for _, l := range layers {
		key := l.AppendKey(nil, "page")
		got, page, ok := SplitLinkKey(key)
		if !ok || got != l || string(page) != "page" {
			t.Errorf("%+v reads as %+v, %q, %t", l, got, page, ok)
		}
		if end := l.End(); bytes.Compare(key, end) >= 0 {
			t.Errorf("%+v ends at %q", l, end)
		}
		for _, other := range layers {
			if k := other.AppendKey(nil, ""); other != l && bytes.Compare(l.AppendKey(nil, ""), k) <= 0 && bytes.Compare(k, l.End()) < 0 {
				t.Errorf("%+v lies within %+v", other, l)
			}
		}
	}
	for _, key := range []string{"", "c\x00\x00\x00\x01\x00\x00\x00\x01a", "i", "i\x00\x00\x00\x01\x00\x00\x00", "i\x00\x00\x00\x00\x00\x00\x00\x00a", "i\x00\x00\x00\x01\x00\x00\x00\x02a"} {
		if l, _, ok := SplitLinkKey([]byte(key)); ok {
			t.Errorf("%q reads as %+v", key, l)
		}
	}
}
