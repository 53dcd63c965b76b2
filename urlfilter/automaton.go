package urlfilter

import (
	"fmt"
	"io"

	"github.com/recrawl/recrawl/internal/javaregex"
)

// automatonFilter is a list of patterns of dk.brics.automaton, each of which accepts or rejects.
type automatonFilter struct{ ruleList }

// ParseAutomaton reads a list of regular expressions in the same line format as [ParseRegex], but
// in the syntax of the dk.brics.automaton library, and each has to match the whole URL:
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
// time proportional to the URL. Characters are code points. An error is a [*SyntaxError]. (Nutch:
// urlfilter-automaton, urlfilter.automaton.file.)
func ParseAutomaton(r io.Reader, o Options) (Filter, error) {
	l, err := parseRuleList(r, o, javaregex.CompileAutomaton)
	if err != nil {
		return nil, err
	}
	return &automatonFilter{*l}, nil
}

// Accept reports whether the first rule that matches accepts.
func (f *automatonFilter) Accept(url string) bool { return f.decides(url).accepts() }

// Explain returns the first rule that matches.
func (f *automatonFilter) Explain(url string) string { return f.decides(url).explain() }

// String describes the filter.
func (f *automatonFilter) String() string {
	return fmt.Sprintf("automaton filter of %d rules", len(f.rules))
}
