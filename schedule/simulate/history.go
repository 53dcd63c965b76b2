package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/schedule/simulate/internal/input"
)

// ParseHistory reads a history: a page on each line, its URL and its events,
// separated by white space, each event a time and, after a colon, what happened to the page: A
// that it appeared, M that it was modified, D that it was deleted. Without a colon it is M. A
// time is RFC 3339, a date, which is its first moment in UTC, 20060102150405, or a number of
// seconds since 1970, or of thousandths of one if it is beyond 1e11. Empty lines and those
// that begin with "#" are skipped, and so is a byte order mark. The file may be gzipped.
//
//	# a page that moved house twice
//	http://example.org/  2026-01-01:A  2026-03-01T09:30:00Z  1777600000:D
//
// With B only the bytes change, not the text; with T the text, but not its more frequent
// words: see [BySignature].
//
// If the first line names columns, among them url and time, each line is a page as it was found
// at a time, in any order:
//
//	url	time	status	md5	textmd5
//	http://example.org/	2026-01-01T00:00:00Z	200	9e107d	e4d909
//	http://example.org/	20260103120000	200	ffd93f	e4d909
//
// These columns have other names, too: page, path or original for url; date, timestamp or fetched for
// time; statuscode or code for status; mimetype or mime for type; importance for weight. Any other
// column is a signature: its values are compared, and an empty value, or "-", says nothing. If the name
// of a column ends in "changed", its value is 1 if there was a change since the last time, and otherwise
// 0. If a signature changed nearly every time, at least ten times or, on all pages of a host, a hundred
// times, and another did not, it is taken to change at every visit. With status 404 or 410 the page is
// gone, with 304 it is unchanged, and any other status but 2xx says nothing. The moment of a change between
// two times is drawn at random. All pages found before the second look at pages began count as existing
// from the first time on.
//
// Columns are separated by tabs, commas or semicolons, as the header is, else by white space. With
// commas or semicolons, a cell may be in double quotes. Lines of an index of a web archive (CDX:
// key, timestamp, original URL, type, status, digest, length) need no header.
//
// If one of the columns is event, each line is an event, A, M, D, B or T as above, in any order:
//
//	url,time,event
//	http://example.org/,2026-03-01 09:30:00,M
//
// The URL may be any text without a blank, or before the first tab. Among the events
// there may be the importance of the page relative to others, as in w=2.5, for
// [Histories]. An error names the line, and the file if r has a name.
func ParseHistory(r io.Reader) ([]Page, error) {
	var pages []Page
	n := 1
	text, err := input.New(r)
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	fail := func(err error) error { return fmt.Errorf("simulate: %w", text.At(n, err)) }
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, longestLine)
	seen := map[string]bool{}
	var observed *observations
	var dates span
	first := true
	for ; lines.Scan(); n++ {
		line := lines.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		comment := strings.HasPrefix(fields[0], "#")
		if first && observed == nil {
			first = comment
			o, names, err := newObservations(strings.TrimLeft(line, "# "))
			if err != nil {
				return nil, fail(err)
			}
			if o != nil && (o.comma != ' ' || !comment) {
				if observed = o; names {
					continue
				}
			}
		}
		if comment {
			continue
		}
		if observed != nil {
			if err := observed.add(line, n); err != nil {
				return nil, fail(err)
			}
			continue
		}
		p, err := parsePage(line, fields, &dates)
		if err == nil && seen[p.URL] {
			err = fmt.Errorf("an earlier line is for %s", p.URL)
		}
		if err != nil {
			return nil, fail(err)
		}
		seen[p.URL] = true
		pages = append(pages, p)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fail(fmt.Errorf("longer than %d MiB", longestLine>>20))
	} else if err != nil {
		return nil, fail(err)
	}
	if observed != nil {
		var err error
		if pages, err = observed.pages(func(line int, err error) error { n = line; return fail(err) }); err != nil {
			return nil, err
		}
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("simulate: %w", text.Whole(errors.New("the history has no pages")))
	}
	bySignature(pages)
	return BySignature(pages, "", "")
}

