package urlfilter

import (
	"fmt"
	"io"
	"strings"

	"github.com/recrawl/recrawl/internal/javaregex"
)

// Automaton is a list of regular expressions like [Regex], in the same line
// format, but in the syntax of the dk.brics.automaton library, and each has to
// match the whole URL:
//
//	. @ #          any character, any string, nothing at all
//	"…"            a literal string
//	<0-255>        a number, with leading zeros; <00-31> one of two digits
//	( ) | ? * + {n} {n,} {n,m} [abc] [^a-z] \c
//	& ~            intersection, complement
//
// There are no anchors, and no escapes other than of a single character. "&" and
// "~" are supported where they are about the URL as a whole, as in
// "~(http:.*)&.*x.*"; elsewhere they are an error, for a matcher that takes
// time proportional to the URL. Characters are code points. (Nutch:
// urlfilter-automaton, urlfilter.automaton.file.)
type Automaton struct {
	// NutchCompat is that of [Regex].
	NutchCompat bool

	ruleList
}

// NewAutomaton makes a filter of rules, which are lines of the file format.
func NewAutomaton(rules ...string) (*Automaton, error) {
	return ParseAutomaton(strings.NewReader(strings.Join(rules, "\n")))
}

// ParseAutomaton reads a filter. An error is a [*SyntaxError].
func ParseAutomaton(r io.Reader) (*Automaton, error) {
	l, err := parseRuleList(r, javaregex.CompileAutomaton)
	if err != nil {
		return nil, err
	}
	return &Automaton{ruleList: *l}, nil
}

// Accept reports whether the first rule that matches accepts.
func (f *Automaton) Accept(url string) bool { return f.decides(url, f.NutchCompat).accepts() }

// Explain returns the first rule that matches.
func (f *Automaton) Explain(url string) string { return f.decides(url, f.NutchCompat).explain() }

// String describes the filter.
func (f *Automaton) String() string { return fmt.Sprintf("automaton filter of %d rules", len(f.rules)) }
