package linklayers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// put writes a link to each of some pages into a layer.
func put(t *testing.T, db *pebble.DB, l codec.Layer, from string, pages ...string) {
	t.Helper()
	var encode codec.LinkEncoder
	for _, page := range pages {
		key := l.AppendKey(nil, crawldb.Key(page))
		if err := db.Set(key, encode.Encode(page, []linkdb.Inlink{{From: from}}, 0), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
}

// What several layers have for a page is read as one, in the order of pages, from all layers but the
// remainders of those that were joined.
func TestReadJoinsLayers(t *testing.T) {
	db, err := pebble.Open("db", &pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const a, b, c = "http://a.example/", "http://b.example/", "http://c.example/"
	put(t, db, codec.Layer{}, "http://0.example/", b)
	put(t, db, codec.Layer{From: 1, To: 1}, "http://1.example/", a, b, c) // a remainder
	put(t, db, codec.Layer{From: 1, To: 2}, "http://1.example/", a, b, c)
	put(t, db, codec.Layer{From: 3, To: 3}, "http://3.example/", b, c)
	layers, remainders, err := Find(db)
	if want := []codec.Layer{{}, {From: 1, To: 2}, {From: 3, To: 3}}; err != nil || !slices.Equal(layers, want) {
		t.Fatalf("layers %v, want %v: %v", layers, want, err)
	}
	if want := []codec.Layer{{From: 1, To: 1}}; !slices.Equal(remainders, want) {
		t.Errorf("remainders %v, want %v", remainders, want)
	}
	links := func(page string, value []byte) (from []string) {
		all, err := codec.DecodeInlinks(page, value)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			from = append(from, l.From[len("http://"):][:1])
		}
		return from
	}
	var got []string
	r := Read(db, layers, "", "")
	for key, value, ok := r.Next(); ok; key, value, ok = r.Next() {
		page := crawldb.URLOf(string(key))
		got = append(got, fmt.Sprint(page, links(page, value)))
		one, err := Value(db, layers, string(key))
		if err != nil || !slices.Equal(links(page, one), links(page, value)) {
			t.Errorf("%s has %v by itself, %v", page, links(page, one), err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if want := []string{a + "[1]", b + "[0 1 3]", c + "[1 3]"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r = Read(db, layers, crawldb.Key(b), crawldb.Key(c))
	if key, _, ok := r.Next(); !ok || crawldb.URLOf(string(key)) != b {
		t.Errorf("a range begins with %q", key)
	}
	if _, _, ok := r.Next(); ok {
		t.Error("a range does not end")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
