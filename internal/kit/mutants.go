package kit

import (
	"errors"
	"slices"
	"testing"
)

// Mutant is the harness of an implementation with a fault, and the rule that must find it.
type Mutant[H any] struct {
	Fault, Rule string
	Harness     H
}

// Catch tests a kit: the named rule must find the fault of each mutant, and each rule
// must find one, unless it is exempt.
func Catch[H, C any](t *testing.T, kit func(H) Kit[C], mutants []Mutant[H], exempt func(rule string) bool) {
	caught := map[string]bool{}
	for _, m := range mutants {
		caught[m.Rule] = true
		t.Run(m.Fault, func(t *testing.T) {
			k := kit(m.Harness)
			i := slices.IndexFunc(k.Rules, func(r Rule[C]) bool { return r.Name == m.Rule })
			if i < 0 {
				t.Fatalf("there is no rule %q", m.Rule)
			}
			err := k.run(t.Context(), k.Rules[i])
			if err == nil || errors.As(err, &skipped{}) {
				t.Errorf("rule %q found no fault: %v", m.Rule, err)
			}
		})
	}
	for _, r := range kit(mutants[0].Harness).Rules {
		if !caught[r.Name] && (exempt == nil || !exempt(r.Name)) {
			t.Errorf("no mutant breaks rule %q", r.Name)
		}
	}
}
