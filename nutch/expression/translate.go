package expression

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/types"
)

// The language is parsed here and written again in that of the library, with
// everything in parentheses and each operation whose meaning differs from the
// library's as a call of a function in values.go. So what is evaluated is only
// ever what this file writes.

const (
	maxSource = 1 << 14 // bytes of an expression
	maxDepth  = 100
	// maxNodes bounds what it compiles to: a byte becomes three at most, as x of
	// x||x does under NutchCompat.
	maxNodes = 4 * maxSource
)

// kind is what is known about a value before it is computed.
type kind uint8

const (
	unknown kind = iota // metadata, and values computed from them: may be null
	boolean
	num
	str
	null
)

// String names the kind, for error messages.
func (k kind) String() string {
	return [...]string{"a value", "true or false", "a number", "a text", "null"}[k]
}

// sample is a value of the kind, for the library. It distinguishes the two types of
// numbers at run time.
func (k kind) sample() any {
	if k == str {
		return types.String
	}
	return types.Any
}

func environment(slots map[string]any) types.Map {
	m := types.Map{}
	for slot, t := range slots {
		m[slot] = t.(types.Type)
	}
	return m
}

// node is a part of the expression, written in the language of the library.
type node struct {
	code string
	kind kind
	at   int
	// text is the value of a constant text, and name what a bare name stands for;
	// known says that it is not metadata.
	text  *string
	name  string
	known bool
	list  []node // a list, allowed only to the right of =~
}

type translator struct {
	src    string
	o      Options
	lookup func(name string) (k kind, known bool, alike string)

	pos     int
	tok     token
	depth   int
	slots   map[string]string // name -> variable of the code
	order   []string
	consts  []any // c0, c1 and so on in the code
	regexps []*regexp.Regexp
}

func (t *translator) fail(at int, reason string) {
	panic(&Error{Source: t.src, Offset: at, Reason: reason})
}

func (t *translator) translate() (n node, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(*Error)
			if !ok {
				panic(p)
			}
			err = e
		}
	}()
	if len(t.src) > maxSource {
		t.fail(maxSource, fmt.Sprintf("longer than %d bytes", maxSource))
	}
	if !utf8.ValidString(t.src) {
		t.fail(0, "not in UTF-8")
	}
	t.advance()
	if t.tok.kind == endToken {
		t.fail(0, "empty")
	}
	n = t.ternary()
	for t.is(";") {
		t.advance()
	}
	if t.tok.kind != endToken {
		t.unexpected()
	}
	t.value(n)
	return n, nil
}

func (t *translator) advance() { t.tok = t.next() }

func (t *translator) is(ops ...string) bool {
	return t.tok.kind == operatorToken && slices.Contains(ops, t.tok.text)
}

func (t *translator) expect(op string) {
	if !t.is(op) {
		if t.tok.kind == endToken {
			t.fail(t.tok.at, "missing "+strconv.Quote(op)+" at the end")
		}
		t.fail(t.tok.at, "want "+strconv.Quote(op))
	}
	t.advance()
}

func (t *translator) unexpected() {
	switch {
	case t.tok.kind == endToken:
		t.fail(t.tok.at, "ends too early")
	case t.is("="):
		t.fail(t.tok.at, "nothing can be assigned; == compares")
	case t.tok.kind == nameToken:
		t.fail(t.tok.at, "unexpected name "+t.tok.text)
	case t.tok.kind == operatorToken:
		t.fail(t.tok.at, "unexpected "+t.tok.text)
	}
	t.fail(t.tok.at, "unexpected value")
}

// value checks that a node is one value.
func (t *translator) value(n node) node {
	if n.list != nil {
		t.fail(n.at, "a list is allowed only to the right of =~ and !~")
	}
	return n
}

// use returns the code of a value; under NutchCompat a name must be there.
func (t *translator) use(n node) string {
	t.value(n)
	if t.o.NutchCompat && n.name != "" && n.kind == unknown {
		return fmt.Sprintf("j_there(%s, %q)", n.code, n.name)
	}
	return n.code
}

// condition returns the code of a value used as a condition.
func (t *translator) condition(n node) string {
	if n.kind == boolean {
		return n.code
	}
	if n.kind == str && n.text != nil {
		t.fail(n.at, "a text where true or false is needed")
	}
	return t.truth() + "(" + t.use(n) + ")"
}

