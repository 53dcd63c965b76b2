package segmenttest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestTeeth runs the kit over stores with one fault each and demands that the
// rule that names the fault is among the rules broken.
func TestTeeth(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			h := harness(m.fault)
			if m.hangs {
				h.Patience = 200 * time.Millisecond
			}
			broken := rulesOf(segmenttest.Check(t.Context(), h))
			if !slices.Contains(broken, m.rule) {
				t.Errorf("rule %q was not broken; broken were %q", m.rule, broken)
			}
		})
	}
}

func rulesOf(err error) []string {
	var names []string
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range all.Unwrap() {
			var e *segmenttest.Error
			if errors.As(err, &e) {
				names = append(names, e.Rule)
			}
		}
	}
	return names
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

func TestCheckSaysWhatAppendWasToldToKeep(t *testing.T) {
	err := segmenttest.Check(t.Context(), harness(fault{keep: func(keep int) int { return max(keep, 0) }}))
	if err == nil || !strings.Contains(err.Error(), `rule "Append keeps the blocks it is told to" is broken: Read seg/keep-1: 0 blocks, want 5`) {
		t.Errorf("error is %v", err)
	}
}
