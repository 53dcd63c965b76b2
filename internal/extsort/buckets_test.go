package extsort

import (
	"fmt"
	"testing"
)

// A record is found in the bucket that the splitters say, whether its key continues after
// their common prefix, ends before, or differs there.
func TestFind(t *testing.T) {
	for _, of := range [][]Pair{like(1, 300), records(1, 300), like(2, 3)} {
		h := newHeld(1 << 30)
		for _, p := range of {
			h.add(p.Key, p.Value)
		}
		b := newBuckets(temp{}, &h, 20, 1<<20)
		for i := range b.splitters[1:] {
			if compare(b.splitters[i].Pair, b.splitters[i+1].Pair) >= 0 {
				t.Fatalf("splitter %d is %q, the next %q", i, b.splitters[i].Pair, b.splitters[i+1].Pair)
			}
		}
		ask := append(append(like(3, 2000), records(3, 2000)...), of...)
		for i := range len(b.prefix) + 1 {
			ask = append(ask, Pair{Key: b.prefix[:i]}, Pair{Key: fmt.Appendf(nil, "%s\x00", b.prefix[:i])}, Pair{Key: fmt.Appendf(nil, "%s\xff", b.prefix[:i])})
		}
		for _, x := range b.splitters {
			ask = append(ask, x.Pair)
		}
		for _, p := range ask {
			want, same := 0, false
			for _, x := range b.splitters {
				if c := compare(p, x.Pair); c >= 0 {
					if same = c == 0; same {
						break
					}
					want++
				}
			}
			if got, equal := b.find(p); got != want || equal != same {
				t.Fatalf("%q is in bucket %d, %t; want %d, %t", p, got, equal, want, same)
			}
		}
	}
}
