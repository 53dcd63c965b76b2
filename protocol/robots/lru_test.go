package robots

import (
	"testing"
)

func TestLRU(t *testing.T) {
	var l lru
	has := func(origins string) {
		t.Helper()
		got := ""
		for e := l.order.Front(); e != nil; e = e.Next() {
			got += e.Value.(entry).origin
		}
		if got != origins || len(l.byOrigin) != len(origins) {
			t.Fatalf("holds %q, want %q", got, origins)
		}
	}
	put := func(origin string, size int) { l.put(entry{origin: origin, size: size}, 3, 100) }
	if _, ok := l.get("a"); ok {
		t.Fatal("an empty one holds something")
	}
	put("a", 10)
	put("b", 10)
	put("c", 10)
	has("cba")
	l.get("a")
	has("acb")
	put("d", 10)
	has("dac")
	put("a", 80)
	has("adc")
	put("e", 15)
	has("ea")
	put("f", 101)
	has("")
	if l.size != 0 {
		t.Errorf("%d bytes of nothing", l.size)
	}
}
