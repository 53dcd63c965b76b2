package extsort_test

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/internal/extsort"
)

func TestPartsCompareAsTheyAre(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	part := func() string {
		b := make([]byte, rnd.IntN(4))
		for i := range b {
			b[i] = []byte{0, 1, 2, 0xff}[rnd.IntN(4)]
		}
		return string(b)
	}
	join := func(p [3]string) []byte {
		return append(extsort.AppendPart(extsort.AppendPart(nil, p[0]), []byte(p[1])), p[2]...)
	}
	for range 20_000 {
		a, b := [3]string{part(), part(), part()}, [3]string{part(), part(), part()}
		want := cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]), strings.Compare(a[2], b[2]))
		if got := bytes.Compare(join(a), join(b)); got != want {
			t.Fatalf("%q and %q compare as %d, want %d", a, b, got, want)
		}
		first, rest := extsort.CutPart(join(a))
		second, rest := extsort.CutPart(rest)
		if string(first) != a[0] || string(second) != a[1] || string(rest) != a[2] {
			t.Fatalf("%q is read as %q, %q, %q", a, first, second, rest)
		}
	}
	if part, rest := extsort.CutPart([]byte("a\x00")); rest != nil {
		t.Errorf("an unfinished part is read as %q, and more", part)
	}
}
