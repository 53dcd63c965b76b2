package places

import (
	"strings"
	"testing"
)

func TestPlaces(t *testing.T) {
	const a, b, c = "http://a.example/", "http://b.example/", "http://c.example/"
	p := Places{Room: 3 * (len(a) + 16), Compare: strings.Compare}
	for _, url := range []string{b, a, b, c} { // for c there is no room
		p.Add(url)
	}
	p.Sort()
	for want, url := range []string{a, b} {
		place, ok := p.Find(url)
		if !ok || place != want {
			t.Errorf("%s: %d, %t", url, place, ok)
		}
		if got, ok := p.At(uint64(place)); !ok || got != url {
			t.Errorf("at %d: %q, %t", place, got, ok)
		}
	}
	if place, ok := p.Find(c); ok || place != 2 {
		t.Errorf("%s: %d, %t", c, place, ok)
	}
	if url, ok := p.At(2); ok {
		t.Errorf("behind the last: %q", url)
	}
}
