package places

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// plain is the key of URLs that are in the order of their bytes.
func plain(dst []byte, url string) []byte { return append(dst, url...) }

func TestPlaces(t *testing.T) {
	const a, b, c = "http://a.example/", "http://b.example/", "http://c.example/"
	p := Places{Room: 3 * (len(a) + 24), AppendKey: plain}
	for _, url := range []string{b, a, b, c} { // for c there is no room
		p.Add(url)
	}
	if err := p.Sort(); err != nil {
		t.Fatal(err)
	}
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

// Pages are found in any order, whatever was looked for before.
func TestFindsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	p := Places{Room: 1 << 20, AppendKey: plain}
	var added []string
	for range 200 {
		url := fmt.Sprintf("http://%03d.example/", 2*r.IntN(150))
		added = append(added, url)
		p.Add(url)
	}
	if err := p.Sort(); err != nil {
		t.Fatal(err)
	}
	for _, url := range slices.Concat(added, added[50:], added[:20], []string{"", "http://001.example/", "x"}, added) {
		place, ok := p.Find(url)
		if want := slices.Contains(added, url); ok != want {
			t.Fatalf("%s: %t", url, ok)
		}
		if got, _ := p.At(uint64(place)); ok && got != url {
			t.Fatalf("%s is at the place of %s", url, got)
		}
		if before, _ := p.At(uint64(place) - 1); !ok && place > 0 && before >= url {
			t.Fatalf("%s would stand behind %s", url, before)
		}
		if r.IntN(10) == 0 {
			p.Find(added[r.IntN(len(added))])
		}
	}
}
