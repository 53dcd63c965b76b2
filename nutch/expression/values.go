package expression

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/expr-lang/expr"
)

// Values are nil, bool, string, int64, float64 and text; the library makes ints
// of its own constants.

// text is a value of the metadata: a string that counts as a number if it reads
// as one and a number is asked for.
type text string

// failure says that a value is of the wrong kind.
type failure struct{ reason string }

func (f *failure) Error() string { return f.reason }

func fail(format string, args ...any) error { return &failure{fmt.Sprintf(format, args...)} }

// describe names a value in an error.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(shorten(v))
	case text:
		return strconv.Quote(shorten(string(v)))
	}
	return fmt.Sprint(v)
}

func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// whole returns a value as an integer, if it is one.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case text:
		n, err := strconv.ParseInt(string(v), 10, 64)
		return n, err == nil
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// number returns a value as a number, if it is one or reads as one.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case text:
		return parseNumber(string(v))
	case string:
		return parseNumber(v)
	}
	n, ok := whole(v)
	return float64(n), ok
}

// parseNumber reads decimal numbers only, not "Inf", "0x1p-2" or "1_000".
func parseNumber(s string) (float64, bool) {
	if s == "" || strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, int, float64:
		return true
	}
	return false
}

// textOf returns a value as a text, if it is one.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case text:
		return string(v), true
	}
	return "", false
}

// spell writes a value as a text.
func spell(v any) string {
	if s, ok := textOf(v); ok {
		return s
	}
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// truth returns a value as a condition: numbers are true unless they are 0 or NaN, texts if
// they are "true".
func truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case string:
		return v == "true"
	case text:
		return v == "true"
	case float64:
		return v != 0 && v == v
	}
	n, ok := whole(v)
	return ok && n != 0
}

// filled reports whether a value is a text that is true in JEXL.
func filled(v any) bool {
	s, ok := textOf(v)
	return ok && s != "" && s != "false"
}

// order compares two values that are not null. If one is a number so must be the
// other; everything else is compared as text.
func order(a, b any) (c int, comparable bool) {
	if isNumber(a) || isNumber(b) {
		x, xWhole := whole(a)
		y, yWhole := whole(b)
		if xWhole && yWhole {
			return cmp.Compare(x, y), true
		}
		f, ok := number(a)
		g, also := number(b)
		if !ok || !also || f != f || g != g {
			return 0, false
		}
		return cmp.Compare(f, g), true
	}
	return strings.Compare(spell(a), spell(b)), true
}

func equal(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	c, ok := order(a, b)
	return ok && c == 0
}

// less returns the function for a comparison by order.
func less(holds func(c int) bool) func(a, b any) (any, error) {
	return func(a, b any) (any, error) {
		if a == nil || b == nil {
			return false, nil
		}
		c, ok := order(a, b)
		if !ok {
			if x, isFloat := a.(float64); isFloat && x != x {
				return false, nil // a score that is not a number
			}
			if x, isFloat := b.(float64); isFloat && x != x {
				return false, nil
			}
			return nil, fail("%s and %s have no order", describe(a), describe(b))
		}
		return holds(c), nil
	}
}

// calculate returns the function for an operation on numbers. Integers stay
// integers where they fit.
func calculate(name string, ints func(a, b int64) (int64, bool), floats func(a, b float64) (float64, error)) func(a, b any) (any, error) {
	return func(a, b any) (any, error) {
		if a == nil || b == nil {
			return nil, nil
		}
		x, ok := whole(a)
		y, also := whole(b)
		if ok && also {
			if n, ok := ints(x, y); ok {
				return n, nil
			}
		}
		f, ok := number(a)
		g, also := number(b)
		if !ok || !also {
			return nil, fail("%s %s %s is not a number", describe(a), name, describe(b))
		}
		return floats(f, g)
	}
}

func add(a, b any) (any, error) {
	_, aText := a.(string)
	_, bText := b.(string)
	if !aText && !bText {
		// Metadata count as texts only if one of them is not a number.
		_, aText = a.(text)
		_, bText = b.(text)
		_, aNum := number(a)
		_, bNum := number(b)
		aText, bText = aText && !(aNum && bNum), bText && !(aNum && bNum)
	}
	if a == nil || b == nil {
		return nil, nil
	}
	if aText || bText {
		return joined(spell(a), spell(b))
	}
	return calculate("+", func(x, y int64) (int64, bool) {
		s := x + y
		return s, (s > x) == (y > 0)
	}, func(f, g float64) (float64, error) { return f + g, nil })(a, b)
}

func multiply(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	p := x * y
	return p, p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
}

// method describes a method of texts.
type method struct {
	least, most int // arguments
	kind        kind
	native      string // the operator of the library that does the same
}

