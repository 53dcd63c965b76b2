package crawldb_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
)

// TestMetaModel sets and deletes at random and compares with a map.
func TestMetaModel(t *testing.T) {
	names := []string{"", "\x00", "\xff", "a", "aa", "b", "opic.cash", strings.Repeat("n", 200)}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var m crawldb.Meta
		model := map[string]string{}
		for step := range 100 {
			name := names[rnd.IntN(len(names))]
			before, pairs := m, maps.Clone(model)
			value := func() string { return strings.Repeat(fmt.Sprint(step, "\x00"), rnd.IntN(60)) }
			switch rnd.IntN(4) {
			case 0:
				m.Delete(name)
				delete(model, name)
			case 1: // some in ascending order, or in any, the last perhaps without a value
				some := make([]string, rnd.IntN(4))
				for i := range some {
					some[i] = names[rnd.IntN(len(names))]
				}
				if rnd.IntN(2) == 0 {
					slices.Sort(some)
				}
				var all []string
				for i, name := range some {
					all = append(all, name)
					if model[name] = ""; i < len(some)-1 || rnd.IntN(2) == 0 {
						model[name] = value()
						all = append(all, model[name])
					}
				}
				m.SetAll(all...)
			default:
				model[name] = value()
				m.Set(name, model[name])
			}
			if err := agree(m, model); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if err := agree(before, pairs); err != nil {
				t.Fatalf("seed %d, step %d: a copy changed: %v", seed, step, err)
			}
		}
		var again crawldb.Meta
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(model))) {
			again.Set(name, model[name])
		}
		if again != m {
			t.Fatalf("seed %d: metas with the same pairs are not equal", seed)
		}
	}
}

func agree(m crawldb.Meta, model map[string]string) error {
	if m.Len() != len(model) {
		return fmt.Errorf("there are %d pairs, want %d", m.Len(), len(model))
	}
	names := slices.Sorted(maps.Keys(model))
	for n, v := range m.All() {
		if n != names[0] || v != model[n] {
			return fmt.Errorf("the next pair is %q=%q, want %q=%q", n, v, names[0], model[names[0]])
		}
		if got, ok := m.Get(n); !ok || got != v {
			return fmt.Errorf("Get(%q) = %q, %v, want %q", n, got, ok, v)
		}
		names = names[1:]
	}
	if v, ok := m.Get("none"); ok {
		return fmt.Errorf("Get of no name = %q", v)
	}
	return nil
}

func TestMetaOf(t *testing.T) {
	if err := agree(crawldb.MetaOf("b", "2", "a", "1", "odd"), map[string]string{"a": "1", "b": "2", "odd": ""}); err != nil {
		t.Error(err)
	}
	// The same as one Set for each pair, in whatever order: the last counts.
	long := strings.Repeat("x", 300)
	for _, pairs := range [][]string{{"a", "1"}, {"a", "", "b", long}, {"a", "1", long, "2", "y", "3"}, {"b", "1", "a", "2"}, {"a", "1", "a", "2"}, {"", "1", "a"}, {"", "1", "", "2"}} {
		var want crawldb.Meta
		for i := 0; i+1 < len(pairs); i += 2 {
			want.Set(pairs[i], pairs[i+1])
		}
		if len(pairs)%2 != 0 {
			want.Set(pairs[len(pairs)-1], "")
		}
		if got := crawldb.MetaOf(pairs...); got != want {
			t.Errorf("%.20q: %q, want %q", pairs, got.Encoded(), want.Encoded())
		}
	}
	if (crawldb.MetaOf() != crawldb.Meta{}) {
		t.Error("no pairs are not the zero Meta")
	}
	for range crawldb.MetaOf("a", "1", "b", "2").All() {
		break
	}
}

func TestSetAllKeepsLastOfEqualNames(t *testing.T) {
	m := crawldb.MetaOf("b", "0", "d", "0")
	m.SetAll("c", "1", "a", "1", "c", "2", "b", "1", "e")
	if want := crawldb.MetaOf("a", "1", "b", "1", "c", "2", "d", "0", "e", ""); m != want {
		t.Errorf("%q, want %q", m.Encoded(), want.Encoded())
	}
	m.Merge(crawldb.MetaOf("a", "3", "f", "3"))
	if want := crawldb.MetaOf("a", "3", "b", "1", "c", "2", "d", "0", "e", "", "f", "3"); m != want {
		t.Errorf("merged: %q, want %q", m.Encoded(), want.Encoded())
	}
}

// 40,000 pairs took 37 s when each was set by itself.
func TestSetAllOfManyPairs(t *testing.T) {
	const n = 200_000
	pairs := make([]string, 0, 2*n)
	for i := range n {
		pairs = append(pairs, strconv.Itoa(i*7919%n), strconv.Itoa(i))
	}
	var m crawldb.Meta
	m.SetAll(pairs...)
	if m.Len() != n {
		t.Errorf("%d pairs, want %d", m.Len(), n)
	}
}
