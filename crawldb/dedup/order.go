package dedup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Criterion says which of two pages is the original, in Nutch's word.
type Criterion string

const (
	// Score favours the higher score.
	Score Criterion = "score"
	// FetchTime favours the page that was visited later. (With NutchCompat the
	// one due later: Nutch keeps no other time.)
	FetchTime Criterion = "fetchTime"
	// HTTPSOverHTTP favours https over http if the URLs are otherwise the same;
	// it does not decide other pairs.
	HTTPSOverHTTP Criterion = "httpsOverHttp"
	// URLLength favours the shorter URL, in UTF-16 units with its percent
	// sequences decoded.
	URLLength Criterion = "urlLength"
)

func (c Criterion) known() bool {
	return c == Score || c == FetchTime || c == HTTPSOverHTTP || c == URLLength
}

// nutchOrder returns score, fetchTime, urlLength, which is Nutch's.
func nutchOrder() []Criterion { return []Criterion{Score, FetchTime, URLLength} }

// ParseOrder reads the names of criteria, separated by commas, such as
// "httpsOverHttp,score,urlLength". Each may appear only once.
func ParseOrder(s string) ([]Criterion, error) {
	var order []Criterion
	for name := range strings.SplitSeq(s, ",") {
		c := Criterion(strings.TrimSpace(name))
		if !c.known() {
			return nil, fmt.Errorf("dedup: order %q: unknown criterion %q; want score, fetchTime, httpsOverHttp or urlLength", s, c)
		}
		if slices.Contains(order, c) {
			return nil, fmt.Errorf("dedup: order %q has %s twice", s, c)
		}
		order = append(order, c)
	}
	return order, nil
}

// page is the part of a record that is compared.
type page struct {
	url    string
	key    string
	score  float32
	time   int64
	length int // of the URL; -1 until requested
}

func (p *page) urlLength() int {
	if p.length < 0 {
		p.length = decodedLength(p.url)
	}
	return p.length
}

// compare is positive if a is to be the original by one criterion, negative if b
// has, and zero if neither does.
func (c Criterion) compare(a, b *page) int {
	switch c {
	case Score:
		return cmp.Compare(a.score, b.score) // NaN is the lowest
	case FetchTime:
		return cmp.Compare(a.time, b.time)
	case URLLength:
		return cmp.Compare(b.urlLength(), a.urlLength())
	case HTTPSOverHTTP:
		switch {
		case twins(a.url, b.url):
			return 1
		case twins(b.url, a.url):
			return -1
		}
	}
	return 0
}

// twins reports whether two URLs differ only in https and http.
func twins(https, http string) bool {
	a, ok := strings.CutPrefix(https, "https://")
	b, also := strings.CutPrefix(http, "http://")
	return ok && also && a == b
}

// better reports whether a is to be the original. It is a strict order of all
// pages with different URLs, without httpsOverHttp, which is not an order:
// [overruled] handles that.
func better(order []Criterion, a, b *page) bool {
	for _, c := range order {
		if c == HTTPSOverHTTP {
			continue
		}
		if d := c.compare(a, b); d != 0 {
			return d > 0
		}
	}
	return a.key < b.key
}

// overruled reports whether a page cannot stay because of its https twin: they
// are equal in all criteria before httpsOverHttp. Whatever beats the twin beats
// the page too, or both are out before it matters. So the result is the same as
// letting, criterion by criterion, only the best of a group go on.
func overruled(order []Criterion, http, https *page) bool {
	for _, c := range order {
		if d := c.compare(https, http); d != 0 {
			return c == HTTPSOverHTTP
		}
	}
	return false
}

// nutch compares as Nutch does: a score of NaN decides nothing.
func nutch(order []Criterion, a, b *page) int {
	for _, c := range order {
		if c == Score && (a.score != a.score || b.score != b.score) {
			continue
		}
		if d := c.compare(a, b); d != 0 {
			return d
		}
	}
	return 0
}

var errEscape = errors.New("not a percent sequence")

// decodedLength returns the length of a URL in UTF-16 units, with its percent
// sequences decoded as in forms; of the URL as it is if one of them is invalid.
func decodedLength(url string) int {
	n, err := formLength(url)
	if err != nil {
		n = unitsOf([]byte(url))
	}
	return n
}

func formLength(url string) (int, error) {
	n := 0
	var run []byte // adjacent sequences are decoded together
	for i := 0; i < len(url); {
		if url[i] != '%' {
			end := strings.IndexByte(url[i:], '%')
			if end < 0 {
				end = len(url) - i
			}
			n += unitsOf([]byte(url[i : i+end]))
			i += end
			continue
		}
		run = run[:0]
		for i < len(url) && url[i] == '%' {
			if i+2 >= len(url) {
				return 0, errEscape
			}
			c, ok := unescape(url[i+1], url[i+2])
			if !ok {
				return 0, errEscape
			}
			run = append(run, c)
			i += 3
		}
		n += unitsOf(run)
	}
	return n, nil
}

// unescape reads two hexadecimal digits as Java does, which accepts a sign in
// place of one.
func unescape(a, b byte) (byte, bool) {
	hi, lo := unhex(a), unhex(b)
	if a == '+' || a == '-' && b == '0' {
		hi = 0
	}
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// unitsOf returns how many UTF-16 units bytes have as UTF-8, where the longest
// prefix of an incomplete character counts as one.
func unitsOf(b []byte) int {
	n := 0
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			size = broken(b)
		}
		if n++; r > 0xffff {
			n++
		}
		b = b[size:]
	}
	return n
}

// broken returns the length of the prefix of b that could begin a character, at
// least 1; b does not begin with a complete one. (The maximal subpart of the
// Unicode Standard, 3.9, except for half of a surrogate pair, which Java's
// decoder takes whole.)
func broken(b []byte) int {
	lo, hi, want := byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		want = 1
	case c >= 0xe0 && c <= 0xef:
		want = 2
		if c == 0xe0 {
			lo = 0xa0
		}
	case c >= 0xf0 && c <= 0xf4:
		want = 3
		if c == 0xf0 {
			lo = 0x90
		} else if c == 0xf4 {
			hi = 0x8f
		}
	}
	n := 1
	for ; want > 0 && n < len(b) && b[n] >= lo && b[n] <= hi; want-- {
		lo, hi = 0x80, 0xbf
		n++
	}
	return n
}
