package urlfilter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NewChain makes a normalizer that applies others in order, as [Rules] do with their Normalizers and
// Loops. It is mostly used for some scopes in [NewScoped]. A chain of none leaves every URL as it
// is. (Nutch: urlnormalizer-pass.)
func NewChain(loops int, all ...Normalizer) Normalizer { return chain{all, loops} }

type chain struct {
	normalizers []Normalizer
	loops       int
}

// Normalize applies the normalizers.
func (c chain) Normalize(scope Scope, url string) (string, error) {
	return normalizeAll(c.normalizers, c.loops, scope, url)
}

// explainScope returns the rules that change the URL in a scope, each preceded
// by the name of its normalizer.
func (c chain) explainScope(scope Scope, url string) string {
	var all []string
	walk(c.normalizers, c.loops, scope, url, func(_ int, n Normalizer, in, out string, err error) {
		if err != nil || in == out {
			return
		}
		name := describe(n)
		if rule := explainIn(n, scope, in); rule != "" {
			name += ": " + rule
		}
		all = append(all, name)
	})
	return strings.Join(all, "; ")
}

// Explain is ExplainScope for [AnyScope].
func (c chain) Explain(url string) string { return c.explainScope(AnyScope, url) }

// Reload reloads every normalizer; see [Rules.Reload].
func (c chain) Reload() (changed bool, err error) { return reloadAll(slices.Values(c.normalizers)) }

// String describes the normalizer.
func (c chain) String() string {
	if len(c.normalizers) == 0 {
		return "pass normalizer"
	}
	names := make([]string, len(c.normalizers))
	for i, n := range c.normalizers {
		names[i] = describe(n)
	}
	return "chain of " + strings.Join(names, ", ")
}

// NewScoped makes a normalizer that uses a different one for each scope. Scopes
// without an entry use that of [AnyScope]; if there is none, URLs stay as they
// are. (Nutch: urlnormalizer.scope.<scope>, urlnormalizer.order.<scope>,
// urlnormalizer.regex.file.<scope>.)
func NewScoped(by map[Scope]Normalizer) Normalizer { return scoped(by) }

type scoped map[Scope]Normalizer

func (s scoped) in(scope Scope) Normalizer {
	if n := s[scope]; n != nil {
		return n
	}
	if n := s[AnyScope]; n != nil {
		return n
	}
	return chain{}
}

// Normalize applies the normalizer of the scope.
func (s scoped) Normalize(scope Scope, url string) (string, error) {
	return s.in(scope).Normalize(scope, url)
}

// explainScope returns the explanation of the scope's normalizer.
func (s scoped) explainScope(scope Scope, url string) string {
	return explainIn(s.in(scope), scope, url)
}

// Explain is ExplainScope for [AnyScope].
func (s scoped) Explain(url string) string { return s.explainScope(AnyScope, url) }

// Reload reloads every normalizer; see [Rules.Reload].
func (s scoped) Reload() (changed bool, err error) {
	scopes := slices.Sorted(maps.Keys(s))
	return reloadAll(func(yield func(Normalizer) bool) {
		for _, scope := range scopes {
			if !yield(s[scope]) {
				return
			}
		}
	})
}

// String describes the normalizer.
func (s scoped) String() string {
	names := make([]string, 0, len(s))
	for _, scope := range slices.Sorted(maps.Keys(s)) {
		names = append(names, fmt.Sprintf("%s: %s", scope, describe(s[scope])))
	}
	return "by scope (" + strings.Join(names, "; ") + ")"
}

func normalizeAll(all []Normalizer, loops int, scope Scope, url string) (string, error) {
	return walk(all, loops, scope, url, nil)
}

// walk applies the normalizers and calls step, unless it is nil, with what each
// did at its turn, counted from 0.
//
// It ends after a round that leaves the URL as it was, even if one normalizer
// undoes what another does, so the result is its own normal form. Without a
// limit on loops it ends earlier, once as many turns in a row as there are
// normalizers have changed nothing. The last one that made a change counts as
// one of them: its result is its own normal form. So a chain in which only the
// first finds anything to do costs one turn of each.
func walk(all []Normalizer, loops int, scope Scope, url string, step func(turn int, n Normalizer, in, out string, err error)) (string, error) {
	rounds := loops
	if loops <= 0 {
		rounds = maxRounds
	}
	quiet := 0
	for round := range rounds {
		before := url
		for i, n := range all {
			out, err := n.Normalize(scope, url)
			if step != nil {
				step(round*len(all)+i, n, url, out, err)
			}
			if err != nil {
				return "", err
			}
			if quiet++; out != url {
				url, quiet = out, 1
			}
			if loops <= 0 && quiet == len(all) && (round > 0 || i == len(all)-1) {
				return url, nil
			}
		}
		if url == before || round == loops-1 {
			return url, nil
		}
	}
	return "", errUnsettled
}
