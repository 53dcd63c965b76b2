package robots

import (
	"cmp"
	"slices"
	"strings"
)

// ruleSet finds the rule that decides about a path. Most rules match a prefix
// or a single path, and the right one of these is looked up; only the others
// are tried one by one. So a path costs a few comparisons, however long the
// file is, unless it has many wildcards.
type ruleSet struct {
	exact  []rule   // for a single path: by pattern
	prefix []prefix // by key
	wild   []rule   // the one that wins first
	need   []uint64 // of wild: the octets that a path must contain, see octetSet
}

// A prefix is the rule that applies to paths that begin with key unless a
// longer key matches.
type prefix struct {
	key    string
	parent int32 // the next shorter prefix of key, or -1
	rule   rule  // of those with this key and its parents, the one that wins
}

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

// newRuleSet returns a set of rules, in memory of its own, and its approximate
// size in bytes.
func newRuleSet(rules []rule) (s ruleSet, size int) {
	rules, size = pack(rules)
	for _, r := range rules {
		lit, rest, star := strings.Cut(r.pattern, "*")
		switch {
		case !star && r.anchored:
			s.exact = append(s.exact, r)
		case !star || rest == "":
			s.prefix = append(s.prefix, prefix{key: lit, rule: r})
		default:
			s.wild = append(s.wild, r)
		}
	}
	slices.SortFunc(s.exact, func(a, b rule) int { return cmp.Or(strings.Compare(a.pattern, b.pattern), wins(&a, &b)) })
	s.exact = slices.CompactFunc(s.exact, func(a, b rule) bool { return a.pattern == b.pattern })
	slices.SortFunc(s.prefix, func(a, b prefix) int { return cmp.Or(strings.Compare(a.key, b.key), wins(&a.rule, &b.rule)) })
	s.prefix = slices.CompactFunc(s.prefix, func(a, b prefix) bool { return a.key == b.key })
	for i := range s.prefix {
		p, up := &s.prefix[i], int32(i)-1
		for up >= 0 && !strings.HasPrefix(p.key, s.prefix[up].key) {
			up = s.prefix[up].parent
		}
		if p.parent = up; up >= 0 && wins(&s.prefix[up].rule, &p.rule) < 0 {
			p.rule = s.prefix[up].rule
		}
	}
	slices.SortFunc(s.wild, func(a, b rule) int { return wins(&a, &b) })
	s.wild = slices.CompactFunc(s.wild, func(a, b rule) bool {
		return a.pattern == b.pattern && a.anchored == b.anchored && a.stars == b.stars && a.allow == b.allow
	})
	s.need = make([]uint64, len(s.wild))
	for i := range s.wild {
		s.need[i] = octetSet(strings.ReplaceAll(s.wild[i].pattern, "*", ""))
	}
	return s, size + 24*len(s.prefix) + 8*len(s.need)
}

// find returns the rule that decides about a canonical path; nil if none does.
func (s *ruleSet) find(path string) *rule {
	best := s.findPlain(path)
	if len(s.wild) == 0 {
		return best
	}
	has := octetSet(path)
	for i := range s.wild {
		r := &s.wild[i]
		if best != nil && wins(best, r) < 0 {
			break
		}
		if s.need[i]&^has == 0 && r.match(path) {
			return r
		}
	}
	return best
}

// findPlain does so among the rules without an inner wildcard.
func (s *ruleSet) findPlain(path string) *rule {
	// The rule for a single path is longer than all its prefixes, and shorter
	// only than rules with many wildcards at the end.
	var best *rule
	if i, ok := slices.BinarySearchFunc(s.exact, path, func(r rule, path string) int { return strings.Compare(r.pattern, path) }); ok {
		best = &s.exact[i]
	}
	// A prefix of the path is not above it, and everything between the two begins
	// with the prefix: so it is the last key that is not above, or a parent of that.
	i, ok := slices.BinarySearchFunc(s.prefix, path, func(p prefix, path string) int { return strings.Compare(p.key, path) })
	if !ok {
		i--
	}
	if i < 0 {
		return best
	}
	common := 0
	for key := s.prefix[i].key; common < min(len(key), len(path)) && key[common] == path[common]; {
		common++
	}
	for i >= 0 && len(s.prefix[i].key) > common {
		i = int(s.prefix[i].parent)
	}
	if i >= 0 && (best == nil || wins(&s.prefix[i].rule, best) < 0) {
		best = &s.prefix[i].rule
	}
	return best
}

// octetSet returns the octets of s, four of which share each bit.
func octetSet(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] & 63)
	}
	return set
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