func methodOf(name string) (method, bool) {
	m, ok := map[string]method{
		"startsWith":       {1, 1, boolean, "startsWith"},
		"endsWith":         {1, 1, boolean, "endsWith"},
		"contains":         {1, 1, boolean, "contains"},
		"matches":          {1, 1, boolean, ""},
		"equals":           {1, 1, boolean, ""},
		"equalsIgnoreCase": {1, 1, boolean, ""},
		"isEmpty":          {0, 0, boolean, ""},
		"toLowerCase":      {0, 0, str, ""},
		"toUpperCase":      {0, 0, str, ""},
		"trim":             {0, 0, str, ""},
		"concat":           {1, 1, str, ""},
		"replace":          {2, 2, str, ""},
		"substring":        {1, 2, str, ""},
		"indexOf":          {1, 1, num, ""},
		"lastIndexOf":      {1, 1, num, ""},
		"compareTo":        {1, 1, num, ""},
		"length":           {0, 0, num, ""},
		"size":             {0, 0, num, ""},
	}[name]
	return m, ok
}

// length counts UTF-16 units, as Java does.
func length(s string) int64 {
	n := int64(0)
	for _, r := range s {
		n += int64(max(utf16.RuneLen(r), 1))
	}
	return n
}

// units converts an index in bytes, or -1.
func units(s string, i int) int64 {
	if i < 0 {
		return -1
	}
	return length(s[:i])
}

func substring(s string, from, to any) (any, error) {
	u := utf16.Encode([]rune(s))
	i, ok := whole(from)
	j := int64(len(u))
	if to != nil {
		var also bool
		if j, also = whole(to); !also {
			ok = false
		}
	}
	if !ok || i < 0 || i > j || j > int64(len(u)) {
		return nil, fail("substring of %d characters from %s to %s", len(u), describe(from), describe(to))
	}
	return string(utf16.Decode(u[i:j])), nil
}

// functions returns the functions that the translated code calls.
func functions(regexps []*regexp.Regexp) []expr.Option {
	var out []expr.Option
	two := func(name string, fn func(a, b any) (any, error), typ any) {
		out = append(out, expr.Function(name, func(p ...any) (any, error) { return fn(p[0], p[1]) }, typ))
	}
	one := func(name string, fn func(a any) (any, error), typ any) {
		out = append(out, expr.Function(name, func(p ...any) (any, error) { return fn(p[0]) }, typ))
	}
	var (
		test    = new(func(a, b any) bool)
		compute = new(func(a, b any) any)
		test1   = new(func(a any) bool)
		get1    = new(func(a any) any)
	)
	two("j_eq", func(a, b any) (any, error) { return equal(a, b), nil }, test)
	out = append(out, expr.Function("j_in", func(p ...any) (any, error) {
		for _, e := range p[1:] {
			if equal(p[0], e) {
				return true, nil
			}
		}
		return false, nil
	}, new(func(a any, list ...any) bool)))
	two("j_lt", less(func(c int) bool { return c < 0 }), test)
	two("j_le", less(func(c int) bool { return c <= 0 }), test)
	two("j_gt", less(func(c int) bool { return c > 0 }), test)
	two("j_ge", less(func(c int) bool { return c >= 0 }), test)
	two("j_add", add, compute)
	two("j_sub", calculate("-", func(x, y int64) (int64, bool) {
		d := x - y
		return d, (d < x) == (y > 0)
	}, func(f, g float64) (float64, error) { return f - g, nil }), compute)
	two("j_mul", calculate("*", multiply, func(f, g float64) (float64, error) { return f * g, nil }), compute)
	two("j_div", calculate("/", func(x, y int64) (int64, bool) {
		if y == 0 || x == math.MinInt64 && y == -1 {
			return 0, false
		}
		return x / y, true
	}, func(f, g float64) (float64, error) {
		if g == 0 {
			return 0, fail("division by zero")
		}
		return f / g, nil
	}), compute)
	two("j_mod", calculate("%", func(x, y int64) (int64, bool) {
		if y == 0 || y == -1 {
			return 0, y == -1
		}
		return x % y, true
	}, func(f, g float64) (float64, error) {
		if g == 0 {
			return 0, fail("division by zero")
		}
		return math.Mod(f, g), nil
	}), compute)
	one("j_neg", func(a any) (any, error) {
		if n, ok := whole(a); ok && n != math.MinInt64 {
			return -n, nil
		}
		return withSign(a, -1)
	}, get1)
	one("j_pos", func(a any) (any, error) {
		if n, ok := whole(a); ok {
			return n, nil
		}
		return withSign(a, 1)
	}, get1)
	one("j_true", func(a any) (any, error) { return truth(a), nil }, test1)
	one("j_filled", func(a any) (any, error) { return truth(a) || filled(a), nil }, test1)
	one("j_truthy", func(a any) (any, error) {
		if truth(a) {
			return a, nil
		}
		if filled(a) {
			return a, nil // any existing text is true before ?:
		}
		return nil, nil
	}, get1)
	one("j_any", func(a any) (any, error) { return a, nil }, get1)
	two("j_there", func(a, name any) (any, error) {
		if a == nil {
			return nil, fail("%v is missing", name)
		}
		return a, nil
	}, compute)
	one("j_empty", func(a any) (any, error) {
		s, isText := textOf(a)
		return a == nil || isText && s == "", nil
	}, test1)
	one("j_size", func(a any) (any, error) {
		if a == nil {
			return nil, nil
		}
		s, ok := textOf(a)
		if !ok {
			return nil, fail("%s has no size", describe(a))
		}
		return length(s), nil
	}, get1)
	two("j_match", func(a, n any) (any, error) { return a != nil && regexps[n.(int)].MatchString(spell(a)), nil }, test)
	two("j_startsWithIs", func(a, b any) (any, error) {
		return a != nil && b != nil && strings.HasPrefix(spell(a), spell(b)), nil
	}, test)
	two("j_endsWithIs", func(a, b any) (any, error) {
		return a != nil && b != nil && strings.HasSuffix(spell(a), spell(b)), nil
	}, test)
	return append(out, methods()...)
}

