package javaregex

import (
	"regexp"
	"unicode/utf8"
)

// compile returns a function that reports whether the pattern matches anywhere
// in a text. The shapes of Nutch's rules (some endings, some beginnings, one of
// some characters) are matched by hand: that is exact, and thirty times as
// fast. Package regexp matches the rest, after whatever can be decided without
// it.
func compile(p *pattern) (func(string) bool, error) {
	// Always parsed by regexp, so that its limits apply to every pattern.
	source, err := p.re2()
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	match := byHand(p.trim())
	if match == nil {
		least, may := p.minLen(), prefilter(p)
		match = func(url string) bool {
			return len(url) >= least && (may == nil || may(url)) && re.MatchString(url)
		}
	}
	if !p.uses(opEnd) {
		return match, nil
	}
	return func(url string) bool {
		if match(url) {
			return true
		}
		if url == "" || url[len(url)-1] < utf8.RuneSelf && url[len(url)-1] > '\r' {
			return false
		}
		t := trimLineEnd(url)
		return len(t) < len(url) && match(t)
	}, nil
}

// trim returns a pattern that matches the same texts, though maybe not the same
// part of them: without captures, and without what may be empty at either end.
func (p *pattern) trim() *pattern {
	switch p.op {
	case opGroup:
		return p.subs[0].trim()
	case opAlt:
		out := &pattern{op: opAlt}
		for _, s := range p.subs {
			s = s.trim()
			if s.op == opAlt {
				out.subs = append(out.subs, s.subs...)
			} else {
				out.subs = append(out.subs, s)
			}
		}
		return out
	}
	subs := flatten(nil, p)
	for len(subs) > 0 {
		first, last := subs[0], subs[len(subs)-1]
		switch n := len(subs); {
		case first.op == opRepeat && first.min == 0:
			subs = subs[1:]
		case last.op == opRepeat && last.min == 0:
			subs = subs[:n-1]
		case n > 1 && first.op == opBegin && subs[1].isAnything():
			subs = subs[2:]
		case n > 1 && (last.op == opTextEnd || last.op == opEnd) && subs[n-2].isAnything():
			subs = subs[:n-2]
		case first.op == opRepeat && first.subs[0].op == opSet && first.max != first.min:
			subs[0] = &pattern{op: opRepeat, subs: first.subs, min: first.min, max: first.min}
		case last.op == opRepeat && last.subs[0].op == opSet && last.max != last.min:
			subs[n-1] = &pattern{op: opRepeat, subs: last.subs, min: last.min, max: last.min}
		case n == 1:
			if s := subs[0]; s.op == opAlt || s.op == opGroup {
				return s.trim()
			}
			return subs[0]
		default:
			return &pattern{op: opCat, subs: subs}
		}
	}
	return &pattern{op: opCat}
}

// isAnything reports whether the pattern matches every text as a whole.
func (p *pattern) isAnything() bool {
	return p.op == opRepeat && p.min == 0 && p.max < 0 && p.subs[0].op == opSet && p.subs[0].set.full()
}

// flatten appends the items of a sequence, including those of nested sequences.
func flatten(to []*pattern, p *pattern) []*pattern {
	switch p.op {
	case opCat:
		for _, s := range p.subs {
			to = flatten(to, s)
		}
		return to
	case opGroup:
		return flatten(to, p.subs[0])
	}
	return append(to, p)
}

// byHand returns a matcher for a trimmed pattern, or nil.
func byHand(p *pattern) func(string) bool {
	if p.isEmpty() {
		return func(string) bool { return true }
	}
	if p.op == opSet {
		return setMatcher(p.set)
	}
	all := []*pattern{p}
	if p.op == opAlt {
		all = p.subs
	}
	if begins := anchored(all, true); begins != nil {
		return begins.matchBegin
	}
	if ends := anchored(all, false); ends != nil {
		return ends.matchEnd
	}
	return nil
}

// setMatcher finds a character of the set.
func setMatcher(s runeSet) func(string) bool {
	var ascii [utf8.RuneSelf]bool
	for r := range ascii {
		ascii[r] = s.has(rune(r))
	}
	beyond := !s.isASCII() && len(s) > 0
	return func(url string) bool {
		for i := 0; i < len(url); {
			if c := url[i]; c < utf8.RuneSelf {
				if ascii[c] {
					return true
				}
				i++
				continue
			}
			if !beyond {
				i++
				continue
			}
			r, n := utf8.DecodeRuneInString(url[i:])
			if s.has(r) {
				return true
			}
			i += n
		}
		return false
	}
}

// A bytePair is a byte of a text in one or two forms, such as both cases of a
// letter.
type bytePair struct{ a, b byte }

// anchors are the fixed strings, in such forms, that a text may begin or end
// with, indexed by their outermost byte.
type anchors struct {
	bucket [256]uint8 // 0 for none
	seqs   [][][]bytePair
}

