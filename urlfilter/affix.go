package urlfilter

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Prefix accepts URLs that begin with one of its prefixes. The zero value
// rejects everything. (Nutch: urlfilter-prefix.)
type Prefix struct{ sorted []string }

// NewPrefix makes a filter of prefixes.
func NewPrefix(prefixes ...string) *Prefix { return &Prefix{sortPrefixes(prefixes)} }

// ParsePrefix reads Nutch's prefix-urlfilter.txt: one prefix a line, taken as it
// stands; empty lines and those that begin with "#" or a blank are skipped.
func ParsePrefix(r io.Reader) (*Prefix, error) {
	var all []string
	err := readLines(r, func(_ int, line string) error {
		if line != "" && line[0] != '#' && line[0] != ' ' {
			all = append(all, line)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return NewPrefix(all...), nil
}

// Accept reports whether the URL has one of the prefixes.
func (f *Prefix) Accept(url string) bool { return hasPrefix(f.sorted, url) }

// String describes the filter.
func (f *Prefix) String() string { return fmt.Sprintf("prefix filter of %d entries", len(f.sorted)) }

// Suffix accepts or rejects URLs by their ending. The zero value rejects
// everything. (Nutch: urlfilter-suffix.)
type Suffix struct {
	o        SuffixOptions
	reversed []string
	longest  int
}

// SuffixOptions say what the suffixes of a [Suffix] mean.
type SuffixOptions struct {
	// Reject makes the filter reject the listed suffixes and accept everything
	// else. Without it, only the listed suffixes are accepted.
	Reject bool
	// IgnoreCase compares without regard to case.
	IgnoreCase bool
	// Path compares with the path of the URL rather than with all of it, so that
	// a query makes no difference.
	Path bool
}

// NewSuffix makes a filter of suffixes.
func NewSuffix(o SuffixOptions, suffixes ...string) *Suffix {
	rev := make([]string, len(suffixes))
	longest := 0
	for i, s := range suffixes {
		if o.IgnoreCase {
			s = strings.ToLower(s)
		}
		rev[i] = reverse(s)
		longest = max(longest, len(s))
	}
	return &Suffix{o, sortPrefixes(rev), longest}
}

// ParseSuffix reads Nutch's suffix-urlfilter.txt. Lines are trimmed; empty ones
// and those that begin with "#" are skipped. A line that begins with "+" or "-"
// sets the mode: "+" accepts everything but the listed suffixes, "-", which is
// the default, nothing but them; the last such line counts. A letter I in a mode
// line ignores case, a P compares with the path; both stay set. Any other line
// is a suffix.
func ParseSuffix(r io.Reader) (*Suffix, error) {
	var o SuffixOptions
	var all []string
	err := readLines(r, func(_ int, line string) error {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '+' || line[0] == '-':
			o.Reject = line[0] == '+'
			o.IgnoreCase = o.IgnoreCase || strings.Contains(line, "I")
			o.Path = o.Path || strings.Contains(line, "P")
		default:
			all = append(all, line)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return NewSuffix(o, all...), nil
}

// Accept reports whether the ending of the URL is acceptable.
func (f *Suffix) Accept(url string) bool {
	if f.o.Path {
		if path, ok := pathOf(url); ok {
			url = path
		}
	}
	if len(f.reversed) == 0 {
		return f.o.Reject
	}
	// Only as much of the end as the longest suffix can match.
	var buf [64]byte
	end := buf[:0]
	for i := len(url) - 1; i >= 0 && len(end) < f.longest; i-- {
		end = append(end, url[i])
	}
	if f.o.IgnoreCase {
		for i, c := range end {
			if 'A' <= c && c <= 'Z' {
				end[i] = c + 'a' - 'A'
			}
		}
	}
	return hasPrefix(f.reversed, string(end)) != f.o.Reject
}

// String describes the filter.
func (f *Suffix) String() string { return fmt.Sprintf("suffix filter of %d entries", len(f.reversed)) }

// sortPrefixes sorts a copy of the prefixes without those that another makes
// superfluous. Then a string has one of them as a prefix only if it has the
// greatest that is not greater than the string.
func sortPrefixes(prefixes []string) []string {
	sorted := slices.Sorted(slices.Values(prefixes))
	kept := sorted[:0]
	for _, p := range sorted {
		if len(kept) == 0 || !strings.HasPrefix(p, kept[len(kept)-1]) {
			kept = append(kept, p)
		}
	}
	return kept
}

func hasPrefix(sorted []string, s string) bool {
	i, found := slices.BinarySearch(sorted, s)
	return found || i > 0 && strings.HasPrefix(s, sorted[i-1])
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}
