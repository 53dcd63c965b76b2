package fields

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/andybalholm/cascadia"
	"github.com/antchfx/xpath"
	"golang.org/x/net/html"

	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/extract/internal/dom"
)

// source is one way to find the values of a field.
type source struct {
	css    cascadia.Sel
	xpath  *xpath.Expr
	path   *path
	regexp *regexp.Regexp // of the page if it is alone, else of a value
	attr   string
	as     string // "", "number" or "url"
	all    bool
}

// values returns the values that a source finds in a page.
func (s *source) values(d *document) []string {
	var found []string
	// add reports whether more values are wanted.
	add := func(v string) bool {
		if s.regexp != nil && (s.css != nil || s.xpath != nil || s.path != nil) {
			v = match(s.regexp, v)
		}
		if v = s.convert(d, dom.Clip(dom.Fold(v), maxValue)); v != "" {
			found = append(found, v)
		}
		return d.ctx.Err() == nil && (len(found) == 0 || s.all && len(found) < maxValues)
	}
	switch {
	case s.css != nil:
		for n := range dom.Elements(d.Doc) {
			if s.css.Match(n) && !add(s.valueOf(n)) || d.ctx.Err() != nil {
				break
			}
		}
	case s.xpath != nil:
		s.addXPath(d, add)
	case s.path != nil:
		for _, v := range d.jsonLD() {
			if !s.path.find(v, 0, add) {
				break
			}
		}
	default:
		for _, m := range s.regexp.FindAllSubmatchIndex(d.UTF8, maxValues) {
			at := m[:2]
			if len(m) > 2 && m[2] >= 0 {
				at = m[2:4]
			}
			if !add(html.UnescapeString(string(d.UTF8[at[0]:at[1]]))) {
				break
			}
		}
	}
	return found
}

func (s *source) addXPath(d *document, add func(string) bool) {
	switch v := s.xpath.Evaluate(newNavigator(d.ctx, d.Doc)).(type) {
	case *xpath.NodeIterator:
		for v.MoveNext() {
			nav := v.Current().(*navigator)
			value := ""
			if nav.NodeType() == xpath.AttributeNode {
				value = nav.Value()
			} else {
				value = s.valueOf(nav.node)
			}
			if !add(value) {
				return
			}
		}
	case float64:
		add(strconv.FormatFloat(v, 'f', -1, 64))
	default: // a string or a bool
		add(fmt.Sprint(v))
	}
}

// valueOf returns the value of a node.
func (s *source) valueOf(n *html.Node) string {
	if s.attr != "" {
		return dom.Attr(n, s.attr)
	}
	if n.Type == html.TextNode {
		return n.Data
	}
	if n.Data == "script" || n.Data == "style" {
		if n.FirstChild == nil {
			return ""
		}
		return n.FirstChild.Data
	}
	return dom.Text(n, 16*maxValue)
}

// match returns the first group of a match, or all of it.
func match(re *regexp.Regexp, s string) string {
	m := re.FindStringSubmatch(s)
	switch {
	case m == nil:
		return ""
	case len(m) > 1:
		return m[1]
	}
	return m[0]
}

func (s *source) convert(d *document, v string) string {
	switch s.as {
	case "number":
		return number(v)
	case "url":
		if v == "" {
			return ""
		}
		v, _ = parse.Resolve(d.Base, v)
		return v
	}
	return v
}

// number returns the first number in a text, with a point before its decimals: the last comma or point is that,
// unless three digits follow and it may stand between thousands.
func number(s string) string {
	start := strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' })
	if start < 0 {
		return ""
	}
	sign := ""
	if before := strings.TrimRightFunc(s[:start], func(r rune) bool { return unicode.Is(unicode.Sc, r) || r == ' ' }); strings.HasSuffix(before, "-") || strings.HasSuffix(before, "−") {
		sign = "-"
	}
	var groups []string // of digits
	var seps []rune
	digits := ""
	runes := []rune(s[start:])
	isDigit := func(i int) bool { return i < len(runes) && runes[i] >= '0' && runes[i] <= '9' }
	for i, r := range runes {
		if isDigit(i) {
			digits += string(r)
			continue
		}
		if !strings.ContainsRune(".,' \u00a0\u202f’", r) || !isDigit(i+1) || (r == ' ' || r == '\u00a0' || r == '\u202f') && (!isDigit(i+3) || isDigit(i+4)) {
			break
		}
		groups, seps, digits = append(groups, digits), append(seps, r), ""
	}
	groups = append(groups, digits)
	last := len(seps) - 1
	decimal := false
	if last >= 0 && (seps[last] == '.' || seps[last] == ',') {
		switch same := strings.Count(string(seps), string(seps[last])); {
		case same > 1: // between thousands
		case last > 0: // another sign is between thousands
			decimal = true
		default:
			decimal = len(groups[1]) != 3 || groups[0] == "0" || seps[0] == '.' && len(groups[0]) > 3
		}
	}
	if decimal {
		return sign + strings.Join(groups[:len(groups)-1], "") + "." + groups[len(groups)-1]
	}
	return sign + strings.Join(groups, "")
}

