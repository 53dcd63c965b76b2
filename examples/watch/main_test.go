package main

import (
	"slices"
	"strings"
	"testing"
)

func TestWatch(t *testing.T) {
	const want = `2026-01-02  http://news.example.test/pages/1.html  Continue dry along 1
2026-01-03  http://news.example.test/  Home of news.example.test
2026-01-03  http://news.example.test/pages/3.html  Hurry dark loud 3
2026-01-04  http://news.example.test/pages/4.html  Bread group learn 4
2026-01-05  http://news.example.test/  Home of news.example.test
2026-01-05  http://news.example.test/pages/2.html  Column edge last 2
2026-01-07  http://news.example.test/  Home of news.example.test
2026-01-07  http://news.example.test/pages/1.html  Continue dry along 1
`
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	// Pages of one round come in the order in which they are ready.
	if !slices.Equal(sorted(out.String()), sorted(want)) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func sorted(text string) []string { return slices.Sorted(strings.Lines(text)) }
