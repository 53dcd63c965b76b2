package kit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
)

// store notes what is done to it.
type store struct {
	name   string
	events []string
}

type check struct{ *kit.Check[*store] }

const needsOwn = kit.NeedsOwn

func small(all *[]*store, rules ...kit.Rule[check]) kit.Kit[*store, check] {
	open := func(name string) (*store, error) {
		s := &store{name: name}
		*all = append(*all, s)
		return s, nil
	}
	return kit.Kit[*store, check]{
		Harness: kit.Harness[*store]{
			Open: func() (*store, error) { return open("new") },
			Close: func(s *store) error {
				s.events = append(s.events, "closed")
				return nil
			},
			Reopen: func(*store) (*store, error) { return open("reopened") },
			Crash:  func(*store) (*store, error) { return open("crashed") },
		},
		Rules: rules,
		With:  func(c *kit.Check[*store]) check { return check{c} },
	}
}

func told(rule string, err error) error { return fmt.Errorf("%s: %w", rule, err) }

// Each store is closed once, unless it crashed, whatever the result of the rule.
func TestStoresAreClosedOnce(t *testing.T) {
	var all []*store
	k := small(&all, kit.Rule[check]{Name: "broken", Check: func(c check) {
		c.Store()
		s := c.Reopen(c.Store())
		s = c.Crash(s)
		c.Close(s)
		c.Failf("no")
	}})
	if err := k.Check(t.Context(), told); err == nil || err.Error() != "broken: no" {
		t.Errorf("error is %v", err)
	}
	var got []string
	for _, s := range all {
		got = append(got, s.name+" "+strings.Join(s.events, " "))
	}
	want := []string{"new closed", "new closed", "reopened ", "crashed closed"}
	if !slices.Equal(got, want) {
		t.Errorf("stores: %q, want %q", got, want)
	}
}

// A failed demand ends a rule, and is reported.
func TestDemands(t *testing.T) {
	no := errors.New("no")
	for _, tt := range []struct {
		name  string
		check func(check)
		want  string
	}{
		{"nothing", func(check) {}, ""},
		{"no error", func(c check) { c.Must(nil, "Get") }, ""},
		{"an error", func(c check) { c.Must(no, "Get %d", 1) }, "Get 1: no"},
		{"the error", func(c check) { c.Is(fmt.Errorf("not: %w", no), no, "Get") }, ""},
		{"another error", func(c check) { c.Is(errors.ErrUnsupported, no, "Get") }, `Get: error is "unsupported operation", want one that is "no"`},
		{"none", func(c check) { c.Is(nil, no, "Get") }, `Get: error is nil, want one that is "no"`},
		{"after a reopening", func(c check) {
			c.Twice(c.Store(), func(s *store) {
				if s.name == "reopened" {
					c.Failf("%s", s.name)
				}
			})
		}, "after Reopen: reopened"},
		{"in another goroutine", func(c check) { c.Within("Get", func() { c.Failf("no") }) }, "no"},
	} {
		var all []*store
		err := small(&all, kit.Rule[check]{Name: "rule", Check: tt.check}).Only(t.Context(), "rule")
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A call that hangs breaks its rule, and its store is left as it is.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*store
		end := make(chan bool)
		began := time.Now()
		err := small(&all, kit.Rule[check]{Name: "rule", Check: func(c check) {
			c.Store()
			c.Within("Get", func() { <-end })
		}}).Only(t.Context(), "rule")
		if err == nil || !strings.Contains(err.Error(), "Get did not return within 30s") || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if len(all[0].events) > 0 {
			t.Errorf("the store is %q", all[0].events)
		}
		close(end)
	})
}

// Rules that a harness cannot test are skipped; a harness without Open is an error.
func TestNeeds(t *testing.T) {
	var all []*store
	bad := func(c check) { c.Failf("no") }
	k := small(&all,
		kit.Rule[check]{Name: "reopens", Needs: kit.NeedsReopen, Check: bad},
		kit.Rule[check]{Name: "crashes", Needs: kit.NeedsCrash, Check: bad},
		kit.Rule[check]{Name: "its own", Needs: needsOwn, Check: bad})
	if err := k.Check(t.Context(), told); strings.Count(fmt.Sprint(err), "no") != 3 {
		t.Errorf("error is %v, want three", err)
	}
	k.Harness.Reopen, k.Harness.Crash = nil, nil
	k.Lacks = func(n kit.Needs) string {
		if n&needsOwn != 0 {
			return "Harness.Own is nil"
		}
		return ""
	}
	if err := k.Check(t.Context(), told); err != nil {
		t.Error(err)
	}
	if err := k.Only(t.Context(), "gone"); err == nil {
		t.Error("a rule that is not there was passed")
	}
	if k.Harness.Open = nil; k.Only(t.Context(), "its own") == nil {
		t.Error("a harness that cannot open a store was passed")
	}
}

// Close may fail, and what a store panics with is not what a rule demands.
func TestFailures(t *testing.T) {
	var all []*store
	k := small(&all, kit.Rule[check]{Name: "rule", Check: func(c check) { c.Store() }})
	k.Harness.Close = func(*store) error { return context.Canceled }
	if err := k.Check(t.Context(), told); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	k = small(&all, kit.Rule[check]{Name: "rule", Check: func(check) { panic("of the store") }})
	defer func() {
		if p := recover(); p != "of the store" {
			t.Errorf("the panic is %v", p)
		}
	}()
	k.Check(t.Context(), told)
}