// path is a path of JSON-LD.
type path struct {
	kind  string // the type of the object that it begins at; empty for any object at the top
	steps []step
}

// step is a property or, if name is empty, an element of an array.
type step struct {
	name  string
	index int
}

var stepPattern = regexp.MustCompile(`^([^.\[\]]+)?((?:\[[0-9]{1,4}\])*)$`)

func parsePath(s string) (*path, error) {
	p := &path{}
	for i, part := range strings.Split(s, ".") {
		m := stepPattern.FindStringSubmatch(part)
		if m == nil || m[1] == "" {
			return nil, fmt.Errorf("%q is not a path such as Product.offers[0].price", s)
		}
		if i == 0 && unicode.IsUpper([]rune(m[1])[0]) && m[2] == "" {
			p.kind = m[1]
			continue
		}
		p.steps = append(p.steps, step{name: m[1]})
		for _, n := range strings.FieldsFunc(m[2], func(r rune) bool { return r == '[' || r == ']' }) {
			index, _ := strconv.Atoi(n)
			p.steps = append(p.steps, step{index: index})
		}
	}
	if len(p.steps) == 0 {
		return nil, fmt.Errorf("%q names no property of a %s", s, p.kind)
	}
	return p, nil
}

// maxNesting is how deep objects are looked for.
const maxNesting = 12

// find calls add for the values of a path in a value and in the objects in it, until it returns false.
func (p *path) find(v any, depth int, add func(string) bool) bool {
	if depth > maxNesting {
		return true
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if !p.find(e, depth+1, add) {
				return false
			}
		}
	case map[string]any:
		if p.kind == "" || isOfType(v, p.kind) {
			if !follow(v, p.steps, 0, add) {
				return false
			}
		}
		if p.kind == "" {
			return p.find(v["@graph"], depth+1, add)
		}
		// Objects of a type are found wherever they are, in an order that does not change.
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if !p.find(v[k], depth+1, add) {
				return false
			}
		}
	}
	return true
}

func isOfType(o map[string]any, kind string) bool {
	switch t := o["@type"].(type) {
	case string:
		return t == kind || strings.HasSuffix(t, "/"+kind)
	case []any:
		for _, e := range t {
			if s, ok := e.(string); ok && (s == kind || strings.HasSuffix(s, "/"+kind)) {
				return true
			}
		}
	}
	return false
}

// follow calls add for what the steps lead to. Arrays on the way are looked through.
func follow(v any, steps []step, depth int, add func(string) bool) bool {
	if depth > maxNesting {
		return true
	}
	list, isList := v.([]any)
	switch {
	case len(steps) > 0 && steps[0].name == "":
		if isList && steps[0].index < len(list) {
			return follow(list[steps[0].index], steps[1:], depth+1, add)
		}
		if !isList && steps[0].index == 0 { // one value stands for an array of one
			return follow(v, steps[1:], depth+1, add)
		}
		return true
	case isList:
		for _, e := range list {
			if !follow(e, steps, depth+1, add) {
				return false
			}
		}
		return true
	}
	object, isObject := v.(map[string]any)
	if len(steps) > 0 {
		if isObject {
			return follow(object[steps[0].name], steps[1:], depth+1, add)
		}
		return true
	}
	switch v := v.(type) {
	case string:
		return add(html.UnescapeString(v))
	case json.Number:
		return add(v.String())
	case bool:
		return add(strconv.FormatBool(v))
	case map[string]any:
		for _, k := range [...]string{"@value", "name", "@id", "url"} {
			if s, ok := v[k].(string); ok {
				return add(html.UnescapeString(s))
			}
		}
	}
	return true
}
