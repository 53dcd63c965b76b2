package javaregex

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// slashPattern matches two or more slashes that no colon precedes. Nutch ships
// it, and it needs look-behind.
const slashPattern = `(?<!:)/{2,}`

// A Replacer replaces every match of a pattern of java.util.regex. In the
// substitution "$1" or "${name}" stands for what a group matched, and a
// backslash makes the next character an ordinary one, as in Java.
//
// Two things differ from Java: "$" is the end of the text and not also the
// place before a line end there; and a pattern that can match the empty string,
// and looks at what precedes it with "^", "\b" or "\B", does not match right
// after another match.
type Replacer struct {
	mayMatch func(text string) bool // false if the pattern cannot match; nil if unknown
	matches  func(text string) [][]int
	parts    []templatePart
}

// NewReplacer compiles a pattern and a substitution.
func NewReplacer(pattern, substitution string) (*Replacer, error) {
	r := &Replacer{}
	groups, names := 0, []string{""}
	if pattern == slashPattern {
		r.mayMatch = func(text string) bool { return strings.Contains(text, "//") }
		r.matches = findSlashes
	} else {
		p, err := parse(pattern)
		if err != nil {
			return nil, err
		}
		source, err := p.re2()
		if err != nil {
			return nil, patternError(pattern, err)
		}
		re, err := regexp.Compile(source)
		if err != nil {
			return nil, patternError(pattern, err)
		}
		groups, names = re.NumSubexp(), re.SubexpNames()
		r.mayMatch = prefilter(p)
		r.matches = func(text string) [][]int { return re.FindAllStringSubmatchIndex(text, -1) }
		if p.minLen() == 0 && !p.uses(opBegin) && !p.uses(opWord) && !p.uses(opNoWord) {
			r.matches = func(text string) [][]int { return findAll(re, text) }
		}
	}
	parts, err := parseTemplate(substitution, groups, names)
	if err != nil {
		return nil, fmt.Errorf("substitution %#q: %w", clip(substitution), err)
	}
	r.parts = parts
	return r, nil
}

// Replace returns the text with its matches replaced.
func (r *Replacer) Replace(text string) string {
	if r.mayMatch != nil && !r.mayMatch(text) {
		return text
	}
	all := r.matches(text)
	if len(all) == 0 {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	end := 0
	for _, m := range all {
		out = append(out, text[end:m[0]]...)
		for _, p := range r.parts {
			if p.group < 0 {
				out = append(out, p.text...)
			} else if m[2*p.group] >= 0 {
				out = append(out, text[m[2*p.group]:m[2*p.group+1]]...)
			}
		}
		end = m[1]
	}
	return string(append(out, text[end:]...))
}

// findSlashes finds the matches of slashPattern.
func findSlashes(text string) (all [][]int) {
	for i := 0; i < len(text); {
		if text[i] != '/' || i > 0 && text[i-1] == ':' {
			i++
			continue
		}
		end := i + 1
		for end < len(text) && text[end] == '/' {
			end++
		}
		if end-i >= 2 {
			all = append(all, []int{i, end})
		}
		i = end
	}
	return all
}

// findAll finds the matches that Java finds, which may be empty right
// after another; package regexp leaves these out. It is for patterns that do
// not look at what precedes them.
func findAll(re *regexp.Regexp, text string) (all [][]int) {
	for from := 0; from <= len(text); {
		m := re.FindStringSubmatchIndex(text[from:])
		if m == nil {
			break
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += from
			}
		}
		all = append(all, m)
		if from = m[1]; m[0] == m[1] {
			_, n := utf8.DecodeRuneInString(text[from:])
			from += max(n, 1)
		}
	}
	return all
}

// templatePart is a piece of a substitution: what a group matched, or text if
// group is negative.
type templatePart struct {
	text  string
	group int
}

// parseTemplate reads a substitution as java.util.regex.Matcher does; but what
// fails at the first match there fails at once here.
func parseTemplate(s string, groups int, names []string) ([]templatePart, error) {
	var parts []templatePart
	text := []byte{}
	flush := func() {
		if len(text) > 0 {
			parts = append(parts, templatePart{string(text), -1})
			text = nil
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New(`a "\" at the end`)
			}
			text = append(text, s[i])
		case '$':
			rest := s[i+1:]
			group := -1
			if name, ok := strings.CutPrefix(rest, "{"); ok {
				end := strings.IndexByte(name, '}')
				if end <= 0 {
					return nil, errors.New(`"${" without a name and "}"`)
				}
				if group = slices.Index(names, name[:end]); group <= 0 {
					return nil, fmt.Errorf("no group %q", clip(name[:end]))
				}
				i += end + 2
			} else {
				if rest == "" || rest[0] < '0' || rest[0] > '9' {
					return nil, errors.New(`"$" without a group; write "\$" for the character`)
				}
				group = int(rest[0] - '0')
				if group > groups {
					return nil, fmt.Errorf("no group %d", group)
				}
				// More digits, as long as there is such a group.
				for i++; i+1 < len(s) && '0' <= s[i+1] && s[i+1] <= '9' && group*10+int(s[i+1]-'0') <= groups; i++ {
					group = group*10 + int(s[i+1]-'0')
				}
			}
			flush()
			parts = append(parts, templatePart{"", group})
		default:
			text = append(text, c)
		}
	}
	flush()
	return parts, nil
}
