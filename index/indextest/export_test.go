package indextest

import (
	"context"
	"errors"
)

func RuleNames() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// CheckRule checks one rule.
func CheckRule(ctx context.Context, h Harness, name string) error {
	for _, r := range rules {
		if r.name == name {
			return r.run(ctx, h)
		}
	}
	return errors.New("no such rule")
}
