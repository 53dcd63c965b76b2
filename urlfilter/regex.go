package urlfilter

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Regex is a list of regular expressions, each of which accepts or rejects. It
// reads Nutch's regex-urlfilter.txt:
//
//	# comment; so is a line that begins with a blank, and an empty one
//	-pattern        rejects what the pattern matches anywhere
//	+pattern        accepts it
//	> example.org   the rules up to "<" are for this host or domain only
//	<
//
// The first rule that matches decides; what none matches is rejected. The zero
// value rejects everything. A name after ">" is a host or a registered domain,
// which stands for the hosts below it. (Nutch: urlfilter-regex,
// urlfilter.regex.file.)
//
// Patterns have the syntax and the meaning of java.util.regex, but are matched
// in time proportional to the URL. So a pattern that needs back-references,
// look-around, atomic groups or possessive repetition is an error, as are rare
// constructs that would mean something else here. Nutch's own guards against
// loops are matched natively, and just as Java would: [RepeatedSegments] and
// [RepeatedParts].
type Regex struct{ ruleList }

// NewRegex makes a filter of rules that are lines of the file format.
func NewRegex(rules ...string) (*Regex, error) {
	return ParseRegex(strings.NewReader(strings.Join(rules, "\n")))
}

// ParseRegex reads a filter. An error is a [*SyntaxError].
func ParseRegex(r io.Reader) (*Regex, error) {
	l, err := parseRuleList(r, compileJava)
	if err != nil {
		return nil, err
	}
	return &Regex{*l}, nil
}

// String describes the filter.
func (f *Regex) String() string { return fmt.Sprintf("regex filter of %d rules", len(f.rules)) }

// compileJava returns a matcher for a pattern of java.util.regex.
func compileJava(pattern string) (func(string) bool, error) {
	switch strings.TrimPrefix(pattern, ".*") {
	case segmentsPattern:
		return func(url string) bool { return !RepeatedSegments{}.Accept(url) }, nil
	case partsPattern:
		return func(url string) bool { return !RepeatedParts{}.Accept(url) }, nil
	}
	p, err := parseJava(pattern)
	if err != nil {
		return nil, err
	}
	match, err := compilePattern(p)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return match, nil
}

// ruleList is what the filters of regular expressions have in common.
type ruleList struct{ rules []listRule }

type listRule struct {
	accept bool
	within string // host or domain; empty for all
	match  func(url string) bool
	line   int
	text   string
}

func parseRuleList(r io.Reader, compile func(pattern string) (func(string) bool, error)) (*ruleList, error) {
	l := new(ruleList)
	within := ""
	err := readLines(r, func(n int, line string) error {
		if line == "" {
			return nil
		}
		switch line[0] {
		case '#', ' ':
		case '>':
			host, err := normalHost(strings.TrimSpace(line[1:]))
			if err != nil {
				return errors.New("no host or domain after >")
			}
			within = host
		case '<':
			within = ""
		case '+', '-':
			match, err := compile(line[1:])
			if err != nil {
				return err
			}
			l.rules = append(l.rules, listRule{line[0] == '+', within, match, n, line})
		default:
			return fmt.Errorf("a rule begins with + or -, not with %q", line[:1])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Accept reports whether the first rule that matches accepts.
func (l *ruleList) Accept(url string) bool {
	r := l.decides(url)
	return r != nil && r.accept
}

// Explain returns the first rule that matches.
func (l *ruleList) Explain(url string) string {
	r := l.decides(url)
	if r == nil {
		return ""
	}
	if r.within != "" {
		return ruleAt(r.line, r.text+" (within "+r.within+")")
	}
	return ruleAt(r.line, r.text)
}

func (l *ruleList) decides(url string) *listRule {
	host, domain := "", ""
	for i := range l.rules {
		r := &l.rules[i]
		if r.within != "" {
			if host == "" {
				host = hostOf(url)
			}
			if host != r.within {
				if !isBelow(host, r.within) {
					continue
				}
				if domain == "" {
					_, domain = domainOf(host)
				}
				if domain != r.within {
					continue
				}
			}
		}
		if r.match(url) {
			return r
		}
	}
	return nil
}

// empty reports whether there are no rules.
func (l *ruleList) empty() bool { return len(l.rules) == 0 }
