package crawldbtest

import "context"

// CheckRule checks one rule by its name.
func CheckRule(ctx context.Context, h Harness, name string) error { return h.kit().Only(ctx, name) }

// RuleNames returns the names of all rules.
func RuleNames() []string { return Harness{}.kit().Names() }
