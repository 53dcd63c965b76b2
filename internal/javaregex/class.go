package javaregex

import (
	"errors"
	"slices"
)

// classItem reads a class after its "[".
func (p *javaParser) classItem() (*pattern, error) {
	s, err := p.class(true)
	if err != nil {
		return nil, err
	}
	return setItem(s), nil
}

// class reads a class: ranges, escapes, nested classes, which are added, and
// the right side of "&&", which is intersected with the left. With whole it
// consumes the "]"; without, it reads the right side of an "&&". A "^" applies
// to all of it.
func (p *javaParser) class(whole bool) (runeSet, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	defer func() { p.depth-- }()
	var set runeSet
	some := false
	negated := whole && p.accept('^')
	for {
		switch c := p.peek(); {
		case c == eof:
			return nil, errors.New("missing ] of a class")
		case c == ']' && some:
			if whole {
				p.pos++
			}
			if negated {
				set = set.negate()
			}
			return set, nil
		case c == '[':
			p.pos++
			inner, err := p.class(true)
			if err != nil {
				return nil, err
			}
			set, some = set.union(inner), true
		case c == '&' && p.peekAt(1) == '&':
			p.pos += 2
			right, err := p.rightOfAnd()
			if err != nil {
				return nil, err
			}
			if right == nil || !some {
				// Java accepts these, and each version makes something
				// different of them.
				return nil, errors.New(`"&&" in a class needs something on both sides`)
			}
			set = set.intersect(right)
			if set == nil {
				set = runeSet{}
			}
		case c == '&' && !whole:
			// Java treats it differently after a class in brackets.
			return nil, errors.New(`"&" beside "&&" in a class is not supported`)
		default:
			r, err := p.classRange()
			if err != nil {
				return nil, err
			}
			set, some = set.union(r), true
		}
	}
}

// rightOfAnd reads the right side of an "&&"; nil if there is none. It extends
// to the end of the class: "[a&&b&&c]" is "[a&&[b&&[c]]]".
func (p *javaParser) rightOfAnd() (runeSet, error) {
	if c := p.peek(); c == ']' || c == '&' || c == eof {
		return nil, nil
	}
	return p.class(false)
}

// classRange reads a character, a range or an escape.
func (p *javaParser) classRange() (runeSet, error) {
	lo := p.next()
	if lo == '\\' {
		vertical := p.peek() == 'v' && p.peekAt(1) == '-'
		s, c, err := p.escape()
		if err != nil {
			return nil, err
		}
		if vertical {
			return nil, errors.New(`"\v-" in a class is not supported`)
		}
		if s != nil {
			return s, nil
		}
		lo = c
	}
	hi := lo
	if after := p.peekAt(1); p.peek() == '-' && after != ']' && after != '[' {
		if after == eof {
			return nil, errors.New("missing ] of a class")
		}
		p.pos++
		hi = p.next()
		if hi == '\\' {
			s, c, err := p.escape()
			if err != nil {
				return nil, err
			}
			if s != nil {
				return nil, errors.New("a range of a class ends with a class")
			}
			hi = c
		}
		if hi < lo {
			return nil, errors.New("a range of a class in the wrong order")
		}
	}
	return slices.Clone(p.fold(runeSet{lo, hi})), nil
}
