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
type Regex struct {
	// NutchCompat takes the names after ">" as they are spelled, so that a
	// capital letter matches nothing, and the URLs that java.net.URL does not
	// take for such without a host. It must not be changed once the filter is in
	// use.
	NutchCompat bool

	ruleList
}

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
	return &Regex{ruleList: *l}, nil
}

// Accept reports whether the first rule that matches accepts.
func (f *Regex) Accept(url string) bool { return f.decides(url, f.NutchCompat).accepts() }

// Explain returns the first rule that matches.
func (f *Regex) Explain(url string) string { return f.decides(url, f.NutchCompat).explain() }

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
	name   string // the same as it was spelled
	match  func(url string) bool
	line   int
	text   string
}

func parseRuleList(r io.Reader, compile func(pattern string) (func(string) bool, error)) (*ruleList, error) {
	l := new(ruleList)
	within, name := "", ""
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
			within, name = host, strings.TrimSpace(line[1:])
		case '<':
			within, name = "", ""
		case '+', '-':
			match, err := compile(line[1:])
			if err != nil {
				return err
			}
			l.rules = append(l.rules, listRule{line[0] == '+', within, name, match, n, line})
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

func (r *listRule) accepts() bool { return r != nil && r.accept }

func (r *listRule) explain() string {
	switch {
	case r == nil:
		return ""
	case r.within != "":
		return ruleAt(r.line, r.text+" (within "+r.name+")")
	}
	return ruleAt(r.line, r.text)
}

// decides returns the first rule that matches, or nil.
func (l *ruleList) decides(url string, compat bool) *listRule {
	host, domain, split := "", "", false
	for i := range l.rules {
		r := &l.rules[i]
		if r.within != "" {
			if !split {
				host, split = hostOf(url), true
				if compat {
					host = javaHost(url)
				}
			}
			within := r.within
			if compat {
				within = r.name
			}
			if within != host {
				if !strings.HasSuffix(strings.TrimSuffix(host, "."), within) {
					continue // nor is it the domain, which takes longer to find
				}
				if domain == "" {
					_, domain = domainOf(strings.TrimSuffix(host, "."))
				}
				if within != domain {
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

// javaHost returns the host as Nutch has it: empty if java.net.URL does not take
// the URL.
func javaHost(url string) string {
	u, err := parseJavaURL(url, isJavaHandled)
	if err != nil {
		return ""
	}
	return lowerJava(u.host)
}

// empty reports whether there are no rules.
func (l *ruleList) empty() bool { return len(l.rules) == 0 }
