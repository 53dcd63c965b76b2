package sitemap

import "bytes"

// lines reads a document that has a URL on each line.
type lines struct {
	r *Reader
	s *scanner
	urls
	val value
}

// lines reads a document without markup.
func (r *Reader) lines() {
	r.report.Format = Text
	l := &lines{r: r, s: &r.scan, urls: newURLs(r.opts)}
	r.parse = l.next
}

func (l *lines) next() (Entry, bool) {
	for l.s.fill(1) {
		l.val.reset(l.max + maxField)
		if !l.line() {
			break
		}
		b := bytes.TrimSpace(l.val.buf)
		if len(b) == 0 || b[0] == '#' {
			continue
		}
		u := ""
		if !l.val.over && absolute(b) {
			u = l.resolve(b, false)
		}
		if u == "" {
			l.r.report.BadURLs++
			continue
		}
		return Entry{URL: u}, true
	}
	return Entry{}, false
}

// line reads a line into val. It reports whether there is a complete one.
func (l *lines) line() bool {
	s := l.s
	for {
		b := s.window()
		if i := bytes.IndexAny(b, "\r\n"); i >= 0 {
			l.val.add(b[:i])
			s.r += i + 1
			return true
		}
		l.val.add(b)
		s.r = s.w
		if !s.fill(1) {
			// What was cut off may be half of a line.
			return l.r.whole()
		}
	}
}
