package main

import (
	"strings"
	"testing"
)

func TestStages(t *testing.T) {
	const want = `inject: 2 new
generate 2, fetch map[success:2], invert 12 links to 12 pages
generate 12, fetch map[success:12], invert 57 links to 16 pages
index: 14 documents from 2 segments
`
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
