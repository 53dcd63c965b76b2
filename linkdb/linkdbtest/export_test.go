package linkdbtest

import (
	"context"
	"fmt"
)

// CheckRule checks one rule by its name.
func CheckRule(ctx context.Context, h Harness, name string) error {
	for _, r := range rules() {
		if r.name == name {
			return r.run(ctx, h)
		}
	}
	return fmt.Errorf("no rule is named %q", name)
}

// RuleNames returns the names of all rules.
func RuleNames() []string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	return names
}
