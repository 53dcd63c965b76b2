package javaregex

import "slices"

// prefilter returns a function that is false only for texts that the pattern
// does not match, or nil if it would rarely be. Looking for a few literal bytes
// takes a tenth of the time of an expression, and most rules do not match most
// URLs.
func prefilter(p *pattern) func(string) bool {
	if last, ok := lastByte(p); ok {
		return func(url string) bool { return url != "" && last[url[len(url)-1]] }
	}
	seqs := required(p)
	if len(seqs) == 0 {
		return nil
	}
	return containsAny(seqs)
}

// lastByte returns the bytes that may end a text that the pattern matches.
func lastByte(p *pattern) (set [256]bool, ok bool) {
	subs := flatten(nil, p)
	n := len(subs)
	if n < 2 || subs[n-1].op != opEnd && subs[n-1].op != opTextEnd || subs[n-2].op != opSet || !subs[n-2].set.isASCII() {
		return set, false
	}
	for r := range rune(0x80) {
		set[r] = subs[n-2].set.has(r)
	}
	return set, true
}

// maxRequired limits how many strings are looked for.
const maxRequired = 16

// enoughRequired is the length from which a string grows no more: a longer one is hardly
// rarer, and without a bound the time to compile a pattern grows with the cube of its length.
const enoughRequired = 24

// required returns strings such that every match contains one of them, or nil.
func required(p *pattern) [][]bytePair {
	switch p.op {
	case opGroup:
		return required(p.subs[0])
	case opRepeat:
		if p.min > 0 {
			return required(p.subs[0])
		}
		return nil
	case opAlt:
		var all [][]bytePair
		for _, s := range p.subs {
			r := required(s)
			if r == nil {
				return nil
			}
			all = append(all, r...)
		}
		return few(all)
	case opSet:
		return few(expand(p))
	case opCat:
		var best [][]bytePair
		for i := range p.subs {
			// The longest run of items from here that is a set of strings.
			run := [][]bytePair{{}}
			for _, s := range p.subs[i:] {
				var next [][]bytePair
				switch s.op {
				case opWord, opNoWord, opBegin, opEnd, opTextEnd:
					next = run // of no width
				case opRepeat:
					if s.min > 0 { // at least that often
						next = product(run, expand(&pattern{op: opRepeat, subs: s.subs, min: s.min, max: s.min}))
					}
				default:
					next = product(run, expand(s))
				}
				if next == nil {
					break
				}
				run = next
				best = better(best, few(run))
				if s.op == opRepeat && s.max != s.min || len(run) > 0 && len(run[0]) >= enoughRequired {
					break // what follows is not adjacent, or not needed
				}
			}
			best = better(best, required(p.subs[i]))
		}
		return best
	}
	return nil
}

// few returns the strings; nil if there are many or one is empty.
func few(all [][]bytePair) [][]bytePair {
	if len(all) > maxRequired || slices.ContainsFunc(all, func(s []bytePair) bool { return len(s) == 0 }) {
		return nil
	}
	return all
}

// better returns the strings that a text is less likely to have.
func better(a, b [][]bytePair) [][]bytePair {
	rare := func(all [][]bytePair) int {
		if len(all) == 0 {
			return -1
		}
		least := 1 << 10
		for _, s := range all {
			least = min(least, len(s))
		}
		return least*maxRequired - len(all)
	}
	if rare(b) > rare(a) {
		return b
	}
	return a
}

// containsAny reports whether a text contains one of the strings.
func containsAny(seqs [][]bytePair) func(string) bool {
	return func(text string) bool {
		for _, s := range seqs {
			last := s[len(s)-1]
			for end := len(s); end <= len(text); end++ {
				if c := text[end-1]; (c == last.a || c == last.b) && equalPairs(text[end-len(s):end], s) {
					return true
				}
			}
		}
		return false
	}
}
