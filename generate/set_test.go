package generate

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A set says of each URL what a map says.
func TestURLSet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var s urlSet
	if s.has("") || s.has("a") {
		t.Error("an empty set has something")
	}
	for range 3 {
		want := map[string]bool{}
		for range 5000 {
			url := fmt.Sprintf("http://example.org/%d", rnd.IntN(4000))
			if !want[url] && rnd.IntN(3) == 0 {
				s.put(url)
				if rnd.IntN(3) > 0 { // asked about it later
					want[url] = true
					continue
				}
			} else if s.has(url) != want[url] || s.add(url) == want[url] {
				t.Fatalf("%s: the set does not agree with a map that says %v", url, want[url])
			}
			if !s.has(url) {
				t.Fatalf("%s is not there", url)
			}
			want[url] = true
		}
		if len(s.urls) != len(want) || !s.add("") || s.add("") {
			t.Errorf("%d URLs, want %d", len(s.urls), len(want))
		}
		s.clear()
		for url := range want {
			if s.has(url) {
				t.Fatalf("%s is there after clear", url)
			}
		}
	}
}
