package urlfilter

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/javaurl"
)

// Prefix accepts URLs that begin with one of its prefixes. The zero value
// rejects everything. (Nutch: urlfilter-prefix.)
type Prefix struct{ affixes }

// NewPrefix makes a filter of prefixes.
func NewPrefix(prefixes ...string) *Prefix { return &Prefix{sortAffixes(numberless(prefixes))} }

// ParsePrefix reads Nutch's prefix-urlfilter.txt: one prefix per line, taken
// literally; empty lines and those that begin with "#" or a blank are skipped.
// An error is a [*SyntaxError].
func ParsePrefix(r io.Reader) (*Prefix, error) {
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
	return &Prefix{sortAffixes(all)}, nil
}

// Accept reports whether the URL has one of the prefixes.
func (f *Prefix) Accept(url string) bool { return find(&f.affixes, url) != nil }

// Explain returns the prefix that the URL has.
func (f *Prefix) Explain(url string) string { return find(&f.affixes, url).rule() }

// String describes the filter.
func (f *Prefix) String() string { return fmt.Sprintf("prefix filter of %d entries", len(f.sorted)) }

// Suffix accepts or rejects URLs by their ending. The zero value rejects
// everything. (Nutch: urlfilter-suffix.)
type Suffix struct {
	// NutchCompat compares with the path only if java.net.URL accepts the URL,
	// and otherwise with all of it. It must not be changed once the filter is
	// in use.
	NutchCompat bool

	o SuffixOptions
	affixes
}

// SuffixOptions say what the suffixes of a [Suffix] mean.
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

// NewSuffix makes a filter of suffixes.
func NewSuffix(o SuffixOptions, suffixes ...string) *Suffix {
	return newSuffix(o, numberless(suffixes))
}

func newSuffix(o SuffixOptions, all []affix) *Suffix {
	for i := range all {
		if o.IgnoreCase {
			all[i].key = strings.ToLower(all[i].key)
		}
		all[i].key = reverse(all[i].key)
	}
	return &Suffix{o: o, affixes: sortAffixes(all)}
}

// ParseSuffix reads Nutch's suffix-urlfilter.txt. Lines are trimmed; empty ones
// and those that begin with "#" are skipped. A line that begins with "+" or "-"
// sets the mode: "+" accepts everything except the listed suffixes, "-", the
// default, nothing but them; the last such line counts. A letter I in a mode
// line ignores case, a P compares with the path; both stay set. Any other line
// is a suffix. An error is a [*SyntaxError].
func ParseSuffix(r io.Reader) (*Suffix, error) {
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
	return newSuffix(o, all), nil
}

// Accept reports whether the ending of the URL is acceptable.
func (f *Suffix) Accept(url string) bool { return (f.suffix(url) != nil) != f.o.Reject }

// Explain returns the suffix that the URL has.
func (f *Suffix) Explain(url string) string { return f.suffix(url).rule() }

func (f *Suffix) suffix(url string) *affix {
	if len(f.sorted) == 0 {
		return nil
	}
	switch {
	case !f.o.Path:
	case f.NutchCompat:
		if u, err := javaurl.Parse(url, javaurl.Handled); err == nil {
			url = u.Path
		}
	default:
		if path, ok := pathOf(url); ok {
			url = path
		}
	}
	if n := len(url); n > 0 && url[n-1] < utf8.RuneSelf {
		c := url[n-1]
		if f.o.IgnoreCase && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if !f.begins(c) {
			return nil
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
func (f *Suffix) String() string { return fmt.Sprintf("suffix filter of %d entries", len(f.sorted)) }

// empty reports whether the filter has no entries and rejects everything.
func (f *Suffix) empty() bool { return len(f.sorted) == 0 && !f.o.Reject }

// affixes are prefixes, or reversed suffixes, sorted and without those that
// another makes redundant. So if a string has any of them as a prefix, it is
// the greatest that is not greater than the string.
type affixes struct {
	sorted  []affix
	longest int
	first   [4]uint64 // a bit for each byte that one of them begins with
}

// begins reports whether one of them begins with a byte, or is empty.
func (a *affixes) begins(c byte) bool { return a.first[c>>6]>>(c&63)&1 != 0 }

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
			if a.key == "" {
				out.first = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
			} else {
				out.first[a.key[0]>>6] |= 1 << (a.key[0] & 63)
			}
		}
	}
	return out
}

// find returns the entry that s begins with, or nil.
func find[S string | []byte](a *affixes, s S) *affix {
	if len(s) > 0 && !a.begins(s[0]) {
		return nil
	}
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
