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

type stores struct{ *kit.Stores[*store] }

type rule = kit.Rule[stores]

// harness returns a harness whose stores are appended to all.
func harness(all *[]*store) kit.Harness[*store] {
	open := func(name string) (*store, error) {
		s := &store{name: name}
		*all = append(*all, s)
		return s, nil
	}
	return kit.Harness[*store]{
		Open: func() (*store, error) { return open("new") },
		Close: func(s *store) error {
			s.events = append(s.events, "closed")
			return nil
		},
		Reopen: func(*store) (*store, error) { return open("reopened") },
		Crash:  func(*store) (*store, error) { return open("crashed") },
	}
}

func kitOf(h kit.Harness[*store], rules ...rule) kit.Kit[stores] {
	return kit.Kit[stores]{Rules: rules, Start: func(c *kit.Check) stores { return stores{kit.NewStores(c, h)} }}
}

// Each store is closed once, unless it crashed, also if the rule is broken.
func TestStoresAreClosedOnce(t *testing.T) {
	var all []*store
	k := kitOf(harness(&all), rule{Name: "one store is four", Check: func(c stores) {
		c.Store()
		s := c.Reopen(c.Store())
		s = c.Crash(s)
		c.Close(s)
		c.Failf("no")
	}})
	err := k.Check(t.Context())
	var broken *kit.Error
	if !errors.As(err, &broken) || broken.Rule != "one store is four" || err.Error() != `rule "one store is four" is broken: no` {
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
		check func(stores)
		want  string
	}{
		{"nothing", func(stores) {}, ""},
		{"no error", func(c stores) { c.Must(nil, "Get") }, ""},
		{"an error", func(c stores) { c.Must(no, "Get %d", 1) }, "Get 1: no"},
		{"the error", func(c stores) { c.Is(fmt.Errorf("not: %w", no), no, "Get") }, ""},
		{"another error", func(c stores) { c.Is(errors.ErrUnsupported, no, "Get") }, `Get: error is "unsupported operation", want one that is "no"`},
		{"none", func(c stores) { c.Is(nil, no, "Get") }, `Get: error is nil, want one that is "no"`},
		{"after a reopening", func(c stores) {
			c.Prefix = "step 3: "
			c.Twice(c.Store(), func(s *store) {
				if s.name == "reopened" {
					c.Failf("%s", s.name)
				}
			})
		}, "step 3: after Reopen: reopened"},
		{"in another goroutine", func(c stores) { c.Within("Get", func() { c.Failf("no") }) }, "no"},
		{"an error of a cleanup", func(c stores) { c.Cleanup(func() error { return no }) }, "no"},
	} {
		var all []*store
		got := ""
		if err := kitOf(harness(&all), rule{Name: "rule", Check: tt.check}).Check(t.Context()); err != nil {
			got = strings.TrimPrefix(err.Error(), `rule "rule" is broken: `)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A call that hangs breaks its rule, and its store is left as it is.
func TestHangingCallBreaksItsRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*store
		end := make(chan bool)
		began := time.Now()
		err := kitOf(harness(&all), rule{Name: "rule", Check: func(c stores) {
			c.Store()
			c.Within("Get", func() { <-end })
		}}).Check(t.Context())
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
func TestRulesOfMissingFieldsAreSkipped(t *testing.T) {
	var all []*store
	h := harness(&all)
	rules := []rule{
		{Name: "reopens", Check: func(c stores) { c.Failf("%s", c.Reopen(c.Store()).name) }},
		{Name: "crashes", Check: func(c stores) { c.Failf("%s", c.Crash(c.Store()).name) }},
		{Name: "its own", Check: func(c stores) { c.Need(h.Close != nil, "Harness.Close is nil"); c.Failf("no") }},
	}
	if err := kitOf(h, rules...).Check(t.Context()); strings.Count(fmt.Sprint(err), "is broken") != 3 {
		t.Errorf("error is %v, want three", err)
	}
	h.Reopen, h.Crash, h.Close = nil, nil, nil
	if err := kitOf(h, rules...).Check(t.Context()); err != nil {
		t.Error(err)
	}
	kitOf(h, rules...).Run(t)
	if h.Open = nil; kitOf(h, rules[2]).Check(t.Context()) == nil {
		t.Error("a harness that cannot open a store was passed")
	}
}

// Close may fail. A panic of a store breaks the rule, and the store is left as it is.
func TestFailuresOfStores(t *testing.T) {
	var all []*store
	h := harness(&all)
	h.Close = func(*store) error { return context.Canceled }
	if err := kitOf(h, rule{Name: "rule", Check: func(c stores) { c.Store() }}).Check(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	err := kitOf(h, rule{Name: "rule", Check: func(c stores) { c.Store(); panic("of the store") }}).Check(t.Context())
	if err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "panic: of the store") {
		t.Errorf("error is %v", err)
	}
}
