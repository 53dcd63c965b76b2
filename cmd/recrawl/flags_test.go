package main

import (
	"io"
	"slices"
	"testing"
)

// Names and other names of verbs, and of the flags of each, are there once.
func TestNamesAreUnique(t *testing.T) {
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
