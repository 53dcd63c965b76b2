package expression

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// token is a word of the language.
type token struct {
	kind tokenKind
	text string // an operator in its symbolic form, a name, or the value of a text
	num  any    // int64 or float64
	at   int    // offset in the source
}

type tokenKind uint8

const (
	endToken tokenKind = iota
	nameToken
	numberToken
	textToken
	operatorToken
)

// operators lists the operators in the order in which they are tried, longer ones first.
const operators = "=== ?. == != =~ !~ =^ !^ =$ !$ <= >= && || ?: ?? .. ( ) [ ] { } ? : , . + - * / % < > ! = ; & | ^ ~ @ #"

// word returns the symbol that a word stands for.
func word(s string) (string, bool) {
	switch s {
	case "eq":
		return "==", true
	case "ne":
		return "!=", true
	case "lt":
		return "<", true
	case "gt":
		return ">", true
	case "le":
		return "<=", true
	case "ge":
		return ">=", true
	case "and":
		return "&&", true
	case "or":
		return "||", true
	case "not":
		return "!", true
	case "div":
		return "/", true
	case "mod":
		return "%", true
	}
	return "", false
}

// next reads a token. It panics with an *Error, which translate recovers: otherwise the
// grammar would consist of returns.
func (t *translator) next() token {
	for t.pos < len(t.src) && strings.IndexByte(" \t\r\n\f", t.src[t.pos]) >= 0 {
		t.pos++
	}
	at, rest := t.pos, t.src[t.pos:]
	if rest == "" {
		return token{at: at}
	}
	first, _ := utf8.DecodeRuneInString(rest)
	switch {
	case rest[0] == '\'' || rest[0] == '"':
		return token{kind: textToken, text: t.quoted(), at: at}
	case '0' <= rest[0] && rest[0] <= '9', rest[0] == '.' && len(rest) > 1 && '0' <= rest[1] && rest[1] <= '9':
		return token{kind: numberToken, num: t.number(), at: at}
	case nameStart(first):
		n := strings.IndexFunc(rest, func(r rune) bool { return !nameStart(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		t.pos += n
		if op, ok := word(rest[:n]); ok {
			return token{kind: operatorToken, text: op, at: at}
		}
		return token{kind: nameToken, text: rest[:n], at: at}
	}
	for op := range strings.SplitSeq(operators, " ") {
		if strings.HasPrefix(rest, op) {
			t.pos += len(op)
			return token{kind: operatorToken, text: op, at: at}
		}
	}
	t.fail(at, "unexpected "+strconv.QuoteRune(first))
	return token{}
}

func nameStart(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

// quoted reads a text. A backslash stands before a quote, another backslash,
// uXXXX, or n, r, t and f; before anything else it is an ordinary character, so
// that regular expressions need no doubling.
func (t *translator) quoted() string {
	start := t.pos
	quote := t.src[start]
	var b strings.Builder
	for i := start + 1; i < len(t.src); i++ {
		c := t.src[i]
		if c == quote {
			t.pos = i + 1
			return b.String()
		}
		if c != '\\' || i+1 == len(t.src) {
			b.WriteByte(c)
			continue
		}
		i++
		switch e := t.src[i]; e {
		case quote, '\\':
			b.WriteByte(e)
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+5 > len(t.src) {
				t.fail(i-1, `\u needs four hexadecimal digits`)
			}
			n, err := strconv.ParseUint(t.src[i+1:i+5], 16, 16)
			if err != nil {
				t.fail(i-1, `\u needs four hexadecimal digits`)
			}
			b.WriteRune(rune(n)) // half of a pair becomes U+FFFD
			i += 4
		default:
			b.WriteByte('\\')
			b.WriteByte(e)
		}
	}
	t.fail(start, "text does not end")
	return ""
}

const dateLayout = "2006-01-02T15:04:05Z"

// number reads a number or a date.
func (t *translator) number() any {
	start, rest := t.pos, t.src[t.pos:]
	if len(rest) >= len(dateLayout) && isDate(rest[:len(dateLayout)]) {
		t.pos += len(dateLayout)
		return t.date(start, rest[:len(dateLayout)-1])
	}
	digits := rest[:numberLen(rest)]
	end := len(digits)
	hex := isHexNumber(digits)
	float := !hex && strings.ContainsAny(digits, ".eE")
	if end < len(rest) && strings.IndexByte("lLhHfFdDbB", rest[end]) >= 0 { // Java's marks of size
		float = float || strings.IndexByte("fFdDbB", rest[end]) >= 0
		end++
	}
	if r, _ := utf8.DecodeRuneInString(rest[end:]); end < len(rest) && (nameStart(r) || unicode.IsDigit(r)) {
		t.fail(start, "not a number")
	}
	t.pos += end
	if !float {
		base, body := 10, digits
		if hex {
			base, body = 16, digits[2:]
		} else if len(digits) > 1 && digits[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseInt(body, base, 64)
		if err == nil {
			return n
		}
		if base != 10 {
			t.fail(start, "not a number")
		}
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		t.fail(start, "not a number")
	}
	return f
}

// date returns the milliseconds of a date without its Z, which is a letter of the layout here,
// so that the zone counts.
func (t *translator) date(start int, text string) int64 {
	zone := t.o.Location
	if zone == nil {
		zone = time.UTC
	}
	at, err := time.ParseInLocation("2006-01-02T15:04:05", text, zone)
	if err != nil {
		t.fail(start, "invalid date")
	}
	return at.UnixMilli()
}

// numberLen returns how many bytes of s may belong to the number that it begins with, without a
// mark of its size.
func numberLen(s string) int {
	isDigit := func(i int) bool { return i < len(s) && '0' <= s[i] && s[i] <= '9' }
	if isHexNumber(s) {
		n := 2
		for n < len(s) && isHex(s[n]) {
			n++
		}
		return n
	}
	n, point, exponent := 0, false, false
	for {
		switch {
		case isDigit(n):
		case n < len(s) && s[n] == '.' && isDigit(n+1) && !point && !exponent:
			point = true
		case n < len(s) && s[n]|0x20 == 'e' && !exponent:
			exponent = true
			if n+1 < len(s) && (s[n+1] == '+' || s[n+1] == '-') {
				n++
			}
		default:
			return n
		}
		n++
	}
}

func isHexNumber(s string) bool { return strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func isDate(s string) bool {
	for i := range len(s) {
		want := dateLayout[i]
		if '0' <= want && want <= '9' {
			if s[i] < '0' || s[i] > '9' {
				return false
			}
		} else if s[i] != want {
			return false
		}
	}
	return true
}
