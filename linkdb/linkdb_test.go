package linkdb_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/linkdb"
)

func TestCompareInlinks(t *testing.T) {
	// In order: the key of the page decides, then the anchor.
	all := []linkdb.Inlink{
		{From: "http://example.com/", Anchor: ""},
		{From: "http://example.com/", Anchor: "a"},
		{From: "http://example.com/", Anchor: "a\x00"},
		{From: "http://example.com/", Anchor: "\xff"},
		{From: "http://z.example.com/", Anchor: ""},
		{From: "http://a.example.org/", Anchor: ""},
	}
	for i, a := range all {
		for j, b := range all {
			if got, want := linkdb.CompareInlinks(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("CompareInlinks(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestUnion(t *testing.T) {
	// Each letter is a link from a page of that name.
	links := func(names string) []linkdb.Inlink {
		var all []linkdb.Inlink
		for _, name := range strings.Split(names, "") {
			all = append(all, linkdb.Inlink{From: "http://" + name + "/"})
		}
		return all
	}
	for _, test := range []struct {
		a, b  string
		limit int
		want  string
	}{
		{"", "", 0, ""},
		{"", "", 3, ""},
		{"a", "", 0, "a"},
		{"", "a", 0, "a"},
		{"a", "a", 0, "a"},
		{"cba", "abd", 0, "abcd"},
		{"aabb", "bbcc", 0, "abc"},
		{"cba", "abd", 2, "ab"},
		{"cba", "abd", 4, "abcd"},
		{"cba", "abd", 5, "abcd"},
		{"bc", "a", 1, "a"},
		{"cba", "abd", -1, "abcd"},
	} {
		a, b := links(test.a), links(test.b)
		got := linkdb.Union(a, b, test.limit)
		if !slices.Equal(got, links(test.want)) {
			t.Errorf("Union(%s, %s, %d) = %v, want %s", test.a, test.b, test.limit, got, test.want)
		}
		if !slices.Equal(a, links(test.a)) || !slices.Equal(b, links(test.b)) {
			t.Errorf("Union(%s, %s, %d) changed what it was given", test.a, test.b, test.limit)
		}
		for i := range got {
			got[i].From = "spoiled"
		}
		if !slices.Equal(a, links(test.a)) || !slices.Equal(b, links(test.b)) {
			t.Errorf("Union(%s, %s, %d) shares memory with what it was given", test.a, test.b, test.limit)
		}
	}
}

// TestUnionLaws holds Union to the laws that make merging safe to repeat and to
// do in any order.
func TestUnionLaws(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		random := func() []linkdb.Inlink {
			all := make([]linkdb.Inlink, rnd.IntN(8))
			for i := range all {
				all[i] = linkdb.Inlink{From: "http://" + string(rune('a'+rnd.IntN(5))) + "/", Anchor: string(rune('a' + rnd.IntN(2)))}
			}
			return all
		}
		a, b, c := random(), random(), random()
		for _, limit := range []int{0, 1, 2, 3, 8, math.MaxInt} {
			union := func(a, b []linkdb.Inlink) []linkdb.Inlink { return linkdb.Union(a, b, limit) }
			ab := union(a, b)
			for law, other := range map[string][]linkdb.Inlink{
				"a ∪ b = b ∪ a":       union(b, a),
				"a ∪ b = (a ∪ b) ∪ b": union(ab, b),
				"a ∪ b = a ∪ (a ∪ b)": union(a, ab),
				"a ∪ b = (a ∪ b) ∪ ∅": union(ab, nil),
			} {
				if !slices.Equal(ab, other) {
					t.Errorf("seed %d, limit %d: not %s", seed, limit, law)
				}
			}
			if !slices.Equal(union(ab, c), union(a, union(b, c))) {
				t.Errorf("seed %d, limit %d: not (a ∪ b) ∪ c = a ∪ (b ∪ c)", seed, limit)
			}
			if limit > 0 && len(ab) > limit || !slices.IsSortedFunc(ab, linkdb.CompareInlinks) || len(slices.Compact(slices.Clone(ab))) != len(ab) {
				t.Errorf("seed %d, limit %d: %v is too long, out of order or not distinct", seed, limit, ab)
			}
		}
	}
}

func TestAnchors(t *testing.T) {
	links := []linkdb.Inlink{
		{From: "http://a.example/1", Anchor: "text1"},
		{From: "http://a.example/2", Anchor: "text1"},
		{From: "http://b.example/", Anchor: ""},
		{From: "http://b.example/", Anchor: "text2"},
		{From: "http://www.b.example/", Anchor: "text2"},
	}
	if got := linkdb.Anchors(links, false); !slices.Equal(got, []string{"text1", "text2", "text2"}) {
		t.Errorf("by host: %q", got)
	}
	if got := linkdb.Anchors(links, true); !slices.Equal(got, []string{"text1", "text2"}) {
		t.Errorf("distinct: %q", got)
	}
}
