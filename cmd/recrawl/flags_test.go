package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/nutchconf"
)

// Every flag that the table of Nutch's properties names is one of that verb.
func TestFlagsOfProperties(t *testing.T) {
	t.Parallel()
	c := root(io.Discard, io.Discard)
	n := 0
	for _, p := range nutchconf.Properties() {
		for use := range strings.SplitSeq(p.Flag, ", ") {
			if use == "" {
				continue
			}
			n++
			verb, flag, _ := strings.Cut(" "+use, " -")
			flag, _, _ = strings.Cut(flag, " ")
			if verb = strings.TrimSpace(verb); verb == "" {
				verb = "crawl"
			}
			v := c.Command(verb)
			if v == nil {
				t.Errorf("%s: there is no verb %q", p.Name, verb)
				continue
			}
			if !strings.Contains(verbHelp(v, verb), "\n  -"+flag) {
				t.Errorf("%s: %s has no flag -%s", p.Name, verb, flag)
			}
		}
	}
	if n < 40 {
		t.Errorf("%d properties have a flag", n)
	}
}

// Names and other names of verbs, and of the flags of each, are there once.
func TestNamesAreThereOnce(t *testing.T) {
	t.Parallel()
	c := root(io.Discard, io.Discard)
	var verbs []string
	for _, v := range c.Commands {
		verbs = append(verbs, v.Names()...)
		var flags []string
		for _, f := range v.Flags {
			flags = append(flags, f.Names()...)
		}
		slices.Sort(flags)
		if once := slices.Compact(slices.Clone(flags)); len(once) != len(flags) {
			t.Errorf("%s has flags twice: %q", v.Name, flags)
		}
	}
	slices.Sort(verbs)
	if once := slices.Compact(slices.Clone(verbs)); len(once) != len(verbs) {
		t.Errorf("verbs are there twice: %q", verbs)
	}
}
