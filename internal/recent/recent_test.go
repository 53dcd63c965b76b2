package recent

import (
	"strconv"
	"testing"
)

func TestMapKeepsEntriesInUse(t *testing.T) {
	m := Map[int]{Max: 10}
	m.Put("used", -1)
	for i := range 100 {
		m.Put(strconv.Itoa(i), i)
		if v, ok := m.Get("used"); v != -1 || !ok {
			t.Fatalf("after %d others: %d, %v", i, v, ok)
		}
		for j := max(i-3, 0); j <= i; j++ { // and the last four of the others
			if v, ok := m.Get(strconv.Itoa(j)); v != j || !ok {
				t.Fatalf("%d of %d: %d, %v", j, i, v, ok)
			}
		}
		if m.Len() > 10 {
			t.Fatalf("%d entries", m.Len())
		}
	}
	if _, ok := m.Get("1"); ok {
		t.Error("an old entry is still there")
	}
	m.Put("used", -2)
	if v, _ := m.Get("used"); v != -2 {
		t.Error("an entry was not replaced")
	}
	if m.Delete("used"); m.Len() > 9 {
		t.Errorf("%d entries after a deletion", m.Len())
	}
	if _, ok := m.Get("used"); ok {
		t.Error("a deleted entry is still there")
	}
}
