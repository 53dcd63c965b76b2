package memstore

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var tab table[int]
		model := map[string]int{}
		for step := range 20_000 {
			key := string([]byte{byte('a' + rnd.IntN(26)), byte(rnd.IntN(256)), byte(rnd.IntN(4))})
			switch op := rnd.IntN(10); {
			case op < 5+int(seed%3):
				tab.set(key, step)
				model[key] = step
			case op < 9:
				tab.delete(key)
				delete(model, key)
			default:
				got, ok := tab.get(key)
				if want, there := model[key]; got != want || ok != there {
					t.Fatalf("seed %d, step %d: get %q = %d, %v; want %d, %v", seed, step, key, got, ok, want, there)
				}
			}
		}
		keys := slices.Sorted(maps.Keys(model))
		for range 100 {
			from, to := string([]byte{byte('a' + rnd.IntN(26))}), string([]byte{byte('a' + rnd.IntN(27))})
			var want []string
			for _, k := range keys {
				if k >= from && k < to {
					want = append(want, k)
				}
			}
			var got []string
			for _, e := range tab.page(nil, from, to, len(model)+1) {
				got = append(got, e.key)
				if e.val != model[e.key] {
					t.Fatalf("seed %d: %q has %d, want %d", seed, e.key, e.val, model[e.key])
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: page [%q, %q) = %q, want %q", seed, from, to, got, want)
			}
		}
		for _, k := range keys {
			tab.delete(k)
		}
		if len(tab.chunks) != 0 {
			t.Fatalf("seed %d: %d chunks are left of an empty table", seed, len(tab.chunks))
		}
	}
}
