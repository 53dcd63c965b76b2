package hostdbtest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hostdbtest"
	"github.com/recrawl/recrawl/internal/kit"
)

func TestSoundEngine(t *testing.T) {
	hostdbtest.Run(t, harness(nil, nil, nil))
}

// TestRulesFindFaults runs over stores with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	var all []kit.Mutant[hostdbtest.Harness]
	for _, m := range mutants() {
		h := harness(m.wrap, m.reopen, m.crash)
		if m.hangs {
			h.Patience = 50 * time.Millisecond
		}
		all = append(all, kit.Mutant[hostdbtest.Harness]{Fault: m.fault, Rule: m.rule, Harness: h})
	}
	kit.Catch(t, hostdbtest.Kit, all, nil)
}

func TestCheck(t *testing.T) {
	if err := hostdbtest.Check(t.Context(), harness(nil, nil, nil)); err != nil {
		t.Errorf("a sound engine: %v", err)
	}
	if err := hostdbtest.Check(t.Context(), hostdbtest.Harness{}); err == nil {
		t.Error("a harness that cannot open a store was passed")
	}
	err := hostdbtest.Check(t.Context(), harness(func(e *engine) hostdb.Store {
		return changed{e, func(h *hostdb.Host) { h.Backoff = 0 }}
	}, nil, nil))
	var broken *kit.Error
	if !errors.As(err, &broken) || broken.Rule != "every field is kept" {
		t.Errorf("error is %v, want one of the rule about fields", err)
	}
	if !strings.Contains(err.Error(), `rule "every field is kept" is broken: Scan: "h0000.example.com": Backoff is 0, want 3`) {
		t.Errorf("error is %q, which does not name rule, record and field", err)
	}
}
