package crawldbtest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
	"github.com/recrawl/recrawl/internal/kit"
)

func TestSoundEngine(t *testing.T) {
	crawldbtest.Run(t, harness(nil, nil, nil))
}

func TestSoundDueStore(t *testing.T) {
	crawldbtest.Run(t, harness(func(e *engine) crawldb.Store { return newIndexed(e) }, nil, nil))
}

func TestSoundBulkStore(t *testing.T) {
	h := harness(func(e *engine) crawldb.Store { return bulky{e, soundBulk} }, nil, nil)
	crawldbtest.Part(h, "UpdateAll").Run(t)
}

// TestRulesFindFaults runs over stores with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	var all []kit.Mutant[crawldbtest.Harness]
	for _, m := range mutants() {
		h := harness(m.wrap, m.reopened, m.crashed)
		if m.hangs {
			h.Patience = 50 * time.Millisecond
		}
		all = append(all, kit.Mutant[crawldbtest.Harness]{Fault: m.fault, Rule: m.rule, Harness: h})
	}
	kit.Catch(t, crawldbtest.Kit, all, func(rule string) bool {
		return strings.HasSuffix(rule, ", by scan") || strings.HasSuffix(rule, ", one by one")
	})
}

func TestCheck(t *testing.T) {
	if err := crawldbtest.Part(harness(nil, nil, nil), "mark").Check(t.Context()); err != nil {
		t.Errorf("a sound engine: %v", err)
	}
	if err := crawldbtest.Check(t.Context(), crawldbtest.Harness{}); err == nil {
		t.Error("a harness that cannot open a store was passed")
	}
	err := crawldbtest.Check(t.Context(), harness(func(e *engine) crawldb.Store {
		return changed{e, func(d *crawldb.Datum) { d.ETag = "" }}
	}, nil, nil))
	var broken *kit.Error
	if !errors.As(err, &broken) || broken.Rule != "every field is kept" {
		t.Errorf("error is %v, want one of the rule about fields", err)
	}
	if !strings.Contains(err.Error(), `rule "every field is kept" is broken: Scan {"" ""}: "http://example.com/sample/0000": ETag is`) {
		t.Errorf("error is %q, which does not name rule, record and field", err)
	}
}