func withSign(a any, sign float64) (any, error) {
	if a == nil {
		return nil, nil
	}
	f, ok := number(a)
	if !ok {
		return nil, fail("%s is not a number", describe(a))
	}
	return sign * f, nil
}

// methods returns the methods of texts, each as a function of the text and its arguments.
// For null they return null, or false.
func methods() []expr.Option {
	var out []expr.Option
	def := func(name string, fn func(s string, args []string, raw []any) (any, error)) {
		m, _ := methodOf(name)
		one := any(new(func(...any) any))
		if m.kind == boolean {
			one = new(func(...any) bool)
		}
		out = append(out, expr.Function("m_"+name, func(p ...any) (any, error) {
			s, ok := textOf(p[0])
			args := make([]string, len(p)-1)
			for i, a := range p {
				if a == nil {
					if m.kind == boolean {
						return false, nil
					}
					return nil, nil
				}
				if i > 0 {
					args[i-1] = spell(a)
				}
			}
			if !ok {
				return nil, fail("%s has no method %s", describe(p[0]), name)
			}
			return fn(s, args, p[1:])
		}, one))
	}
	def("startsWith", func(s string, a []string, _ []any) (any, error) { return strings.HasPrefix(s, a[0]), nil })
	def("endsWith", func(s string, a []string, _ []any) (any, error) { return strings.HasSuffix(s, a[0]), nil })
	def("contains", func(s string, a []string, _ []any) (any, error) { return strings.Contains(s, a[0]), nil })
	def("equals", func(s string, a []string, _ []any) (any, error) { return s == a[0], nil })
	def("equalsIgnoreCase", func(s string, a []string, _ []any) (any, error) { return strings.EqualFold(s, a[0]), nil })
	def("isEmpty", func(s string, _ []string, _ []any) (any, error) { return s == "", nil })
	def("toLowerCase", func(s string, _ []string, _ []any) (any, error) { return strings.ToLower(s), nil })
	def("toUpperCase", func(s string, _ []string, _ []any) (any, error) { return strings.ToUpper(s), nil })
	def("trim", func(s string, _ []string, _ []any) (any, error) {
		return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }), nil
	})
	def("concat", func(s string, a []string, _ []any) (any, error) { return joined(s, a[0]) })
	def("replace", func(s string, a []string, _ []any) (any, error) { return replace(s, a[0], a[1]) })
	def("substring", func(s string, _ []string, raw []any) (any, error) {
		if len(raw) == 1 {
			return substring(s, raw[0], nil)
		}
		return substring(s, raw[0], raw[1])
	})
	def("indexOf", func(s string, a []string, _ []any) (any, error) { return units(s, strings.Index(s, a[0])), nil })
	def("lastIndexOf", func(s string, a []string, _ []any) (any, error) { return units(s, strings.LastIndex(s, a[0])), nil })
	def("compareTo", func(s string, a []string, _ []any) (any, error) { return int64(strings.Compare(s, a[0])), nil })
	def("length", func(s string, _ []string, _ []any) (any, error) { return length(s), nil })
	def("size", func(s string, _ []string, _ []any) (any, error) { return length(s), nil })
	return out
}

// maxText bounds the results of replacing and joining: doubling a text in every step would
// fill memory.
const maxText = 1 << 20

func joined(a, b string) (any, error) {
	if len(a)+len(b) > maxText {
		return nil, fail("a text of more than %d bytes", maxText)
	}
	return a + b, nil
}

func replace(s, old, new string) (any, error) {
	if n := strings.Count(s, old); int64(len(s))+int64(n)*int64(len(new)-len(old)) > maxText {
		return nil, fail("replace makes a text of more than %d bytes", maxText)
	}
	return strings.ReplaceAll(s, old, new), nil
}
