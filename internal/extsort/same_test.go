package extsort

import (
	"slices"
	"testing"
)

// What a record has in common with the one before it in its run is what the merge goes
// by, also where a block begins, which knows nothing of the block before.
func TestWhatARecordHasInCommonWithTheLast(t *testing.T) {
	s := New(Options{MemoryBytes: 20_000, Dir: t.TempDir()})
	defer s.Close()
	fill(t, s, records(7, 3000))
	if len(s.runs) == 0 {
		t.Fatal("there is no run")
	}
	begins := 0
	for i, r := range s.runs {
		in := &source{run: r}
		var last Pair
		for n := 0; ; n++ {
			read := in.read
			ok, err := in.advance()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			want := 0 // of the key, and, if that is the same, one and of the value
			if want = shared(last.Key, in.cur.Key); want == len(last.Key) && want == len(in.cur.Key) {
				want += 1 + shared(last.Value, in.cur.Value)
			}
			if n > 0 && in.same != want {
				t.Fatalf("run %d, record %d, behind a block's begin %v: %d in common, want %d", i, n, in.read > read, in.same, want)
			}
			if n > 0 && in.read > read && want > 0 {
				begins++
			}
			last = Pair{slices.Clone(in.cur.Key), slices.Clone(in.cur.Value)}
		}
	}
	if begins == 0 {
		t.Error("no block begins with a record that has something in common with the last")
	}
}
