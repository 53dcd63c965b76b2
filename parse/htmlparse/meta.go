package htmlparse

import (
	"bytes"
	"strings"
	"time"

	"github.com/recrawl/recrawl/internal/directives"
	"github.com/recrawl/recrawl/page"
)

// words yields the words of a list separated by white space or, as many authors
// write, commas and semicolons.
func words(s []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(s) > 0 {
			end := 0
			for end < len(s) && s[end] > ' ' && s[end] != ',' && s[end] != ';' {
				end++
			}
			if end > 0 && !yield(s[:end]) {
				return
			}
			s = s[min(end+1, len(s)):]
		}
	}
}

// maxRefresh limits the delay of a refresh, so that it does not overflow.
const maxRefresh = 365 * 24 * 3600

// refresh parses the content of a meta refresh or a Refresh header (HTML,
// section 4.2.5.3, "shared declarative refresh steps"). An empty target means
// the page itself.
func refresh(s []byte) (delay time.Duration, target []byte, ok bool) {
	s = bytes.TrimLeft(s, spaces)
	seconds, i := 0, 0
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		seconds = min(seconds*10+int(s[i]-'0'), maxRefresh)
	}
	if i == 0 && (len(s) == 0 || s[0] != '.') {
		return 0, nil, false
	}
	for i < len(s) && ('0' <= s[i] && s[i] <= '9' || s[i] == '.') {
		i++
	}
	delay = time.Duration(seconds) * time.Second
	s = s[i:]
	if len(s) == 0 {
		return delay, nil, true
	}
	if s[0] != ';' && s[0] != ',' && !bytes.ContainsRune([]byte(spaces), rune(s[0])) {
		return 0, nil, false
	}
	s = bytes.TrimLeft(s, spaces)
	if len(s) > 0 && (s[0] == ';' || s[0] == ',') {
		s = bytes.TrimLeft(s[1:], spaces)
	}
	if len(s) >= 3 && equalFold(s[:3], "url") {
		if rest := bytes.TrimLeft(s[3:], spaces); len(rest) > 0 && rest[0] == '=' {
			s = bytes.TrimLeft(rest[1:], spaces)
		}
	}
	if len(s) > 0 && (s[0] == '"' || s[0] == '\'') {
		q := s[0]
		s = s[1:]
		if end := bytes.IndexByte(s, q); end >= 0 {
			s = s[:end]
		}
	}
	return delay, s, true
}

// equalFold reports whether b is the lower-case ASCII word, in any letter case.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

func (s *scan) metaTag() {
	a := s.attrs()
	switch {
	case equalFold(a.pragma, "refresh"):
		if !s.refreshed && s.skip == inline {
			s.refresh(a.content)
		}
	case equalFold(a.pragma, "content-language"):
		s.meta("content-language", a.content)
	}
	name := bytes.TrimSpace(a.name)
	if len(name) == 0 || len(name) > 256 {
		return
	}
	if directives.IsMeta(string(name), s.lim.products) {
		s.out.Directives = s.out.And(directives.List(string(a.content)))
	}
	if s.skip == inline {
		f := folder{max: 256}
		f.add(name)
		if name := strings.ToLower(string(f.buf)); !strings.HasPrefix(name, page.FieldPrefix) {
			s.meta(name, a.content)
		}
	}
}

const maxMetaValue = 4096

func (s *scan) meta(name string, value []byte) {
	if len(s.out.Meta) >= s.lim.meta {
		return
	}
	f := folder{max: maxMetaValue}
	f.add(value)
	s.out.Meta = append(s.out.Meta, page.Property{Name: name, Value: string(f.buf)})
}

// refresh reads a refresh; only the first counts.
func (s *scan) refresh(content []byte) {
	delay, target, ok := refresh(content)
	if !ok {
		return
	}
	u, ok := s.resolve(target)
	if !ok {
		return
	}
	s.refreshed = true
	if s.page != nil && string(u) == s.page.String() {
		return
	}
	s.out.Refresh, s.out.RefreshDelay = string(u), delay
}
