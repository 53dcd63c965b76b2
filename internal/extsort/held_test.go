package extsort

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// like are records that differ late, in length only, by zero bytes, or not at all.
func like(seed uint64, n int) []Pair {
	r := rand.New(rand.NewPCG(seed, 2))
	site := []byte("com,example,www)https:/a/directory/that/all/of/them/are/in/")
	out := make([]Pair, n)
	for i := range out {
		k := bytes.Clone(site[:len(site)-r.IntN(2)*r.IntN(len(site))])
		for range r.IntN(4) {
			k = append(k, byte(r.IntN(3)*127))
		}
		v := append(bytes.Clone(site[:r.IntN(len(site))]), byte(r.IntN(2)))
		out[i] = Pair{k, v}
	}
	return out
}

// Sorting by words is sorting by bytes, however often the words are divided before
// patience is lost.
func TestSortsByWordsAsByBytes(t *testing.T) {
	for _, n := range []int{0, 1, 2, few, few + 1, 100, 5000} {
		for _, left := range []int{0, 1, 3, patience(n)} {
			in := like(uint64(n), n)
			h := newHeld(1 << 30)
			for _, p := range in {
				if !h.add(p.Key, p.Value) {
					t.Fatal("there was no room")
				}
			}
			h.sortBy(h.entries, 0, false, left)
			slices.SortFunc(in, compare)
			for i, e := range h.entries {
				if !equal(h.pair(e), in[i]) {
					t.Fatalf("%d records, patience %d: record %d is %q", n, left, i, h.pair(e))
				}
			}
		}
	}
}

// What is held, with its bookkeeping, exceeds the bound by at most one record.
func TestHeldRecordsFillMemory(t *testing.T) {
	for _, memory := range []int{1, 1000, 50_000, 4 << 20} {
		h := newHeld(memory)
		most := 0
		for i, p := range records(uint64(memory), 30_000) {
			if !h.add(p.Key, p.Value) {
				h.reset()
				if !h.add(p.Key, p.Value) {
					t.Fatal("nothing is held, and yet there is no room")
				}
			}
			if sum := h.size + cap(h.entries)*entrySize; len(h.entries) > 1 && sum > memory {
				t.Fatalf("memory %d: %d after %d records", memory, sum, i)
			}
			most = max(most, len(h.entries))
		}
		if most*100 < min(memory, 2_000_000) && memory > 10_000 {
			t.Errorf("only %d records fit into %d bytes", most, memory)
		}
	}
}

// A record that no chunk has room for is held although there are as many chunks as can be
// numbered.
func TestHoldsLargeRecordAfterManyChunks(t *testing.T) {
	h := newHeld(1 << 30)
	h.chunk = 256
	for h.add([]byte("key"), make([]byte, 200)) {
	}
	if len(h.chunks) != maxChunks {
		t.Fatalf("%d chunks", len(h.chunks))
	}
	h.reset()
	in := []Pair{{[]byte("b"), bytes.Repeat([]byte{'x'}, 300)}, {[]byte("a"), []byte("y")}}
	for _, p := range in {
		if !h.add(p.Key, p.Value) {
			t.Fatal("there was no room")
		}
	}
	for i, e := range h.entries {
		if p := h.pair(e); !equal(p, in[i]) {
			t.Errorf("record %d is %.20q, %.20q", i, p.Key, p.Value)
		}
	}
}

func BenchmarkSortInMemory(b *testing.B) {
	const n = 1 << 18
	r := rand.New(rand.NewPCG(1, 1))
	h := newHeld(1 << 30)
	for range n {
		h.add(fmt.Appendf(nil, "com,example%d,www)https:/articles/%d/index.html", r.IntN(500), r.IntN(n)), []byte("value"))
	}
	drawn := slices.Clone(h.entries)
	for b.Loop() {
		copy(h.entries, drawn)
		h.sort()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
