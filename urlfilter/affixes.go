package urlfilter

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/javaurl"
)

// prefixFilter accepts URLs that begin with one of its prefixes.
type prefixFilter struct{ affixes }

// NewPrefix makes a filter that accepts URLs with one of some prefixes, and nothing without any.
func NewPrefix(prefixes ...string) Filter { return &prefixFilter{sortAffixes(numberless(prefixes))} }

// ParsePrefix reads the prefixes of [NewPrefix] from Nutch's prefix-urlfilter.txt: one prefix per
// line, taken literally; empty lines and those that begin with "#" or a blank are skipped. The
// options make no difference. An error is a [*SyntaxError]. (Nutch: urlfilter-prefix,
// urlfilter.prefix.file.)
func ParsePrefix(r io.Reader, _ Options) (Filter, error) {
	var all []affix
	err := readLines(r, func(n int, line string) error {
		if line != "" && line[0] != '#' && line[0] != ' ' {
			all = append(all, affix{line, line, n})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &prefixFilter{sortAffixes(all)}, nil
}

// Accept reports whether the URL has one of the prefixes.
func (f *prefixFilter) Accept(url string) bool { return find(&f.affixes, url) != nil }

// Explain returns the prefix that the URL has.
func (f *prefixFilter) Explain(url string) string { return find(&f.affixes, url).rule() }

// String describes the filter.
func (f *prefixFilter) String() string {
	return fmt.Sprintf("prefix filter of %d entries", len(f.sorted))
}

// suffixFilter accepts or rejects URLs by their ending.
type suffixFilter struct {
	compat bool // NutchCompat
	o      SuffixOptions
	affixes
}

// SuffixOptions say what the suffixes of [NewSuffix] mean.
type SuffixOptions struct {
	// Reject makes the filter reject the listed suffixes and accept everything
	// else. Without it, only the listed suffixes are accepted.
	Reject bool
	// IgnoreCase compares without regard to case.
	IgnoreCase bool
	// Path compares with the path of the URL instead of the whole URL, so that
	// a query makes no difference.
	Path bool
}

// NewSuffix makes a filter that accepts URLs with one of some suffixes, or rejects them.
func NewSuffix(o SuffixOptions, suffixes ...string) Filter {
	return newSuffix(o, numberless(suffixes), false)
}

func newSuffix(o SuffixOptions, all []affix, compat bool) *suffixFilter {
	for i := range all {
		if o.IgnoreCase {
			all[i].key = strings.ToLower(all[i].key)
		}
		all[i].key = reverse(all[i].key)
	}
	return &suffixFilter{compat, o, sortAffixes(all)}
}

// ParseSuffix reads Nutch's suffix-urlfilter.txt for [NewSuffix]. Lines are trimmed; empty ones
// and those that begin with "#" are skipped. A line that begins with "+" or "-"
// sets the mode: "+" accepts everything except the listed suffixes, "-", the
// default, nothing but them; the last such line counts. A letter I in a mode
// line ignores case, a P compares with the path; both stay set. Any other line
// is a suffix. NutchCompat compares with the path only if java.net.URL accepts the URL, and
// otherwise with all of it. An error is a [*SyntaxError]. (Nutch: urlfilter-suffix,
// urlfilter.suffix.file.)
func ParseSuffix(r io.Reader, opts Options) (Filter, error) {
	var o SuffixOptions
	var all []affix
	err := readLines(r, func(n int, line string) error {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '+' || line[0] == '-':
			o.Reject = line[0] == '+'
			o.IgnoreCase = o.IgnoreCase || strings.Contains(line, "I")
			o.Path = o.Path || strings.Contains(line, "P")
		default:
			all = append(all, affix{line, line, n})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newSuffix(o, all, opts.NutchCompat), nil
}

// Accept reports whether the ending of the URL is acceptable.
func (f *suffixFilter) Accept(url string) bool { return (f.suffix(url) != nil) != f.o.Reject }

// Explain returns the suffix that the URL has.
func (f *suffixFilter) Explain(url string) string { return f.suffix(url).rule() }

func (f *suffixFilter) suffix(url string) *affix {
	if len(f.sorted) == 0 {
		return nil
	}
	switch {
	case !f.o.Path:
	case f.compat:
		if u, err := javaurl.Parse(url, javaurl.Handled); err == nil {
			url = u.Path
		}
	default:
		if path, ok := pathOf(url); ok {
			url = path
		}
	}
	// Only as much of the end as the longest suffix can match.
	var buf [64]byte
	end := buf[:0]
	for i := len(url) - 1; i >= 0 && len(end) < f.longest; i-- {
		c := url[i]
		if f.o.IgnoreCase {
			if c >= utf8.RuneSelf {
				return find(&f.affixes, reverse(strings.ToLower(url)))
			}
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
		}
		end = append(end, c)
	}
	return find(&f.affixes, end)
}

// String describes the filter.
func (f *suffixFilter) String() string {
	return fmt.Sprintf("suffix filter of %d entries", len(f.sorted))
}

// empty reports whether the filter has no entries and rejects everything.
func (f *suffixFilter) empty() bool { return len(f.sorted) == 0 && !f.o.Reject }

// affixes are prefixes, or reversed suffixes, sorted and without those that
// another makes redundant. So if a string has any of them as a prefix, it is
// the greatest that is not greater than the string.
type affixes struct {
	sorted  []affix
	longest int
}

type affix struct {
	key  string
	text string // as given
	line int    // its line in the file; 0 if there is none
}

func (a *affix) rule() string {
	if a == nil {
		return ""
	}
	return ruleAt(a.line, a.text)
}

func numberless(all []string) []affix {
	out := make([]affix, len(all))
	for i, s := range all {
		out[i] = affix{s, s, 0}
	}
	return out
}

func sortAffixes(all []affix) affixes {
	slices.SortStableFunc(all, func(a, b affix) int { return strings.Compare(a.key, b.key) })
	var out affixes
	for _, a := range all {
		if n := len(out.sorted); n == 0 || !strings.HasPrefix(a.key, out.sorted[n-1].key) {
			out.sorted = append(out.sorted, a)
			out.longest = max(out.longest, len(a.key))
		}
	}
	return out
}

// find returns the entry that s begins with, or nil.
func find[S string | []byte](a *affixes, s S) *affix {
	lo, hi := 0, len(a.sorted) // of the first that is greater
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if a.sorted[mid].key <= string(s) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return nil
	}
	e := &a.sorted[lo-1]
	if len(e.key) > len(s) || e.key != string(s[:len(e.key)]) {
		return nil
	}
	return e
}

func (a *affixes) empty() bool { return len(a.sorted) == 0 }

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
