package crawldbtest

import (
	"slices"
	"strings"

	"github.com/recrawl/recrawl/internal/kit"
)

// Kit returns the kit of a harness.
func Kit(h Harness) kit.Kit[*check] { return h.kit() }

// Part returns the rules of the kit whose names contain some words.
func Part(h Harness, words string) kit.Kit[*check] {
	k := h.kit()
	k.Rules = slices.DeleteFunc(k.Rules, func(r rule) bool { return !strings.Contains(r.Name, words) })
	return k
}
