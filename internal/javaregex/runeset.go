package javaregex

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// A runeSet is a set of characters: ranges from even to odd index, ascending,
// with gaps between them.
type runeSet []rune

func runes(pairs ...rune) runeSet { return runeSet(pairs).normal() }

// normal sorts and joins ranges.
func (s runeSet) normal() runeSet {
	type span struct{ lo, hi rune }
	spans := make([]span, 0, len(s)/2)
	for i := 0; i < len(s); i += 2 {
		spans = append(spans, span{s[i], s[i+1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	var out runeSet
	for _, p := range spans {
		if n := len(out); n > 0 && p.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p.hi)
		} else {
			out = append(out, p.lo, p.hi)
		}
	}
	return out
}

func (s runeSet) union(o runeSet) runeSet { return slices.Concat(s, o).normal() }

func (s runeSet) negate() runeSet {
	var out runeSet
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, next, utf8.MaxRune)
	}
	return out
}

func (s runeSet) intersect(o runeSet) runeSet {
	return s.negate().union(o.negate()).negate()
}

func (s runeSet) has(r rune) bool {
	lo, hi := 0, len(s)/2
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		switch {
		case r < s[2*mid]:
			hi = mid
		case r > s[2*mid+1]:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}

// foldASCII adds the other case of the ASCII letters in the set, which is all
// that Java's CASE_INSENSITIVE does without UNICODE_CASE.
func (s runeSet) foldASCII() runeSet {
	out := slices.Clone(s)
	for r := 'a'; r <= 'z'; r++ {
		upper := r - 'a' + 'A'
		if s.has(r) != s.has(upper) {
			out = append(out, r, r, upper, upper)
		}
	}
	return out.normal()
}

// single returns the only character of the set.
func (s runeSet) single() (rune, bool) {
	return append(s, 0)[0], len(s) == 2 && s[0] == s[1]
}

// full reports whether every character is in the set.
func (s runeSet) full() bool { return len(s) == 2 && s[0] == 0 && s[1] == utf8.MaxRune }

func (s runeSet) isASCII() bool { return len(s) > 0 && s[len(s)-1] < utf8.RuneSelf }

func ofTable(t *unicode.RangeTable) runeSet {
	var s runeSet
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			s = append(s, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			s = append(s, r, r)
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return s.normal()
}
