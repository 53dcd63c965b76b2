package javaregex

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CompileAutomaton returns a function that reports whether a pattern of
// dk.brics.automaton matches a whole text. "&" and "~" are supported where they
// are about the text as a whole.
func CompileAutomaton(pattern string) (func(text string) bool, error) {
	if !utf8.ValidString(pattern) {
		return nil, patternError(pattern, errors.New("not UTF-8"))
	}
	p := &bricsParser{src: []rune(pattern)}
	e, err := p.parse()
	if err == nil {
		var match func(string) bool
		if match, err = e.compile(); err == nil {
			return match, nil
		}
	}
	return nil, patternError(pattern, err)
}

// A bricsExp is a pattern, or the complement of an expression, or the
// intersection or union of some.
type bricsExp struct {
	op   byte // 0, '~', '&' or '|'
	p    *pattern
	subs []bricsExp
}

// compile returns a matcher for the whole text.
func (e bricsExp) compile() (func(string) bool, error) {
	if e.op == 0 {
		return compile(&pattern{op: opCat, subs: []*pattern{{op: opBegin}, e.p, {op: opTextEnd}}})
	}
	var subs []func(string) bool
	for _, s := range e.subs {
		m, err := s.compile()
		if err != nil {
			return nil, err
		}
		subs = append(subs, m)
	}
	switch e.op {
	case '~':
		return func(url string) bool { return !subs[0](url) }, nil
	case '&':
		return func(url string) bool { return subs[0](url) && subs[1](url) }, nil
	}
	return func(url string) bool {
		return slices.ContainsFunc(subs, func(m func(string) bool) bool { return m(url) })
	}, nil
}

var errBricsNested = errors.New(`"~" and "&" are supported for the URL as a whole only, not for a part of it`)

// bricsParser implements the grammar of dk.brics.automaton.RegExp, with all its
// options. Where a character is expected, any will do: "*a" is a star and an a.
type bricsParser struct {
	src   []rune
	pos   int
	depth int
}

func (p *bricsParser) more() bool { return p.pos < len(p.src) }

func (p *bricsParser) peek(of string) bool {
	return p.more() && strings.ContainsRune(of, p.src[p.pos])
}