// truth returns the function that converts a value to true or false.
func (t *translator) truth() string {
	if t.o.NutchCompat {
		return "j_filled"
	}
	return "j_true"
}

func (t *translator) ternary() node {
	if t.depth++; t.depth > maxDepth {
		t.fail(t.tok.at, "nested too deeply")
	}
	defer func() { t.depth-- }()
	n := t.or()
	switch {
	case t.is("?"):
		t.value(n)
		cond := n.code // a missing name is false, even under NutchCompat
		if n.kind != boolean {
			cond = t.truth() + "(" + n.code + ")"
		}
		t.advance()
		a := t.value(t.ternary())
		t.expect(":")
		b := t.value(t.ternary())
		k := unknown
		if a.kind == b.kind {
			k = a.kind
		}
		return node{code: "(" + cond + " ? " + t.use(a) + " : " + t.use(b) + ")", kind: k, at: n.at}
	case t.is("?:"):
		t.value(n)
		t.advance()
		b := t.value(t.ternary())
		return node{code: "(j_truthy(" + n.code + ") ?? " + t.use(b) + ")", kind: join(n.kind, b.kind), at: n.at}
	case t.is("??"):
		t.value(n)
		t.advance()
		b := t.value(t.ternary())
		return node{code: "(j_any(" + n.code + ") ?? " + t.use(b) + ")", kind: join(n.kind, b.kind), at: n.at}
	}
	return n
}

// join returns the kind of one of two values. An unknown one may be null, and then the
// other value counts.
func join(a, b kind) kind {
	if a == b {
		return a
	}
	return unknown
}

func (t *translator) or() node {
	n := t.and()
	for t.is("||") {
		t.advance()
		m := t.and()
		n = node{code: "(" + t.condition(n) + " || " + t.condition(m) + ")", kind: boolean, at: n.at}
	}
	return n
}

func (t *translator) and() node {
	n := t.comparison()
	for t.is("&&") {
		t.advance()
		m := t.comparison()
		n = node{code: "(" + t.condition(n) + " && " + t.condition(m) + ")", kind: boolean, at: n.at}
	}
	return n
}

// comparison reads at most one comparison: a < b < c is an error, as in JEXL.
func (t *translator) comparison() node {
	n := t.relation()
	if t.is("==", "!=", "=~", "!~", "=^", "!^", "=$", "!$") {
		op := t.tok
		t.advance()
		n = t.compare(n, op, t.relation())
	}
	return n
}

func (t *translator) relation() node {
	n := t.sum()
	if t.is("<", ">", "<=", ">=") {
		op := t.tok
		t.advance()
		n = t.compare(n, op, t.sum())
	}
	return n
}

func (t *translator) compare(a node, op token, b node) node {
	out := node{kind: boolean, at: a.at}
	not := ""
	if op.text[0] == '!' {
		not = "!"
	}
	use := t.use
	if op.text == "==" || op.text == "!=" || (op.text == "=~" || op.text == "!~") && b.list == nil {
		use = func(n node) string { // a null signature is not missing
			if n.known {
				return t.value(n).code
			}
			return t.use(n)
		}
	}
	left := use(a)
	switch op.text {
	case "=~", "!~":
		if b.list != nil {
			// One call, so that left is written once: lists in lists would double the
			// code at each step.
			code := []string{left}
			for _, e := range b.list {
				code = append(code, t.use(e))
			}
			out.code = "j_in(" + strings.Join(code, ", ") + ")"
		} else {
			out.code = t.match(left, b)
		}
		out.code = "(" + not + out.code + ")"
		return out
	}
	right := use(b)
	// The library compares numbers as ints.
	native := a.kind == b.kind && (a.kind == num && strconv.IntSize == 64 || a.kind == str)
	if !native {
		t.comparable(a, b)
	}
	switch op.text {
	case "=^", "!^":
		out.code = "(" + not + "j_startsWithIs(" + left + ", " + right + "))"
	case "=$", "!$":
		out.code = "(" + not + "j_endsWithIs(" + left + ", " + right + "))"
	case "==", "!=":
		if native {
			out.code = "(" + left + " " + op.text + " " + right + ")"
		} else {
			out.code = "(" + not + "j_eq(" + left + ", " + right + "))"
		}
	default:
		if native {
			out.code = "(" + left + " " + op.text + " " + right + ")"
		} else {
			out.code = map[string]string{"<": "j_lt", "<=": "j_le", ">": "j_gt", ">=": "j_ge"}[op.text] + "(" + left + ", " + right + ")"
		}
	}
	return out
}

