package urlfilter

import (
	"errors"
	"fmt"
	"io"
	"regexp"
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
// value rejects everything.
//
// Patterns are those of package regexp, which takes time proportional to the
// URL whatever the pattern is. It has no back-references and no look-around; a
// rule that needs them is an error, but for Nutch's own guard against loops,
// "-.*(/[^/]+)/[^/]+\1/[^/]+\1/", for which [RepeatedSegments] stands in.
type Regex struct{ rules []regexRule }

type regexRule struct {
	accept bool
	within string // host or domain; empty for all
	wide   bool   // within stands for the hosts below it too
	match  func(url string) bool
}

// NewRegex makes a filter of rules that are lines of the file format.
func NewRegex(rules ...string) (*Regex, error) {
	return ParseRegex(strings.NewReader(strings.Join(rules, "\n")))
}

// ParseRegex reads a filter. An error names the line.
func ParseRegex(r io.Reader) (*Regex, error) {
	f := new(Regex)
	within, wide := "", false
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
			within, wide = host, isDomain(host)
		case '<':
			within = ""
		case '+', '-':
			match, err := compile(line[1:])
			if err != nil {
				return err
			}
			f.rules = append(f.rules, regexRule{line[0] == '+', within, wide, match})
		default:
			return fmt.Errorf("a rule begins with + or -, not with %q", line[:1])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

const loopPattern = `.*(/[^/]+)/[^/]+\1/[^/]+\1/`

// beyondRE2 finds what Java's expressions have and Go's have not.
var beyondRE2 = regexp.MustCompile(`\\[1-9]|\\k<|\(\?<?[=!]|\(\?>|[*+?}]\+`)

func compile(pattern string) (func(string) bool, error) {
	if pattern == loopPattern {
		return func(url string) bool { return !RepeatedSegments{}.Accept(url) }, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		if beyondRE2.MatchString(pattern) {
			return nil, fmt.Errorf("pattern %q needs back-references, look-around or possessive repetition, which package regexp does not have: %w", pattern, err)
		}
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return re.MatchString, nil
}

// Accept reports whether the first rule that matches accepts.
func (f *Regex) Accept(url string) bool {
	host := ""
	for i := range f.rules {
		r := &f.rules[i]
		if r.within != "" {
			if host == "" {
				host = hostOf(url)
			}
			if host != r.within && !(r.wide && below(host, r.within)) {
				continue
			}
		}
		if r.match(url) {
			return r.accept
		}
	}
	return false
}

// String describes the filter.
func (f *Regex) String() string { return fmt.Sprintf("regex filter of %d rules", len(f.rules)) }

// RepeatedSegments rejects a URL in which a path segment stands three times,
// with one segment between each: "/a/b/a/c/a/". Relative links that are
// resolved wrongly make such URLs without end. (The last pattern of Nutch's
// regex-urlfilter.txt.)
type RepeatedSegments struct{}

// Accept reports whether the URL has no such repetition.
func (RepeatedSegments) Accept(url string) bool {
	// The last five segments that have a slash on both sides, oldest first.
	var last [5]string
	i := strings.IndexByte(url, '/')
	for i >= 0 {
		n := strings.IndexByte(url[i+1:], '/')
		if n < 0 {
			break
		}
		copy(last[:], last[1:])
		last[4] = url[i+1 : i+1+n]
		i += n + 1
		if last[4] != "" && last[4] == last[2] && last[2] == last[0] && last[1] != "" && last[3] != "" {
			return false
		}
	}
	return true
}

// String names the filter.
func (RepeatedSegments) String() string { return "repeated path segments" }
