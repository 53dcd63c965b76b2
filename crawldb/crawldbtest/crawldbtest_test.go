package crawldbtest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
)

func TestSoundEngine(t *testing.T) {
	crawldbtest.Run(t, harness(nil, nil, nil))
}

func TestSoundDueStore(t *testing.T) {
	crawldbtest.Run(t, harness(func(e *engine) crawldb.Store { return newIndexed(e) }, nil, nil))
}

func TestSoundBulkStore(t *testing.T) {
	for _, name := range crawldbtest.RuleNames() {
		if strings.Contains(name, "UpdateAll") {
			if err := crawldbtest.CheckRule(t.Context(), harness(func(e *engine) crawldb.Store { return bulky{e, soundBulk} }, nil, nil), name); err != nil {
				t.Errorf("rule %q: %v", name, err)
			}
		}
	}
}

// TestTeeth runs over stores with one fault each the rule that must find it.
func TestTeeth(t *testing.T) {
	caught := map[string]bool{}
	for _, m := range mutants() {
		caught[m.rule] = true
		t.Run(m.fault, func(t *testing.T) {
			h := harness(m.wrap, m.reopened, m.crashed)
			if m.hangs {
				h.Patience = 50 * time.Millisecond
			}
			if !slices.Contains(crawldbtest.RuleNames(), m.rule) {
				t.Fatalf("there is no rule %q", m.rule)
			}
			err := crawldbtest.CheckRule(t.Context(), h, m.rule)
			if err == nil {
				t.Errorf("rule %q was not broken", m.rule)
			}
			t.Log(err)
		})
	}
	for _, name := range crawldbtest.RuleNames() {
		if !caught[name] && !strings.HasSuffix(name, ", by scan") && !strings.HasSuffix(name, ", one by one") {
			t.Errorf("no mutant breaks rule %q: has it teeth?", name)
		}
	}
}

func TestCheck(t *testing.T) {
	if err := crawldbtest.Check(t.Context(), harness(nil, nil, nil)); err != nil {
		t.Errorf("a sound engine: %v", err)
	}
	if err := crawldbtest.Check(t.Context(), crawldbtest.Harness{}); err == nil {
		t.Error("a harness that cannot open a store was passed")
	}
	err := crawldbtest.Check(t.Context(), harness(func(e *engine) crawldb.Store {
		return changed{e, func(d *crawldb.Datum) { d.ETag = "" }}
	}, nil, nil))
	var broken *crawldbtest.Error
	if !errors.As(err, &broken) || broken.Rule != "every field is kept" {
		t.Errorf("error is %v, want one of the rule about fields", err)
	}
	if !strings.Contains(err.Error(), `rule "every field is kept" is broken: Scan {"" ""}: "http://example.com/sample/0000": ETag is`) {
		t.Errorf("error is %q, which does not name rule, record and field", err)
	}
}
