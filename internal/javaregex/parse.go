package javaregex

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parse parses a pattern of java.util.regex. The pattern either means the
// same as in Java or is an error: errors are constructs that a linear-time
// matcher cannot match, and rare ones that would differ in some corner. Where
// versions of Java differ, 19 and later is meant: "\b" is about ASCII words.
// Characters are code points, as in Java, with the properties of the Unicode
// version of package unicode.
func parse(s string) (*pattern, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("not UTF-8")
	}
	p := &javaParser{src: unquote([]rune(s)), names: map[string]bool{}}
	out, err := p.alternatives()
	if err == nil && p.pos < len(p.src) {
		err = errors.New("unmatched )")
	}
	if err == nil && !out.endsLine(nil) {
		err = errors.New(`"$" or "\Z" before what may match a line end is not supported`)
	}
	if err == nil && out.uses(opEnd) && out.uses(opTextEnd) {
		err = errors.New(`"\z" beside "$" or "\Z" is not supported`)
	}
	if err != nil {
		return nil, patternError(s, err)
	}
	return out, nil
}

// needsMemory is the error for constructs that need a backtracking matcher.
func needsMemory(what string) error {
	return fmt.Errorf("%s is not supported: only patterns without back-references, look-around, atomic groups and possessive repetition can be matched in linear time", what)
}

type javaParser struct {
	src        []rune
	pos        int
	ignoreCase bool // (?i), of ASCII letters
	dotAll     bool // (?s)
	names      map[string]bool
	depth      int
}

const eof = rune(-1)

func (p *javaParser) peekAt(i int) rune {
	if p.pos+i < len(p.src) {
		return p.src[p.pos+i]
	}
	return eof
}

func (p *javaParser) peek() rune { return p.peekAt(0) }

func (p *javaParser) next() rune {
	c := p.peek()
	p.pos++
	return c
}

func (p *javaParser) accept(c rune) bool {
	if p.peek() == c {
		p.pos++
		return true
	}
	return false
}

// unquote replaces \Q…\E by escapes, also within classes.
func unquote(s []rune) []rune {
	var out []rune
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		if s[i+1] != 'Q' {
			out = append(out, s[i], s[i+1])
			i++
			continue
		}
		first := true
		for i += 2; i < len(s) && !(s[i] == '\\' && i+1 < len(s) && s[i+1] == 'E'); i++ {
			switch c := s[i]; {
			case '0' <= c && c <= '9' && first:
				out = append(out, '\\', 'x', '3', c) // so as not to join what precedes
			case c < utf8.RuneSelf && !isAlnum(byte(c)):
				out = append(out, '\\', c)
			default:
				out = append(out, c)
			}
			first = false
		}
		i++ // the E
	}
	return out
}

const maxDepth = 200