func (p *bricsParser) accept(c rune) bool {
	if p.more() && p.src[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *bricsParser) parse() (bricsExp, error) {
	if len(p.src) == 0 {
		return bricsExp{p: &pattern{op: opCat}}, nil
	}
	e, err := p.union()
	if err == nil && p.more() {
		err = fmt.Errorf("unexpected %q", p.src[p.pos])
	}
	return e, err
}

func (p *bricsParser) union() (bricsExp, error) {
	if p.depth++; p.depth > maxDepth {
		return bricsExp{}, errors.New("nested too deeply")
	}
	defer func() { p.depth-- }()
	var all []bricsExp
	plain := true
	for {
		e, err := p.intersection()
		if err != nil {
			return e, err
		}
		all, plain = append(all, e), plain && e.op == 0
		if !p.accept('|') {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	if !plain {
		return bricsExp{op: '|', subs: all}, nil
	}
	alt := &pattern{op: opAlt}
	for _, e := range all {
		alt.subs = append(alt.subs, e.p)
	}
	return bricsExp{p: alt}, nil
}

func (p *bricsParser) intersection() (bricsExp, error) {
	left, err := p.concatenation()
	for err == nil && p.accept('&') {
		var right bricsExp
		right, err = p.concatenation()
		left = bricsExp{op: '&', subs: []bricsExp{left, right}}
	}
	return left, err
}

func (p *bricsParser) concatenation() (bricsExp, error) {
	var all []bricsExp
	for {
		e, err := p.repetition()
		if err != nil {
			return e, err
		}
		all = append(all, e)
		if !p.more() || p.peek(")|&") {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	cat := &pattern{op: opCat}
	for _, e := range all {
		if e.op != 0 {
			return e, errBricsNested
		}
		cat.subs = append(cat.subs, e.p)
	}
	return bricsExp{p: cat}, nil
}

func (p *bricsParser) repetition() (bricsExp, error) {
	e, err := p.complement()
	for err == nil && p.peek("?*+{") {
		if e.op != 0 {
			return e, errBricsNested
		}
		r := &pattern{op: opRepeat, subs: []*pattern{e.p}, max: -1}
		c := p.src[p.pos]
		p.pos++
		switch c {
		case '?':
			r.max = 1
		case '+':
			r.min = 1
		case '{':
			var ok bool
			if r.min, ok = p.number(); !ok {
				return e, errors.New("a number is missing after {")
			}
			r.max = r.min
			if p.accept(',') {
				if r.max, ok = p.number(); !ok {
					r.max = -1
				}
			}
			if !p.accept('}') {
				return e, errors.New("missing }")
			}
			if r.max >= 0 && r.max < r.min {
				r = &pattern{op: opAlt} // nothing
			}
		}
		e.p = r
	}
	return e, err
}

func (p *bricsParser) number() (int, bool) {
	n, ok := 0, false
	for ; p.peek("0123456789"); p.pos++ {
		n, ok = min(n*10+int(p.src[p.pos]-'0'), 1<<20), true
	}
	return n, ok
}

func (p *bricsParser) complement() (bricsExp, error) {
	n := 0
	for p.accept('~') {
		n++
	}
	e, err := p.simple()
	if n%2 == 1 {
		e = bricsExp{op: '~', subs: []bricsExp{e}}
	}
	return e, err
}

func (p *bricsParser) simple() (bricsExp, error) {
	set := func(s runeSet) (bricsExp, error) { return bricsExp{p: setItem(s)}, nil }
	all := runes(0, utf8.MaxRune)
	switch {
	case p.accept('['):
		s, err := p.class()
		return bricsExp{p: setItem(s)}, err
	case p.accept('.'):
		return set(all)
	case p.accept('#'):
		return bricsExp{p: &pattern{op: opAlt}}, nil
	case p.accept('@'):
		return bricsExp{p: &pattern{op: opRepeat, subs: []*pattern{setItem(all)}, max: -1}}, nil
	case p.accept('"'):
		text, err := p.until('"')
		if err != nil {
			return bricsExp{}, err
		}
		cat := &pattern{op: opCat}
		for _, r := range text {
			cat.subs = append(cat.subs, setItem(runes(r, r)))
		}
		return bricsExp{p: cat}, nil
	case p.accept('('):
		if p.accept(')') {
			return bricsExp{p: &pattern{op: opCat}}, nil
		}
		e, err := p.union()
		if err == nil && !p.accept(')') {
			err = errors.New("missing )")
		}
		return e, err
	case p.accept('<'):
		text, err := p.until('>')
		if err != nil {
			return bricsExp{}, err
		}
		i, err := interval(text)
		return bricsExp{p: i}, err
	}
	r, err := p.char()
	if err != nil {
		return bricsExp{}, err
	}
	return set(runes(r, r))
}

func (p *bricsParser) until(end rune) (string, error) {
	i := slices.Index(p.src[p.pos:], end)
	if i < 0 {
		return "", fmt.Errorf("missing %c", end)
	}
	text := string(p.src[p.pos : p.pos+i])
	p.pos += i + 1
	return text, nil
}

func (p *bricsParser) class() (runeSet, error) {
	negated := p.accept('^')
	var s runeSet
	for first := true; first || p.more() && !p.peek("]"); first = false {
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.accept('-') {
			if p.peek("]") {
				s = s.union(runes('-', '-'))
			} else if hi, err = p.char(); err != nil {
				return nil, err
			}
		}
		if lo <= hi { // else it is empty
			s = s.union(runes(lo, hi))
		}
	}
	if !p.accept(']') {
		return nil, errors.New("missing ] of a class")
	}
	if negated {
		s = s.negate()
	}
	return s, nil
}

func (p *bricsParser) char() (rune, error) {
	p.accept('\\')
	if !p.more() {
		return 0, errors.New("ends too early")
	}
	p.pos++
	return p.src[p.pos-1], nil
}

// interval returns the pattern of the numbers from one to another. If both have
// the same number of digits, so do the numbers; otherwise there may be any
// number of leading zeros.
func interval(text string) (*pattern, error) {
	a, b, ok := strings.Cut(text, "-")
	if !ok {
		return nil, fmt.Errorf("the named automaton <%s> is not supported", clip(text))
	}
	lo, err1 := strconv.ParseUint(a, 10, 31)
	hi, err2 := strconv.ParseUint(b, 10, 31)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("bad interval <%s>", clip(text))
	}
	if lo > hi {
		lo, hi = hi, lo
	}
	out := &pattern{op: opCat}
	width := len(a)
	if len(a) != len(b) {
		zero := setItem(runes('0', '0'))
		out.subs = append(out.subs, &pattern{op: opRepeat, subs: []*pattern{zero}, max: -1})
		width = len(strconv.FormatUint(hi, 10))
	}
	from, to := fmt.Sprintf("%0*d", width, lo), fmt.Sprintf("%0*d", width, hi)
	if len(a) == len(b) {
		out.subs = append(out.subs, digitsBetween(from, to))
		return out, nil
	}
	// Of each number of digits, those without a leading zero; zero itself has one.
	alt := &pattern{op: opAlt}
	for n := 1; n <= width; n++ {
		least, most := "1"+strings.Repeat("0", n-1), strings.Repeat("9", n)
		if n == 1 {
			least = "0"
		}
		zeros := strings.Repeat("0", width-n)
		l, m := zeros+least, zeros+most
		if l, m = max(l, from), min(m, to); l <= m {
			alt.subs = append(alt.subs, digitsBetween(l[width-n:], m[width-n:]))
		}
	}
	out.subs = append(out.subs, alt)
	return out, nil
}

// digitsBetween matches the numbers between two with the same number of digits.
func digitsBetween(from, to string) *pattern {
	if from == "" {
		return &pattern{op: opCat}
	}
	digit := func(lo, hi byte) *pattern { return setItem(runes(rune(lo), rune(hi))) }
	rest := len(from) - 1
	zeros, nines := strings.Repeat("0", rest), strings.Repeat("9", rest)
	if from[0] == to[0] {
		return &pattern{op: opCat, subs: []*pattern{digit(from[0], from[0]), digitsBetween(from[1:], to[1:])}}
	}
	if from[1:] == zeros && to[1:] == nines {
		return &pattern{op: opCat, subs: []*pattern{digit(from[0], to[0]),
			{op: opRepeat, subs: []*pattern{digit('0', '9')}, min: rest, max: rest}}}
	}
	alt := &pattern{op: opAlt}
	lo, hi := from[0], to[0]
	if from[1:] != zeros {
		alt.subs = append(alt.subs, digitsBetween(from, from[:1]+nines))
		lo++
	}
	if to[1:] != nines {
		hi--
	}
	if lo <= hi {
		alt.subs = append(alt.subs, digitsBetween(string(lo)+zeros, string(hi)+nines))
	}
	if to[1:] != nines {
		alt.subs = append(alt.subs, digitsBetween(to[:1]+zeros, to))
	}
	return alt
}