// parsePage reads a line that has a page and its events. Its fields are separated by
// blanks, except that a name that ends with a tab may contain some.
func parsePage(line string, fields []string, dates *span) (Page, error) {
	p := Page{URL: fields[0]}
	if name, rest, ok := strings.Cut(line, "\t"); ok && strings.TrimSpace(name) != "" {
		p.URL = strings.TrimSpace(name)
		fields = append([]string{p.URL}, strings.Fields(rest)...)
	}
	for _, f := range fields[1:] {
		if text, ok := strings.CutPrefix(f, "w="); ok {
			w, err := strconv.ParseFloat(text, 64)
			if err != nil || !(w > 0 && w <= 1e12) {
				return p, fmt.Errorf("%q is not a weight above zero", f)
			}
			p.Weight = w
			continue
		}
		e, err := parseEvent(f)
		if err != nil {
			return p, err
		}
		if k := len(p.Events); k > 0 && e.Time.Before(p.Events[k-1].Time) {
			return p, fmt.Errorf("%s comes after a later event; the earliest must be first", f)
		}
		if err := dates.add(e.Time); err != nil {
			return p, fmt.Errorf("%s %w", f, err)
		}
		p.Events = append(p.Events, e)
	}
	return p, nil
}

// span is from the first to the last of the dates of a history.
type span struct {
	first, last time.Time
	some        bool
}

// add adds a date, unless that makes the span longer than a simulation can be.
func (s *span) add(at time.Time) error {
	first, last := s.first, s.last
	if !s.some || at.Before(first) {
		first = at
	}
	if !s.some || at.After(last) {
		last = at
	}
	other := first
	if at.Equal(first) {
		other = last
	}
	if last.Sub(first) > longest {
		return fmt.Errorf("is more than %d years from %s: is a date misspelled?", longest/(365*24*time.Hour), other.UTC().Format(time.DateOnly))
	}
	s.first, s.last, s.some = first, last, true
	return nil
}

// longestLine is the maximum size of a line of a history.
const longestLine = 16 << 20

func parseEvent(s string) (Event, error) {
	text, kind := s, Modified
	if n := len(s); n > 2 && s[n-2] == ':' && strings.IndexByte("AMDBT", s[n-1]) >= 0 {
		text, kind = s[:n-2], Kind(s[n-1])
	}
	t, ok := parseTime(text)
	if !ok {
		return Event{}, fmt.Errorf("%q is not an event; want a time (%s) and :A, :M, :D, :B or :T", s, timeForms)
	}
	return Event{t, kind}, nil
}

const timeForms = "RFC 3339, a date, 20060102150405, or seconds or thousandths since 1970"

// parseTime reads a time. Without a zone it is UTC.
func parseTime(text string) (time.Time, bool) {
	for _, form := range [...]string{time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04", time.RFC1123, time.RFC1123Z} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC(), true
		}
	}
	// A number with as many digits as a date is a date, not a day of 1970 or of 2611.
	for _, form := range [...]string{"20060102", "20060102150405"} {
		if t, err := time.Parse(form, text); len(text) == len(form) && err == nil && t.Year() >= 1900 && t.Year() < 2100 {
			return t, true
		}
	}
	whole, part, ok := strings.Cut(text, ".")
	if ok && strings.Trim(part, "0123456789") == "" {
		text = whole
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch most := int64(1e11); {
	case err != nil:
	case -most < n && n < most:
		return time.Unix(n, 0).UTC(), true
	case -1000*most < n && n < 1000*most:
		return time.UnixMilli(n).UTC(), true
	}
	return time.Time{}, false
}

// Never returns a page that never changes.
func Never(url string, start time.Time) Page {
	return Page{URL: url, Events: []Event{{start, Appears}}}
}

// Every returns a page that changes every period during span. A period below a
// second counts as a second.
func Every(url string, start time.Time, span, period time.Duration) Page {
	p := Never(url, start)
	period = max(period, time.Second)
	for at := period; at < span; at += period {
		p.Events = append(p.Events, Event{start.Add(at), Modified})
	}
	return p
}

// Poisson returns a page that changes at random during span, independently, and once in
// mean on average: real pages are much like that. A mean below a second counts as a
// second. The same seed gives the same page.
func Poisson(url string, start time.Time, span, mean time.Duration, seed uint64) Page {
	p := Never(url, start)
	rnd := rand.New(rand.NewPCG(seed, 0))
	mean = max(mean, time.Second)
	for at := 0.0; ; {
		at += rnd.ExpFloat64() * mean.Seconds()
		if at >= span.Seconds() {
			return p
		}
		p.Events = append(p.Events, Event{start.Add(time.Duration(at) * time.Second), Modified})
	}
}
