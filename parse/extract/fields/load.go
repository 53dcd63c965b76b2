package fields

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/antchfx/xpath"
	"go.yaml.in/yaml/v3"
)

// An Error says what is wrong with a file of rules.
type Error struct {
	File string
	Line int // the first is 1; 0 if unknown
	Err  error
}

// Error returns "FILE:LINE: what is wrong".
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Load reads a file of rules. Whatever is wrong in it is an [*Error] that names the line.
func Load(file string) (*Rules, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	return Parse(file, text)
}

// Parse reads rules. file is the name that errors give to the text.
func Parse(file string, text []byte) (*Rules, error) {
	l := &loader{r: &Rules{file: file}}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, l.yamlError(err)
	}
	if err := l.file(doc.Content[0]); err != nil {
		return nil, err
	}
	return l.r, nil
}

type loader struct{ r *Rules }

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// yamlError turns an error of the YAML decoder, which has its line in its text, into an Error.
func (l *loader) yamlError(err error) error {
	e := &Error{File: l.r.file, Err: err}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		fmt.Sscan(m[1], &e.Line)
		e.Err = errors.New(m[2])
	}
	return e
}

func (l *loader) errorf(n *yaml.Node, format string, args ...any) error {
	return &Error{File: l.r.file, Line: n.Line, Err: fmt.Errorf(format, args...)}
}

// pairs calls do for the entries of a mapping with distinct keys.
func (l *loader) pairs(n *yaml.Node, what string, do func(key, value *yaml.Node) error) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return l.errorf(n, "%s must be a mapping", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if seen[key.Value] {
			return l.errorf(key, "%q is there twice", key.Value)
		}
		seen[key.Value] = true
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if err := do(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) file(n *yaml.Node) error {
	err := l.pairs(n, "the file", func(key, value *yaml.Node) error {
		if key.Value != "rules" {
			return l.errorf(key, "unknown key %q; want rules", key.Value)
		}
		if value.Kind != yaml.SequenceNode {
			return l.errorf(value, "rules must be a list")
		}
		for _, item := range value.Content {
			if err := l.rule(item); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(l.r.rules) == 0 {
		err = l.errorf(n, "there are no rules")
	}
	return err
}

func (l *loader) rule(n *yaml.Node) error {
	var r rule
	err := l.pairs(n, "a rule", func(key, value *yaml.Node) error {
		switch key.Value {
		case "url":
			patterns := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				patterns = value.Content
			}
			for _, p := range patterns {
				if p.Kind != yaml.ScalarNode || p.Value == "" {
					return l.errorf(p, "url must be a pattern, or a list of them")
				}
				r.urls = append(r.urls, pattern(p.Value))
			}
			return nil
		case "fields":
			return l.pairs(value, "fields", func(key, value *yaml.Node) error {
				f, err := l.field(key, value)
				r.fields = append(r.fields, f)
				return err
			})
		}
		return l.errorf(key, "unknown key %q of a rule; want url and fields", key.Value)
	})
	switch {
	case err != nil:
		return err
	case len(r.urls) == 0:
		return l.errorf(n, "the rule has no url")
	case len(r.fields) == 0:
		return l.errorf(n, "the rule has no fields")
	}
	l.r.rules = append(l.r.rules, r)
	return nil
}

// pattern makes a regular expression of a pattern in which * stands for any characters.
func pattern(s string) *regexp.Regexp {
	parts := strings.Split(s, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`\A(?s:` + strings.Join(parts, ".*") + `)\z`)
}

var fieldName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (l *loader) field(key, n *yaml.Node) (f field, err error) {
	f.name = key.Value
	if !fieldName.MatchString(f.name) {
		return f, l.errorf(key, "%q is no name of a field: use letters, digits, _ and -", f.name)
	}
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	if len(sources) == 0 {
		return f, l.errorf(n, "field %s has no source", f.name)
	}
	for _, n := range sources {
		s, err := l.source(f.name, n)
		if err != nil {
			return f, err
		}
		f.sources = append(f.sources, s)
	}
	return f, nil
}

func (l *loader) source(name string, n *yaml.Node) (s source, err error) {
	kinds := 0
	err = l.pairs(n, "field "+name, func(key, value *yaml.Node) (err error) {
		if value.Kind != yaml.ScalarNode {
			return l.errorf(value, "field %s: %s must be a string", name, key.Value)
		}
		switch v := value.Value; key.Value {
		case "css":
			kinds++
			s.css, err = cascadia.Parse(v)
		case "xpath":
			kinds++
			s.xpath, err = xpath.Compile(v)
		case "jsonld":
			kinds++
			s.path, err = parsePath(v)
		case "regexp":
			if s.regexp, err = regexp.Compile(v); err == nil && s.regexp.MatchString("") {
				err = errors.New("it matches the empty string")
			}
		case "attr":
			if s.attr = strings.ToLower(v); v == "" {
				err = errors.New("it is empty")
			}
		case "as":
			if s.as = v; v != "number" && v != "url" {
				err = fmt.Errorf("%q is not one of number and url", v)
			}
		case "all":
			if s.all = v == "true"; v != "true" && v != "false" {
				err = fmt.Errorf("%q is not one of true and false", v)
			}
		default:
			return l.errorf(key, "field %s: unknown key %q; want css, xpath, jsonld, regexp, attr, as or all", name, key.Value)
		}
		if err != nil {
			return l.errorf(value, "field %s: %s: %w", name, key.Value, err)
		}
		return nil
	})
	switch {
	case err != nil:
	case kinds > 1:
		err = l.errorf(n, "field %s: css, xpath and jsonld exclude each other", name)
	case kinds == 0 && s.regexp == nil:
		err = l.errorf(n, "field %s: no source; want css, xpath, jsonld or regexp", name)
	case s.attr != "" && s.css == nil && s.xpath == nil:
		err = l.errorf(n, "field %s: attr needs css or xpath", name)
	}
	return s, err
}
