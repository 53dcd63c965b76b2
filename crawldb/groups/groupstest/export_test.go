package groupstest

import "github.com/recrawl/recrawl/internal/kit"

// Kit returns the kit of a harness.
func Kit(h Harness) kit.Kit[*check] { return h.kit() }
