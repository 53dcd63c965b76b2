package robots

import (
	"cmp"
	"slices"
	"strings"
)

// ruleSet has the rules of a file in the order of precedence: the first that matches a path
// decides about it.
type ruleSet []rule

// wins orders rules: the longest first, Allow before Disallow, and the rest to
// make the order total.
func wins(a, b *rule) int {
	if c := cmp.Compare(b.octets(), a.octets()); c != 0 {
		return c
	}
	if a.allow != b.allow {
		if a.allow {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(a.pattern, b.pattern), cmp.Compare(a.line, b.line))
}

// newRuleSet returns a set of rules, in memory of its own, and its approximate size in bytes.
func newRuleSet(rules []rule) (ruleSet, int) {
	rules, size := pack(rules)
	slices.SortFunc(rules, func(a, b rule) int { return wins(&a, &b) })
	return slices.CompactFunc(rules, func(a, b rule) bool {
		return a.pattern == b.pattern && a.anchored == b.anchored && a.stars == b.stars && a.allow == b.allow
	}), size
}

// find returns the rule that decides about a canonical path; nil if none does.
func (s ruleSet) find(path string) *rule {
	for i := range s {
		if s[i].match(path) {
			return &s[i]
		}
	}
	return nil
}

// pack copies rules into a single block of memory of their own: their patterns
// are parts of lines, which may be much longer. It returns the size of the
// copy.
func pack(rules []rule) ([]rule, int) {
	var b strings.Builder
	for _, r := range rules {
		b.WriteString(r.pattern)
	}
	packed, all := make([]rule, len(rules)), b.String()
	for i, r := range rules {
		packed[i], packed[i].pattern = r, all[:len(r.pattern)]
		all = all[len(r.pattern):]
	}
	return packed, 24*len(packed) + b.Len()
}
