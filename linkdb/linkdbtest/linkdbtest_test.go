package linkdbtest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/linkdb/linkdbtest"
)

func TestSoundEngine(t *testing.T) {
	linkdbtest.Run(t, harness(nil, nil, nil))
}

// TestRulesFindFaults runs over stores with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	var all []kit.Mutant[linkdbtest.Harness]
	for _, m := range mutants() {
		h := harness(m.wrap, m.reopen, m.crash)
		if m.hangs {
			h.Patience = 50 * time.Millisecond
		}
		all = append(all, kit.Mutant[linkdbtest.Harness]{Fault: m.fault, Rule: m.rule, Harness: h})
	}
	kit.Catch(t, linkdbtest.Kit, all, nil)
}

func TestCheck(t *testing.T) {
	if err := linkdbtest.Check(t.Context(), harness(nil, nil, nil)); err != nil {
		t.Errorf("a sound engine: %v", err)
	}
	if err := linkdbtest.Check(t.Context(), linkdbtest.Harness{}); err == nil {
		t.Error("a harness that cannot open a store was passed")
	}
	err := linkdbtest.Check(t.Context(), harness(func(e *engine) linkdb.Store {
		return given{e, func(l *linkdb.Inlink) { l.Anchor = "" }}
	}, nil, nil))
	var broken *kit.Error
	if !errors.As(err, &broken) || broken.Rule != "any string can be a URL or an anchor" {
		t.Errorf("error is %v, want one of the rule about strings", err)
	}
	if !strings.Contains(err.Error(), `rule "inlinks are distinct and in order" is broken: Scan {"" ""}: "http://example.com/": inlink 0 is`) {
		t.Errorf("error is %q, which does not name rule, page and inlink", err)
	}
}
