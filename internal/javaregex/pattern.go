package javaregex

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A pattern is a parsed regular expression of any dialect.
type pattern struct {
	op       patternOp
	set      runeSet    // opSet
	subs     []*pattern // opCat, opAlt; one of opRepeat and opGroup
	min, max int        // opRepeat; a max of -1 means none
	lazy     bool       // opRepeat
	name     string     // opGroup; may be empty
}

type patternOp uint8

const (
	opCat     patternOp = iota // without subs: the empty string
	opAlt                      // without subs: matches nothing
	opSet                      // one character
	opRepeat                   //
	opGroup                    // a capture
	opBegin                    // the beginning of the text
	opEnd                      // its end, or before a line end that ends it
	opTextEnd                  // its end
	opWord                     // a boundary of an ASCII word
	opNoWord                   // no such boundary
)

// lineEnds are Java's line terminators.
const lineEnds = "\n\r\u0085\u2028\u2029"

// trimLineEnd returns the text without one line end at its end.
func trimLineEnd(s string) string {
	if t, ok := strings.CutSuffix(s, "\r\n"); ok {
		return t
	}
	if r, n := utf8.DecodeLastRuneInString(s); n > 0 && strings.ContainsRune(lineEnds, r) && (r != utf8.RuneError) {
		return s[:len(s)-n]
	}
	return s
}

// isEmpty reports whether the pattern is the empty string and nothing else.
func (p *pattern) isEmpty() bool { return p.op == opCat && len(p.subs) == 0 }

// uses reports whether the operation occurs.
func (p *pattern) uses(op patternOp) bool {
	if p.op == op {
		return true
	}
	for _, s := range p.subs {
		if s.uses(op) {
			return true
		}
	}
	return false
}

// mayBeEmpty reports whether the pattern can match the empty string.
func (p *pattern) mayBeEmpty() bool {
	switch p.op {
	case opSet:
		return false
	case opCat, opGroup:
		return !slices.ContainsFunc(p.subs, func(s *pattern) bool { return !s.mayBeEmpty() })
	case opAlt:
		return slices.ContainsFunc(p.subs, (*pattern).mayBeEmpty)
	case opRepeat:
		return p.min == 0 || p.subs[0].mayBeEmpty()
	}
	return true
}

// first returns the characters that a match may begin with.
func (p *pattern) first() runeSet {
	switch p.op {
	case opSet:
		return p.set
	case opCat, opGroup:
		var s runeSet
		for _, sub := range p.subs {
			if s = s.union(sub.first()); !sub.mayBeEmpty() {
				break
			}
		}
		return s
	case opAlt, opRepeat:
		var s runeSet
		for _, sub := range p.subs {
			s = s.union(sub.first())
		}
		return s
	}
	return nil
}

// endsLine reports whether nothing after an opEnd can match a line end, given
// the characters that may follow the pattern. If so, a match that passes an
// opEnd before the last line end ends there.
func (p *pattern) endsLine(after runeSet) bool {
	switch p.op {
	case opEnd:
		return len(after.intersect(javaLineEnds())) == 0
	case opCat:
		for _, s := range slices.Backward(p.subs) {
			if !s.endsLine(after) {
				return false
			}
			if first := s.first(); s.mayBeEmpty() {
				after = after.union(first)
			} else {
				after = first
			}
		}
		return true
	case opRepeat:
		if p.max != 1 {
			after = after.union(p.first())
		}
	}
	for _, s := range p.subs {
		if !s.endsLine(after) {
			return false
		}
	}
	return true
}

// minLen is a lower bound on the length of a match in bytes.
func (p *pattern) minLen() int {
	const enough = 1 << 20
	n := 0
	switch p.op {
	case opSet:
		if len(p.set) > 0 {
			n = max(1, utf8.RuneLen(p.set[0]))
			if p.set.has(utf8.RuneError) {
				n = 1 // what a bad byte is replaced by
			}
		}
	case opCat, opGroup:
		for _, s := range p.subs {
			n += s.minLen()
		}
	case opAlt:
		n = enough
		for _, s := range p.subs {
			n = min(n, s.minLen())
		}
	case opRepeat:
		n = p.subs[0].minLen() * p.min
	}
	return min(n, enough)
}

