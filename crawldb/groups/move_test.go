package groups_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/recrawl/recrawl/crawldb/groups"
)

// TestMovesKeepEachSlotInOneGroup splits and merges at random.
func TestMovesKeepEachSlotInOneGroup(t *testing.T) {
	e, _, _ := engine(t, 3)
	rnd := rand.New(rand.NewPCG(1, 1))
	splits, merges := 0, 0
	for range 200 {
		table, err := e.Table(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		g := table.Groups[rnd.IntN(len(table.Groups))]
		if rnd.IntN(2) == 0 {
			if _, err = groups.Split(t.Context(), e, g.ID); err == nil {
				splits++
			}
		} else {
			to := table.Groups[rnd.IntN(len(table.Groups))]
			if err = groups.Merge(t.Context(), e, g.ID, to.ID); err == nil {
				merges++
			}
		}
		if err != nil {
			continue
		}
		moving, err := e.Table(t.Context())
		if err != nil || moving.Moving == nil {
			t.Fatalf("no move is under way: %+v, %v", moving, err)
		}
		if _, err := groups.Split(t.Context(), e, g.ID); !errors.Is(err, groups.ErrTaken) {
			t.Errorf("a second move begins: %v", err)
		}
		next := moving.Moved()
		for s := moving.Moving.First; s < moving.Moving.End; s++ {
			if moving.OfSlot(s) != moving.Moving.From || next.OfSlot(s) != moving.Moving.To {
				t.Fatalf("slot %d went from group %d to %d in %+v", s, moving.OfSlot(s), next.OfSlot(s), moving.Moving)
			}
		}
		if err := e.SetTable(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	if splits < 10 || merges < 10 {
		t.Errorf("%d splits and %d merges", splits, merges)
	}
	if err := groups.Merge(t.Context(), e, 0, 1000); !errors.Is(err, groups.ErrNoGroup) {
		t.Errorf("merge with a group that is not there: %v", err)
	}
}
