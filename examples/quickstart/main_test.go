package main

import (
	"strings"
	"testing"
)

func TestQuickstart(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{
		"3 seeds, 3 of them new\n3 rounds, 30 pages visited: map[success:30]\n",
		"3 seeds, 0 of them new\n0 rounds, 0 pages visited: map[]\n",
	} {
		var out strings.Builder
		if err := run(t.Context(), &out, dir, nil); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}