// re2 writes the pattern for package regexp. Its opEnd is the end of the text:
// callers that care about line ends match [trimLineEnd] of the text, too.
func (p *pattern) re2() (string, error) {
	var b strings.Builder
	err := p.write(&b)
	return b.String(), err
}

func (p *pattern) write(b *strings.Builder) error {
	switch p.op {
	case opSet:
		writeSet(b, p.set)
	case opCat:
		for _, s := range p.subs {
			if err := s.writeIn(b, s.op == opAlt); err != nil {
				return err
			}
		}
	case opAlt:
		if len(p.subs) == 0 {
			writeSet(b, nil)
		}
		for i, s := range p.subs {
			if i > 0 {
				b.WriteByte('|')
			}
			if err := s.write(b); err != nil {
				return err
			}
		}
	case opGroup:
		b.WriteByte('(')
		if p.name != "" {
			b.WriteString("?P<" + p.name + ">")
		}
		if err := p.subs[0].write(b); err != nil {
			return err
		}
		b.WriteByte(')')
	case opRepeat:
		return p.writeRepeat(b)
	default:
		b.WriteString([...]string{opBegin: `\A`, opEnd: `\z`, opTextEnd: `\z`, opWord: `\b`, opNoWord: `\B`}[p.op])
	}
	return nil
}

func (p *pattern) writeIn(b *strings.Builder, parens bool) error {
	if !parens {
		return p.write(b)
	}
	b.WriteString("(?:")
	err := p.write(b)
	b.WriteByte(')')
	return err
}

// maxWritten limits what is written for package regexp, which accepts far less:
// ten nested repetitions, each written ten times, are ten gigabytes.
const maxWritten = 1 << 20

// maxRepeat is the greatest count that package regexp accepts.
const maxRepeat = 1000

func (p *pattern) writeRepeat(b *strings.Builder) error {
	sub := p.subs[0]
	parens := sub.op != opSet && sub.op != opGroup
	least, most := p.min, p.max
	// A greater count is written as several in a row.
	const tooGreat = 10 * maxRepeat
	if max(least, most) > maxRepeat && (sub.uses(opGroup) || max(least, most) > tooGreat) {
		return fmt.Errorf("repeated more than %d times", maxRepeat)
	}
	count := func(suffix string) error {
		if b.Len() > maxWritten {
			return errors.New("nested repetitions make it too large")
		}
		err := sub.writeIn(b, parens)
		b.WriteString(suffix)
		if p.lazy {
			b.WriteByte('?')
		}
		return err
	}
	for ; least > maxRepeat; least -= maxRepeat {
		if err := count("{" + strconv.Itoa(maxRepeat) + "}"); err != nil {
			return err
		}
		if most >= 0 {
			most -= maxRepeat
		}
	}
	for ; most > maxRepeat; most -= maxRepeat {
		if err := count("{" + strconv.Itoa(least) + "," + strconv.Itoa(maxRepeat) + "}"); err != nil {
			return err
		}
		least = 0
	}
	switch {
	case least == 0 && most == 1:
		return count("?")
	case least == 0 && most < 0:
		return count("*")
	case least == 1 && most < 0:
		return count("+")
	case most < 0:
		return count("{" + strconv.Itoa(least) + ",}")
	}
	return count("{" + strconv.Itoa(least) + "," + strconv.Itoa(most) + "}")
}

func writeSet(b *strings.Builder, s runeSet) {
	if r, ok := s.single(); ok {
		b.WriteString(regexp.QuoteMeta(string(r)))
		return
	}
	if len(s) == 0 {
		b.WriteString(`[^\x{0}-\x{10FFFF}]`)
		return
	}
	if s.full() {
		b.WriteString(`(?s:.)`)
		return
	}
	b.WriteByte('[')
	for i := 0; i < len(s); i += 2 {
		fmt.Fprintf(b, `\x{%X}`, s[i])
		if s[i+1] > s[i] {
			fmt.Fprintf(b, `-\x{%X}`, s[i+1])
		}
	}
	b.WriteByte(']')
}