const maxSeqs = 256

// anchored returns the strings if each of the patterns is a set of them and is
// anchored at the beginning of the text, or at the end.
func anchored(all []*pattern, begin bool) *anchors {
	var seqs [][]bytePair
	for _, p := range all {
		subs := flatten(nil, p)
		n := len(subs)
		switch {
		case n < 2:
			return nil
		case begin && subs[0].op == opBegin:
			subs = subs[1:]
		case !begin && (subs[n-1].op == opEnd || subs[n-1].op == opTextEnd):
			subs = subs[:n-1]
		default:
			return nil
		}
		s := expand(&pattern{op: opCat, subs: subs})
		if s == nil || len(seqs)+len(s) > maxSeqs {
			return nil
		}
		seqs = append(seqs, s...)
	}
	a := &anchors{seqs: make([][][]bytePair, 1)}
	file := func(c byte, s []bytePair) bool {
		i := a.bucket[c]
		if i == 0 {
			if len(a.seqs) == 256 {
				return false
			}
			i = uint8(len(a.seqs))
			a.bucket[c] = i
			a.seqs = append(a.seqs, nil)
		}
		a.seqs[i] = append(a.seqs[i], s)
		return true
	}
	for _, s := range seqs {
		if len(s) == 0 {
			return nil
		}
		outer := s[0]
		if !begin {
			outer = s[len(s)-1]
		}
		if !file(outer.a, s) || outer.b != outer.a && !file(outer.b, s) {
			return nil
		}
	}
	return a
}

func (a *anchors) matchBegin(url string) bool {
	if url == "" {
		return false
	}
	for _, s := range a.seqs[a.bucket[url[0]]] {
		if len(url) >= len(s) && equalPairs(url[:len(s)], s) {
			return true
		}
	}
	return false
}

func (a *anchors) matchEnd(url string) bool {
	if url == "" {
		return false
	}
	for _, s := range a.seqs[a.bucket[url[len(url)-1]]] {
		if len(url) >= len(s) && equalPairs(url[len(url)-len(s):], s) {
			return true
		}
	}
	return false
}

func equalPairs(text string, s []bytePair) bool {
	for i, p := range s {
		if c := text[i]; c != p.a && c != p.b {
			return false
		}
	}
	return true
}

// expand returns the strings that the pattern matches, or nil if there are many
// or some contain invalid characters.
func expand(p *pattern) [][]bytePair {
	switch p.op {
	case opSet:
		return expandSet(p.set)
	case opGroup:
		return expand(p.subs[0])
	case opAlt:
		var out [][]bytePair
		for _, s := range p.subs {
			e := expand(s)
			if e == nil || len(out)+len(e) > maxSeqs {
				return nil
			}
			out = append(out, e...)
		}
		return out
	case opCat:
		out := [][]bytePair{{}}
		for _, s := range p.subs {
			if out = product(out, expand(s)); out == nil {
				return nil
			}
		}
		return out
	case opRepeat:
		if p.max < 0 || p.max > 8 {
			return nil
		}
		e := expand(p.subs[0])
		out, power := [][]bytePair(nil), [][]bytePair{{}}
		for i := 0; i <= p.max; i++ {
			if i >= p.min {
				out = append(out, power...)
			}
			if i == p.max {
				break
			}
			if power = product(power, e); power == nil || len(out)+len(power) > maxSeqs {
				return nil
			}
		}
		return out
	}
	return nil
}

func product(heads, tails [][]bytePair) [][]bytePair {
	if tails == nil || len(heads)*len(tails) > maxSeqs {
		return nil
	}
	var out [][]bytePair
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, append(h[:len(h):len(h)], t...))
		}
	}
	return out
}

func expandSet(s runeSet) [][]bytePair {
	if r, ok := s.single(); ok && r >= utf8.RuneSelf {
		if !utf8.ValidRune(r) || r == utf8.RuneError {
			return nil
		}
		var seq []bytePair
		for _, c := range []byte(string(r)) {
			seq = append(seq, bytePair{c, c})
		}
		return [][]bytePair{seq}
	}
	if !s.isASCII() {
		return nil
	}
	var chars []byte
	for i := 0; i < len(s); i += 2 {
		for r := s[i]; r <= s[i+1]; r++ {
			chars = append(chars, byte(r))
		}
	}
	// Both cases of a letter are one pair.
	var out [][]bytePair
	for _, c := range chars {
		switch folded := c ^ 0x20; {
		case isAlpha(c) && c >= 'a' && s.has(rune(folded)):
			// with its capital
		case isAlpha(c) && c < 'a' && s.has(rune(folded)):
			out = append(out, []bytePair{{c, folded}})
		default:
			out = append(out, []bytePair{{c, c}})
		}
	}
	return out
}
