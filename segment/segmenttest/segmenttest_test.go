package segmenttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestMemstore(t *testing.T) {
	segmenttest.Run(t, segmenttest.Harness{
		Open:  func() (segment.Store, error) { return new(memstore.Segments), nil },
		Close: func(s segment.Store) error { return s.(*memstore.Segments).Close() },
	})
}

func TestSoundEngine(t *testing.T) {
	segmenttest.Run(t, harness(fault{}))
}

func TestCheckPassesSoundEngine(t *testing.T) {
	if err := segmenttest.Check(t.Context(), harness(fault{})); err != nil {
		t.Error(err)
	}
}

func TestCheckWithoutOpen(t *testing.T) {
	if err := segmenttest.Check(t.Context(), segmenttest.Harness{}); err == nil {
		t.Error("a harness that cannot open a store was passed")
	}
}

// TestRulesFindFaults runs over stores with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	var all []kit.Mutant[segmenttest.Harness]
	for _, m := range mutants() {
		h := harness(m.fault)
		if m.hangs {
			h.Patience = 200 * time.Millisecond
		}
		all = append(all, kit.Mutant[segmenttest.Harness]{Fault: m.name, Rule: m.rule, Harness: h})
	}
	kit.Catch(t, segmenttest.Kit, all, nil)
}

func TestCheckNamesTheRule(t *testing.T) {
	err := segmenttest.Check(t.Context(), harness(fault{block: func(i int, b []byte) []byte {
		if i == 2 {
			return []byte("wrong")
		}
		return b
	}}))
	if err == nil || !strings.Contains(err.Error(), `rule "blocks are read as they were appended" is broken: Read seg/open: block 2 is "wrong", want "\xff"`) {
		t.Errorf("error is %v", err)
	}
}

func TestCheckNamesKeptBlocks(t *testing.T) {
	err := segmenttest.Check(t.Context(), harness(fault{keep: func(keep int) int { return max(keep, 0) }}))
	if err == nil || !strings.Contains(err.Error(), `rule "Append keeps the blocks it is told to" is broken: Read seg/keep-1: 0 blocks, want 5`) {
		t.Errorf("error is %v", err)
	}
}
