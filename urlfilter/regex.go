package urlfilter

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/javaregex"
	"github.com/recrawl/recrawl/internal/javaurl"
)

// regexFilter is a list of regular expressions, each of which accepts or rejects.
type regexFilter struct{ ruleList }

// NewRegex makes the filter of [ParseRegex] from rules, which are lines of its format. Without
// rules it rejects everything.
func NewRegex(rules ...string) (Filter, error) {
	return ParseRegex(strings.NewReader(strings.Join(rules, "\n")), Options{})
}

// ParseRegex reads a list of regular expressions, each of which accepts or rejects, in the format
// of Nutch's regex-urlfilter.txt:
//
//	# comment; so is a line that begins with a blank, and an empty one
//	-pattern        rejects what the pattern matches anywhere
//	+pattern        accepts it
//	> example.org   the rules up to "<" are for this host or domain only
//	<
//
// The first rule that matches decides; what none matches is rejected. A name after ">" is a host or
// a registered domain, which stands for the hosts below it. (Nutch: urlfilter-regex,
// urlfilter.regex.file.)
//
// Patterns have the syntax and the meaning of java.util.regex, but are matched
// in time proportional to the URL. So a pattern that needs back-references,
// look-around, atomic groups or possessive repetition is an error, as are rare
// constructs that would mean something else here. Nutch's own guards against
// loops, ".*(/[^/]+)/[^/]+\1/[^/]+\1/" and ".*(/.+?)/.*?\1/.*?\1/", are matched
// by hand, and just as Java would.
//
// NutchCompat takes the names after ">" as spelled, so that a capital letter never matches, and
// treats URLs that java.net.URL refuses as having no host. An error is a [*SyntaxError].
func ParseRegex(r io.Reader, o Options) (Filter, error) {
	l, err := parseRuleList(r, o, javaregex.Compile)
	if err != nil {
		return nil, err
	}
	return &regexFilter{*l}, nil
}

// Accept reports whether the first rule that matches accepts.
func (f *regexFilter) Accept(url string) bool { return f.decides(url).accepts() }

// Explain returns the first rule that matches.
func (f *regexFilter) Explain(url string) string { return f.decides(url).explain() }

// String describes the filter.
func (f *regexFilter) String() string { return fmt.Sprintf("regex filter of %d rules", len(f.rules)) }

// ruleList is what the filters of regular expressions have in common.
type ruleList struct {
	compat bool // NutchCompat
	rules  []listRule
	// The rules for all URLs, and those for a host or domain, by its name in
	// normal form and as spelled. Each list is in order.
	all             []int
	within, spelled map[string]*section
}

// section holds what is between ">" and "<", in one place or several, for one
// name.
type section struct {
	rules  []int
	common bool // the name is the domain of the host below it with the commonLabel
}

// addTo adds a rule to the section of a name.
func addTo(named map[string]*section, name string, rule int) {
	s := named[name]
	if s == nil {
		_, domain := domainNutch(commonLabel + name)
		s = &section{common: domain == name}
		named[name] = s
	}
	s.rules = append(s.rules, rule)
}

// isDomain reports whether the name, parent, is the domain of a host with some
// more labels.
func (s *section) isDomain(labels, host, parent string) bool {
	if labels == commonLabel {
		return s.common
	}
	_, domain := domainNutch(host)
	return domain == parent
}

type listRule struct {
	accept bool
	name   string // host or domain as spelled; empty for all
	match  func(url string) bool
	line   int
	text   string
}

func parseRuleList(r io.Reader, o Options, compile func(pattern string) (func(string) bool, error)) (*ruleList, error) {
	l := &ruleList{compat: o.NutchCompat, within: map[string]*section{}, spelled: map[string]*section{}}
	within, name := "", ""
	compile = compileOnce(compile)
	err := readLines(r, func(n int, line string) error {
		if line == "" {
			return nil
		}
		switch line[0] {
		case '#', ' ':
		case '>':
			name = strings.TrimSpace(line[1:])
			if name == "" {
				return errors.New("no host or domain after >")
			}
			var err error
			if within, err = normalHost(name); err != nil {
				return fmt.Errorf("%q after > is not a host or domain", name)
			}
		case '<':
			within, name = "", ""
		case '+', '-':
			match, err := compile(line[1:])
			if err != nil {
				return err
			}
			if i := len(l.rules); name == "" {
				l.all = append(l.all, i)
			} else {
				addTo(l.within, within, i)
				addTo(l.spelled, name, i)
			}
			l.rules = append(l.rules, listRule{line[0] == '+', name, match, n, line})
		default:
			first, _ := utf8.DecodeRuneInString(line)
			return fmt.Errorf("a rule begins with + or -, not with %q", string(first))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// compileOnce compiles a pattern once, however often it occurs in a file: one
// for many hosts usually repeats a few.
func compileOnce(compile func(pattern string) (func(string) bool, error)) func(pattern string) (func(string) bool, error) {
	known := map[string]func(string) bool{}
	return func(pattern string) (func(string) bool, error) {
		match, ok := known[pattern]
		if ok {
			return match, nil
		}
		match, err := compile(pattern)
		if err == nil {
			known[pattern] = match
		}
		return match, err
	}
}

func (r *listRule) accepts() bool { return r != nil && r.accept }

func (r *listRule) explain() string {
	switch {
	case r == nil:
		return ""
	case r.name != "":
		return ruleAt(r.line, r.text+" (within "+r.name+")")
	}
	return ruleAt(r.line, r.text)
}

// decides returns the first rule that matches, or nil.
func (l *ruleList) decides(url string) *listRule {
	if len(l.all) == len(l.rules) {
		for i := range l.rules {
			if r := &l.rules[i]; r.match(url) {
				return r
			}
		}
		return nil
	}
	lists := [3][]int{l.all}
	if l.compat {
		lists[1], lists[2] = sections(l.spelled, javaHost(url))
	} else {
		lists[1], lists[2] = sections(l.within, hostOf(url))
	}
	for {
		next := -1 // the list whose rule comes first
		for i, list := range lists {
			if len(list) > 0 && (next < 0 || list[0] < lists[next][0]) {
				next = i
			}
		}
		if next < 0 {
			return nil
		}
		r := &l.rules[lists[next][0]]
		if r.match(url) {
			return r
		}
		lists[next] = lists[next][1:]
	}
}

// sections returns the rules for a host and those for its domain.
func sections(named map[string]*section, host string) (forHost, forDomain []int) {
	if host == "" {
		return nil, nil
	}
	if s := named[host]; s != nil {
		forHost = s.rules
	}
	full := strings.TrimSuffix(host, ".")
	if !mayHaveParents(full) {
		return forHost, nil
	}
	for parent := full; ; {
		if s := named[parent]; s != nil && parent != host && s.isDomain(full[:len(full)-len(parent)], full, parent) {
			return forHost, s.rules
		}
		i := strings.IndexByte(parent, '.')
		if i < 0 {
			return forHost, nil
		}
		parent = parent[i+1:]
	}
}

// javaHost returns the host as Nutch sees it: empty if java.net.URL refuses the
// URL.
func javaHost(url string) string {
	u, err := javaurl.Parse(url, javaurl.Handled)
	if err != nil {
		return ""
	}
	return javaurl.ToLower(u.Host)
}

// empty reports whether there are no rules.
func (l *ruleList) empty() bool { return len(l.rules) == 0 }