func (p *javaParser) alternatives() (*pattern, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	defer func() { p.depth-- }()
	var all []*pattern
	for {
		s, err := p.sequence()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		if !p.accept('|') {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return &pattern{op: opAlt, subs: all}, nil
}

func (p *javaParser) sequence() (*pattern, error) {
	seq := &pattern{op: opCat}
	for {
		var item *pattern
		var err error
		switch c := p.peek(); c {
		case eof, '|', ')':
			return seq, nil
		case '(':
			item, err = p.group()
		case '[':
			p.pos++
			item, err = p.classItem()
		case '\\':
			item, err = p.escapeItem()
		case '^':
			p.pos++
			item = &pattern{op: opBegin}
		case '$':
			p.pos++
			item = &pattern{op: opEnd}
		case '.':
			p.pos++
			item = p.dot()
		case '*', '+', '?':
			return nil, fmt.Errorf("nothing before %q to repeat", c)
		case '{':
			return nil, errors.New(`"{" repeats nothing; write "\{" for the character`)
		default:
			p.pos++
			item = p.literal(c)
		}
		if err == nil && item != nil {
			item, err = p.repeated(item)
		}
		if err != nil {
			return nil, err
		}
		if item != nil { // not only flags
			seq.subs = append(seq.subs, item)
		}
	}
}

func (p *javaParser) dot() *pattern {
	if p.dotAll {
		return setItem(runes(0, utf8.MaxRune))
	}
	return setItem(javaLineEnds().negate())
}

func javaLineEnds() runeSet { return runes('\n', '\n', '\r', '\r', 0x85, 0x85, 0x2028, 0x2029) }

func setItem(s runeSet) *pattern { return &pattern{op: opSet, set: s} }

func (p *javaParser) literal(c rune) *pattern { return setItem(p.fold(runes(c, c))) }

func (p *javaParser) fold(s runeSet) runeSet {
	if p.ignoreCase {
		return s.foldASCII()
	}
	return s
}

func (p *javaParser) repeated(item *pattern) (*pattern, error) {
	r := &pattern{op: opRepeat, subs: []*pattern{item}, max: -1}
	switch p.peek() {
	case '?':
		r.max = 1
	case '*':
	case '+':
		r.min = 1
	case '{':
		p.pos++
		var ok bool
		if r.min, ok = p.number(); !ok {
			return nil, errors.New(`bad repetition; write "\{" for the character`)
		}
		r.max = r.min
		if p.accept(',') {
			if r.max, ok = p.number(); !ok {
				r.max = -1
			}
		}
		if p.peek() != '}' || r.max >= 0 && r.max < r.min {
			return nil, errors.New("bad repetition")
		}
	default:
		return item, nil
	}
	p.pos++
	switch p.peek() {
	case '?':
		p.pos++
		r.lazy = true
	case '+':
		return nil, needsMemory("possessive repetition")
	}
	return r, nil
}

func (p *javaParser) number() (int, bool) {
	n, ok := 0, false
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		n, ok = min(n*10+int(c-'0'), 1<<20), true
		p.pos++
	}
	return n, ok
}

// group reads the contents of parentheses; nil if it only sets flags.
func (p *javaParser) group() (*pattern, error) {
	p.pos++
	ignoreCase, dotAll := p.ignoreCase, p.dotAll
	out := &pattern{op: opGroup}
	if p.accept('?') {
		switch c := p.next(); c {
		case ':':
			out = nil
		case '=', '!':
			return nil, needsMemory("look-ahead (?" + string(c))
		case '>':
			return nil, needsMemory("the atomic group (?>")
		case '<':
			if c := p.peek(); c == '=' || c == '!' {
				return nil, needsMemory("look-behind (?<" + string(c))
			}
			name := ""
			for c := p.next(); c != '>'; c = p.next() {
				if c >= utf8.RuneSelf || c < 0 || !isAlnum(byte(c)) || name == "" && c <= '9' {
					return nil, errors.New("bad name of a group")
				}
				name += string(c)
			}
			if name == "" || p.names[name] {
				return nil, errors.New("bad or repeated name of a group")
			}
			p.names[name] = true
			out.name = name
		default:
			p.pos--
			if err := p.flags(); err != nil {
				return nil, err
			}
			if p.accept(')') {
				return nil, nil
			}
			if !p.accept(':') {
				return nil, errors.New("bad group")
			}
			out = nil
		}
	}
	sub, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.accept(')') {
		return nil, errors.New("missing )")
	}
	p.ignoreCase, p.dotAll = ignoreCase, dotAll
	if out == nil {
		return sub, nil
	}
	out.subs = []*pattern{sub}
	return out, nil
}

func (p *javaParser) flags() error {
	on := true
	for {
		switch c := p.peek(); c {
		case 'i':
			p.ignoreCase = on
		case 's':
			p.dotAll = on
		case '-':
			if !on {
				return errors.New("bad flags")
			}
			on = false
		case 'm', 'd', 'u', 'c', 'x', 'U':
			return fmt.Errorf("the flag %q is not supported", c)
		default:
			return nil
		}
		p.pos++
	}
}

// escapeItem reads what begins with a backslash, outside a class.
func (p *javaParser) escapeItem() (*pattern, error) {
	p.pos++
	switch c := p.peek(); c {
	case 'A', 'B', 'Z', 'b', 'z':
		p.pos++
		if c == 'b' && p.peek() == '{' {
			return nil, errors.New(`"\b{g}" is not supported`)
		}
		return &pattern{op: map[rune]patternOp{'A': opBegin, 'B': opNoWord, 'Z': opEnd, 'b': opWord, 'z': opTextEnd}[c]}, nil
	case '1', '2', '3', '4', '5', '6', '7', '8', '9', 'k':
		return nil, needsMemory(`the back-reference "\` + string(c) + `"`)
	case 'G', 'R', 'X', 'N':
		return nil, fmt.Errorf(`"\%c" is not supported`, c)
	}
	s, c, err := p.escape()
	if err != nil {
		return nil, err
	}
	if s == nil {
		return p.literal(c), nil
	}
	return setItem(s), nil
}

// escape reads what follows a backslash and is allowed in a class: a set or, if
// it is nil, a character.
func (p *javaParser) escape() (runeSet, rune, error) {
	c := p.next()
	switch c {
	case eof:
		return nil, 0, errors.New(`a "\" at the end`)
	case 'p', 'P':
		s, err := p.property()
		if c == 'P' && err == nil {
			s = s.negate()
		}
		return s, 0, err
	case '0':
		n, digits := rune(0), 0
		for digits < 3 && '0' <= p.peek() && p.peek() <= '7' && n*8+p.peek()-'0' <= 0o377 {
			n, digits = n*8+p.next()-'0', digits+1
		}
		if digits == 0 {
			return nil, 0, errors.New(`bad octal escape`)
		}
		return nil, n, nil
	case 'x':
		return p.hexEscape()
	case 'u':
		n, ok := p.hex(4)
		if ok && 0xD800 <= n && n < 0xDC00 && p.peek() == '\\' && p.peekAt(1) == 'u' {
			p.pos += 2
			low, ok2 := p.hex(4)
			n, ok = 0x10000+(n-0xD800)<<10+(low-0xDC00), ok2 && 0xDC00 <= low && low < 0xE000
		}
		if !ok || !utf8.ValidRune(n) {
			return nil, 0, errors.New(`bad "\u" escape`)
		}
		return nil, n, nil
	case 'c':
		if c = p.next(); c < 0 || c >= utf8.RuneSelf {
			return nil, 0, errors.New(`bad "\c" escape`)
		}
		return nil, c ^ 64, nil
	case 't', 'n', 'r', 'f', 'a', 'e':
		return nil, map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'a': '\a', 'e': 0x1B}[c], nil
	}
	if s := javaClass(c | 0x20); s != nil && c < utf8.RuneSelf {
		if c&0x20 == 0 {
			s = s.negate()
		}
		return s, 0, nil
	}
	if c < utf8.RuneSelf && isAlnum(byte(c)) {
		return nil, 0, fmt.Errorf(`bad escape "\%c"`, c)
	}
	return nil, c, nil
}

// javaClass returns the class that a letter is the escape of, or nil.
func javaClass(letter rune) runeSet {
	switch letter {
	case 'd':
		return runes('0', '9')
	case 's':
		return runes('\t', '\r', ' ', ' ')
	case 'w':
		return runes('0', '9', 'A', 'Z', '_', '_', 'a', 'z')
	case 'h':
		return runes('\t', '\t', ' ', ' ', 0xA0, 0xA0, 0x1680, 0x1680, 0x180E, 0x180E, 0x2000, 0x200A, 0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000)
	case 'v':
		return runes('\n', '\r', 0x85, 0x85, 0x2028, 0x2029)
	}
	return nil
}

func (p *javaParser) hexEscape() (runeSet, rune, error) {
	if p.accept('{') {
		n, digits := rune(0), 0
		for c := p.next(); c != '}'; c = p.next() {
			if c < 0 || c >= utf8.RuneSelf || unhex(byte(c)) < 0 || digits > 6 {
				return nil, 0, errors.New(`bad "\x{}" escape`)
			}
			n, digits = n<<4|rune(unhex(byte(c))), digits+1
		}
		if digits == 0 || !utf8.ValidRune(n) {
			return nil, 0, errors.New(`bad "\x{}" escape`)
		}
		return nil, n, nil
	}
	n, ok := p.hex(2)
	if !ok {
		return nil, 0, errors.New(`bad "\x" escape`)
	}
	return nil, n, nil
}

func (p *javaParser) hex(digits int) (n rune, ok bool) {
	for range digits {
		c := p.next()
		if c < 0 || c >= utf8.RuneSelf || unhex(byte(c)) < 0 {
			return 0, false
		}
		n = n<<4 | rune(unhex(byte(c)))
	}
	return n, true
}

// property reads the name of a property after \p and returns its set.
func (p *javaParser) property() (runeSet, error) {
	name := ""
	if p.accept('{') {
		for c := p.next(); c != '}'; c = p.next() {
			if c == eof {
				return nil, errors.New(`missing } of a property`)
			}
			name += string(c)
		}
	} else if c := p.next(); c != eof {
		name = string(c)
	}
	bad := fmt.Errorf(`the property "\p{%s}" is not supported`, clip(name))
	if s, ok := posixClass(name); ok {
		if p.ignoreCase && (name == "Lower" || name == "Upper") {
			return nil, bad
		}
		return s, nil
	}
	general := strings.TrimPrefix(name, "Is")
	switch general {
	case "L", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp":
	case "Lu", "Ll", "Lt":
		if p.ignoreCase {
			return nil, bad
		}
	default:
		if t := script(name); t != nil {
			return ofTable(t), nil
		}
		// For the rest Java and package unicode differ, or it is about Java's
		// own methods and versions.
		return nil, bad
	}
	return ofTable(unicode.Categories[general]), nil
}

// script returns a script by the name Java gives it, except for ISO codes.
func script(name string) *unicode.RangeTable {
	for _, prefix := range []string{"Is", "script=", "sc="} {
		if n, ok := strings.CutPrefix(name, prefix); ok {
			for s, t := range unicode.Scripts {
				if strings.EqualFold(s, n) {
					return t
				}
			}
		}
	}
	return nil
}

// posixClass returns one of Java's classes for US-ASCII only.
func posixClass(name string) (runeSet, bool) {
	switch name {
	case "Lower":
		return runes('a', 'z'), true
	case "Upper":
		return runes('A', 'Z'), true
	case "ASCII":
		return runes(0, 0x7F), true
	case "Alpha":
		return runes('A', 'Z', 'a', 'z'), true
	case "Digit":
		return runes('0', '9'), true
	case "Alnum":
		return runes('0', '9', 'A', 'Z', 'a', 'z'), true
	case "Punct":
		return runes('!', '/', ':', '@', '[', '`', '{', '~'), true
	case "Graph":
		return runes('!', '~'), true
	case "Print":
		return runes(' ', '~'), true
	case "Blank":
		return runes('\t', '\t', ' ', ' '), true
	case "Cntrl":
		return runes(0, 0x1F, 0x7F, 0x7F), true
	case "XDigit":
		return runes('0', '9', 'A', 'F', 'a', 'f'), true
	case "Space":
		return runes('\t', '\r', ' ', ' '), true
	}
	return nil, false
}