// comparable fails if a constant text that is not a number is compared with a number: it
// would never be equal, and has no order.
func (t *translator) comparable(a, b node) {
	if b.kind == num {
		a, b = b, a
	}
	if a.kind == num && b.text != nil {
		if _, ok := number(*b.text); !ok {
			t.fail(b.at, strconv.Quote(*b.text)+" is compared with a number")
		}
	}
}

// match writes a match with a constant regular expression.
func (t *translator) match(left string, pattern node) string {
	if pattern.text == nil {
		t.fail(pattern.at, "a regular expression must be a constant text")
	}
	if _, err := regexp.Compile(*pattern.text); err != nil {
		t.fail(pattern.at, err.Error())
	}
	re, err := regexp.Compile(`\A(?:` + *pattern.text + `)\z`)
	if err != nil {
		t.fail(pattern.at, err.Error())
	}
	t.regexps = append(t.regexps, re)
	return fmt.Sprintf("j_match(%s, %d)", left, len(t.regexps)-1)
}

func (t *translator) sum() node {
	n := t.product()
	for t.is("+", "-") {
		op := t.tok.text
		t.advance()
		m := t.product()
		k, fn := num, "j_sub"
		if op == "+" {
			fn = "j_add"
			if n.kind == str || m.kind == str {
				k = str
			}
		}
		n = t.arithmetic(n, fn, m, k)
	}
	return n
}

func (t *translator) product() node {
	n := t.unary()
	for t.is("*", "/", "%") {
		fn := map[string]string{"*": "j_mul", "/": "j_div", "%": "j_mod"}[t.tok.text]
		t.advance()
		n = t.arithmetic(n, fn, t.unary(), num)
	}
	return n
}

func (t *translator) arithmetic(a node, fn string, b node, k kind) node {
	for _, n := range []node{a, b} {
		if k == num && (n.kind == boolean || n.text != nil) {
			t.fail(n.at, "a number is needed")
		}
		if n.kind == unknown || n.kind == null || n.kind == boolean {
			k = unknown
		}
	}
	return node{code: fn + "(" + t.use(a) + ", " + t.use(b) + ")", kind: k, at: a.at}
}

func (t *translator) unary() node {
	at := t.tok.at
	if t.depth++; t.depth > maxDepth {
		t.fail(at, "nested too deeply")
	}
	defer func() { t.depth-- }()
	switch {
	case t.is("!"):
		t.advance()
		return node{code: "(!" + t.condition(t.unary()) + ")", kind: boolean, at: at}
	case t.is("-", "+"):
		fn := map[string]string{"-": "j_neg", "+": "j_pos"}[t.tok.text]
		t.advance()
		n := t.value(t.unary())
		if n.kind == boolean || n.text != nil {
			t.fail(n.at, "a number is needed")
		}
		k := n.kind
		if k != num {
			k = unknown
		}
		return node{code: fn + "(" + t.use(n) + ")", kind: k, at: at}
	case t.tok.kind == nameToken && (t.tok.text == "size" || t.tok.text == "empty"):
		fn := t.tok.text
		t.advance()
		n := t.value(t.unary())
		if fn == "empty" {
			return node{code: "j_empty(" + n.code + ")", kind: boolean, at: at}
		}
		k := unknown
		if n.kind == str {
			k = num
		}
		return t.calls(node{code: "j_size(" + t.use(n) + ")", kind: k, at: at})
	}
	return t.calls(t.primary())
}

// calls reads the methods that follow a value.
func (t *translator) calls(n node) node {
	for t.is(".", "?.", "[") {
		if t.is("[") {
			t.fail(t.tok.at, "values have no elements")
		}
		t.advance()
		if t.tok.kind != nameToken {
			t.unexpected()
		}
		method := t.tok
		t.advance()
		if !t.is("(") {
			t.fail(method.at, "a value has no property "+method.text)
		}
		n = t.method(n, method)
	}
	return n
}

