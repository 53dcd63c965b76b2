// Package javaregex matches the patterns of java.util.regex and of dk.brics.automaton, in which
// Nutch's rules about URLs are written, in time proportional to the text. A pattern means what it
// means in Java or is an error: what needs a backtracking matcher is refused, except for the few
// patterns that Nutch itself ships, which are matched by hand. It knows nothing of rules and files,
// which are urlfilter's. [Compile] and [CompileAutomaton] match, [NewReplacer] replaces.
package javaregex

import (
	"strings"
	"unicode/utf8"
)

// Compile returns a function that reports whether a pattern of java.util.regex matches anywhere in a
// text. Nutch's guards against loops are matched as by [RepeatsSegment] and [RepeatsPart].
func Compile(pattern string) (func(text string) bool, error) {
	switch strings.TrimPrefix(pattern, ".*") {
	case segmentsPattern:
		return RepeatsSegment, nil
	case partsPattern:
		return RepeatsPart, nil
	}
	p, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	match, err := compile(p)
	if err != nil {
		return nil, patternError(pattern, err)
	}
	return match, nil
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unhex returns the value of a hexadecimal digit, or -1.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