func (t *translator) method(recv node, method token) node {
	t.expect("(")
	var args []node
	for !t.is(")") {
		if len(args) > 0 {
			t.expect(",")
		}
		args = append(args, t.value(t.ternary()))
	}
	t.expect(")")
	t.value(recv)
	m, ok := methodOf(method.text)
	if !ok {
		t.fail(method.at, "unknown method "+method.text)
	}
	if len(args) < m.least || len(args) > m.most {
		t.fail(method.at, fmt.Sprintf("%s with %d arguments", method.text, len(args)))
	}
	if recv.kind != str && recv.kind != unknown {
		t.fail(method.at, recv.kind.String()+" has no method "+method.text)
	}
	out := node{kind: unknown, at: recv.at}
	if recv.kind == str {
		out.kind = m.kind
	}
	if m.kind == boolean {
		out.kind = boolean // for null, too
	}
	switch {
	case method.text == "matches":
		out.code = t.match(t.use(recv), args[0])
		return out
	case m.native != "" && recv.kind == str && args[0].kind == str:
		out.code = "(" + recv.code + " " + m.native + " " + args[0].code + ")"
		return out
	}
	code := []string{t.use(recv)}
	for _, a := range args {
		if a.kind == unknown || a.kind == null {
			out.kind = join(out.kind, unknown)
			if m.kind == boolean {
				out.kind = boolean
			}
		}
		code = append(code, t.use(a))
	}
	out.code = "m_" + method.text + "(" + strings.Join(code, ", ") + ")"
	return out
}

func (t *translator) primary() node {
	tok := t.tok
	switch {
	case tok.kind == numberToken:
		t.advance()
		return node{code: t.literal(tok.num), kind: num, at: tok.at}
	case tok.kind == textToken:
		t.advance()
		return node{code: strconv.QuoteToASCII(tok.text), kind: str, at: tok.at, text: &tok.text}
	case t.is("("):
		t.advance()
		n := t.ternary()
		t.expect(")")
		n.at = tok.at
		return n
	case t.is("[", "{"):
		closing := map[string]string{"[": "]", "{": "}"}[tok.text]
		t.advance()
		n := node{list: []node{}, at: tok.at}
		for !t.is(closing) {
			if len(n.list) > 0 {
				t.expect(",")
			}
			n.list = append(n.list, t.value(t.ternary()))
		}
		t.advance()
		return n
	case tok.kind == nameToken:
		return t.name()
	}
	t.unexpected()
	return node{}
}

// name reads a name with the dots in it, up to a method.
func (t *translator) name() node {
	tok := t.tok
	t.advance()
	switch tok.text {
	case "true", "false":
		return node{code: tok.text, kind: boolean, at: tok.at}
	case "null":
		return node{code: "nil", kind: null, at: tok.at}
	case "new", "var", "let", "const", "if", "else", "for", "while", "do", "return", "function", "break", "continue", "try", "throw", "import", "pragma", "NaN":
		t.fail(tok.at, tok.text+" is not part of the language")
	}
	if t.is("(") {
		t.fail(tok.at, "unknown function "+tok.text)
	}
	name := tok.text
	for t.is(".") {
		back, dot := t.pos, t.tok
		t.advance()
		part := t.tok
		if part.kind == operatorToken { // eq and the like may be part of a name
			if w := t.src[part.at:t.pos]; len(w) > 1 && w != part.text {
				part.kind, part.text = nameToken, w
			}
		}
		if part.kind == nameToken {
			t.advance()
			if !t.is("(") {
				name += "." + part.text
				continue
			}
		}
		t.pos, t.tok = back, dot // a method, or an error that calls will find
		break
	}
	k, known, alike := t.lookup(name)
	if alike != "" {
		t.fail(tok.at, "unknown name "+name+"; did you mean "+alike+"?")
	}
	if dot := strings.IndexByte(name, '.'); dot > 0 && k == unknown {
		if first, _, _ := t.lookup(name[:dot]); first != unknown {
			t.fail(tok.at, name[:dot]+" has no property "+name[dot+1:])
		}
	}
	slot, ok := t.slots[name]
	if !ok {
		slot = fmt.Sprintf("v%d", len(t.order))
		t.slots[name] = slot
		t.order = append(t.order, name)
	}
	return node{code: slot, kind: k, at: tok.at, name: name, known: known}
}

// literal writes a number for the library, whose own may have 32 bits.
func (t *translator) literal(v any) string {
	t.consts = append(t.consts, v)
	return constant(len(t.consts) - 1)
}

func constant(i int) string { return "c" + strconv.Itoa(i) }
