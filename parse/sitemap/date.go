package sitemap

import (
	"strings"
	"time"
)

// parseDate parses a date of a sitemap or feed, and returns the length of the
// unit it was given in. It accepts the W3C's profile of ISO 8601 in each
// precision, RFC 822 with the years of RFC 2822, seconds and milliseconds since
// 1970, and what programs write that attempt one of these. A time without a
// zone is UTC. Dates before 1970 are some program's zero value, and invalid.
func parseDate(b []byte) (t time.Time, span time.Duration, ok bool) {
	d := date{month: 1, day: 1}
	if !d.iso(b) {
		d = date{month: 1, day: 1}
		if !d.words(string(b)) {
			return time.Time{}, 0, false
		}
	}
	return d.time()
}

// date is the parts of a date.
type date struct {
	year, month, day int
	hour, min, sec   int
	nano, zone       int   // zone in seconds east
	unix             int64 // instead of all of them, in milliseconds
	unit             time.Duration
}

const (
	day   = 24 * time.Hour
	month = 31 * day // of a unit: approximate
	year  = 366 * day
)

func (d *date) time() (time.Time, time.Duration, bool) {
	if d.unix != 0 {
		return time.UnixMilli(d.unix).UTC(), time.Second, d.unix > 0
	}
	if d.hour == 24 && d.min == 0 && d.sec == 0 {
		d.hour, d.day = 0, d.day+1
		// The previous day has to exist.
		if !exists(d.year, d.month, d.day-1) {
			return time.Time{}, 0, false
		}
	} else if d.hour > 23 || !exists(d.year, d.month, d.day) {
		return time.Time{}, 0, false
	}
	if d.min > 59 || d.sec > 60 {
		return time.Time{}, 0, false
	}
	t := time.Date(d.year, time.Month(d.month), d.day, d.hour, d.min, min(d.sec, 59), d.nano, time.UTC).
		Add(-time.Duration(d.zone) * time.Second)
	if t.Unix() <= 0 || t.Year() > 9999 {
		return time.Time{}, 0, false
	}
	span := d.unit
	switch span {
	case year:
		span = t.AddDate(1, 0, 0).Sub(t)
	case month:
		span = t.AddDate(0, 1, 0).Sub(t)
	}
	return t, span, true
}

func exists(y, m, d int) bool {
	return m >= 1 && m <= 12 && d >= 1 && d <= time.Date(y, time.Month(m)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// iso parses forms that begin with the year, or are numbers.
func (d *date) iso(b []byte) bool {
	n := digits(b)
	if n == len(b) {
		switch n {
		case 10:
			d.unix = 1000 * number(b)
			return true
		case 13:
			d.unix = number(b)
			return true
		case 14:
			d.clock(b[8:])
		}
	}
	switch n {
	case 8, 14: // 20240503
		d.year, d.month, d.day, d.unit = int(number(b[:4])), int(number(b[4:6])), int(number(b[6:8])), day
		if n == 14 {
			d.unit = time.Second
			return len(b) == n
		}
		return d.rest(b[8:])
	case 4:
	default:
		return false
	}
	d.year, d.unit = int(number(b[:4])), year
	b = b[4:]
	if len(b) == 0 {
		return true
	}
	sep := b[0]
	if sep != '-' && sep != '/' && sep != '.' {
		return false
	}
	b = b[1:]
	if n = digits(b); n < 1 || n > 2 {
		return false
	}
	d.month, d.unit = int(number(b[:n])), month
	if b = b[n:]; len(b) == 0 {
		return true
	}
	if b[0] != sep {
		return false
	}
	b = b[1:]
	if n = digits(b); n < 1 || n > 2 {
		return false
	}
	d.day, d.unit = int(number(b[:n])), day
	return d.rest(b[n:])
}

// rest parses what follows a day: nothing, a zone, or a time and maybe a zone.
func (d *date) rest(b []byte) bool {
	if len(b) > 0 && (b[0]|0x20 == 't' || b[0] == '_') {
		b = b[1:]
	}
	b = trimLeft(b)
	if len(b) > 0 && isDigit(b[0]) {
		n := d.clock(b)
		if n == 0 {
			return false
		}
		b = trimLeft(b[n:])
		if len(b) >= 2 && b[1]|0x20 == 'm' && (len(b) == 2 || b[2] == ' ') {
			if !d.half(b[0]) {
				return false
			}
			b = trimLeft(b[2:])
		}
		if len(b) == 5 && digits(b) == 2 && b[2] == ':' {
			// A plus sign that a program took for an encoded space.
			return d.offset(1, b)
		}
	}
	if len(b) == 0 {
		return true
	}
	if c := b[0]; d.unit == day && c != '+' && c != '-' && (c|0x20 != 'z' || len(b) > 1) {
		return false
	}
	return d.zoned(string(b))
}

// clock parses hh, hh:mm, hh:mm:ss with a fraction, or the same without colons.
// It returns the length of what it has read; zero if that is not a time.
func (d *date) clock(b []byte) int {
	n := digits(b)
	if n == 4 || n == 6 {
		d.hour, d.min, d.unit = int(number(b[:2])), int(number(b[2:4])), time.Minute
		if n == 6 {
			d.sec, d.unit = int(number(b[4:6])), time.Second
			n += d.fraction(b[n:])
		}
		return n
	}
	if n < 1 || n > 2 {
		return 0
	}
	d.hour, d.unit = int(number(b[:n])), time.Hour
	at := n
	for _, part := range []*int{&d.min, &d.sec} {
		if at >= len(b) || b[at] != ':' {
			return at
		}
		n := digits(b[at+1:])
		if n < 1 || n > 2 {
			return 0
		}
		*part = int(number(b[at+1 : at+1+n]))
		d.unit = max(d.unit/60, time.Second)
		at += 1 + n
	}
	return at + d.fraction(b[at:])
}

func (d *date) fraction(b []byte) int {
	if len(b) < 2 || b[0] != '.' && b[0] != ',' {
		return 0
	}
	n := digits(b[1:])
	if n == 0 {
		return 0
	}
	nano := number(b[1 : 1+min(n, 9)])
	for range 9 - min(n, 9) {
		nano *= 10
	}
	d.nano = int(nano)
	return 1 + n
}

// half converts a 12-hour time to a 24-hour one.
func (d *date) half(c byte) bool {
	switch c | 0x20 {
	case 'a':
		if d.hour == 12 {
			d.hour = 0
		}
	case 'p':
		if d.hour < 12 {
			d.hour += 12
		}
	default:
		return false
	}
	return true
}

// zoned parses a zone: a name, an offset, or one after the other. Additions
// that some languages make for clarity are left out: "+0000 UTC",
// "+02:00[Europe/Berlin]".
func (d *date) zoned(s string) bool {
	s, _, _ = strings.Cut(s, "[")
	i := 0
	for i < len(s) && 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z' {
		i++
	}
	name := strings.ToUpper(s[:i])
	switch name {
	case "EST", "CDT":
		d.zone = -5 * 3600
	case "EDT":
		d.zone = -4 * 3600
	case "CST", "MDT":
		d.zone = -6 * 3600
	case "MST", "PDT":
		d.zone = -7 * 3600
	case "PST":
		d.zone = -8 * 3600
	case "CET":
		d.zone = 3600
	case "CEST":
		d.zone = 2 * 3600
	default:
		// Other names are ambiguous, or wrong: by RFC 2822 section 4.3 they
		// mean nothing, and neither do single letters.
		if i > 5 {
			return false
		}
	}
	s = strings.TrimSpace(s[i:])
	if s == "" {
		return i > 0
	}
	if s[0] != '+' && s[0] != '-' {
		return false
	}
	sign := 1
	if s[0] == '-' {
		sign = -1
	}
	s, name, _ = strings.Cut(s[1:], " ")
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return false
	}
	return d.offset(sign, []byte(strings.TrimRight(s, "Zz")))
}

// offset reads hh, hhmm, hh:mm or hh:mm:ss.
func (d *date) offset(sign int, b []byte) bool {
	var at date
	if n := at.clock(b); n == 0 || n != len(b) || at.hour > 23 || at.min > 59 {
		return false
	}
	d.zone = sign * (at.hour*3600 + at.min*60)
	return true
}

// words parses forms in which the month is a word, and 31.12.2024.
func (d *date) words(s string) bool {
	if s, _, ok := strings.Cut(s, "("); ok {
		return d.words(s)
	}
	if len(s) > maxField {
		return false
	}
	if f := strings.SplitN(s, ".", 3); len(f) == 3 && len(f[2]) >= 4 && digits([]byte(f[2])) == 4 {
		b := []byte(f[2][:4] + "-" + f[1] + "-" + f[0] + f[2][4:])
		return digits([]byte(f[0])) == len(f[0]) && d.iso(b)
	}
	var haveDay, haveMonth, haveYear, haveTime bool
	for _, w := range strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == ',' || c == '\t' || c == '\n' || c == '\r' }) {
		if p := strings.Split(w, "-"); len(p) == 3 && !haveMonth && monthOf(p[1]) > 0 { // 02-Oct-2002
			d.month, haveMonth = monthOf(p[1]), true
			if !d.number(p[0], &haveDay, &haveYear) || !d.number(p[2], &haveDay, &haveYear) {
				return false
			}
			continue
		}
		m := 0
		if !haveMonth {
			m = monthOf(w)
		}
		switch {
		case m > 0:
			d.month, haveMonth = m, true
		case !haveTime && isWeekday(w):
		case strings.Contains(w, ":") && isDigit(w[0]):
			n := d.clock([]byte(w))
			if haveTime || n == 0 {
				return false
			}
			haveTime = true
			if w = w[n:]; w != "" && !(len(w) == 2 && w[1]|0x20 == 'm' && d.half(w[0])) && !d.zoned(w) {
				return false
			}
		case isDigit(w[0]):
			if !d.number(w, &haveDay, &haveYear) {
				return false
			}
		case haveTime && len(w) == 2 && w[1]|0x20 == 'm' && d.half(w[0]):
		case !haveTime || !d.zoned(w):
			return false
		}
	}
	if !haveMonth || !haveYear || haveTime && !haveDay {
		return false
	}
	if !haveTime {
		d.unit = day
		if !haveDay {
			d.unit = month
		}
	}
	return true
}

// number interprets a number as the day or the year, by its length and
// position.
func (d *date) number(w string, haveDay, haveYear *bool) bool {
	b := []byte(w)
	if len(b) == 0 || digits(b) != len(b) || len(b) > 4 || len(b) == 3 {
		return false
	}
	n := int(number(b))
	switch {
	case len(b) == 4 && !*haveYear:
		d.year, *haveYear = n, true
	case len(b) <= 2 && !*haveDay:
		d.day, *haveDay = n, true
	case len(b) == 2 && !*haveYear:
		d.year, *haveYear = 1900+n, true
		if n < 50 {
			d.year += 100
		}
	default:
		return false
	}
	return true
}

// monthOf returns the number of a month from its name or the first three or
// more letters of it, or zero.
func monthOf(w string) int {
	w = strings.TrimSuffix(w, ".")
	if len(w) < 3 {
		return 0
	}
	for m := time.January; m <= time.December; m++ {
		if name := m.String(); len(w) <= len(name) && strings.EqualFold(w, name[:len(w)]) {
			return int(m)
		}
	}
	return 0
}

func isWeekday(w string) bool {
	w = strings.TrimSuffix(w, ".")
	if len(w) < 3 {
		return false
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := d.String(); len(w) <= len(name) && strings.EqualFold(w, name[:len(w)]) {
			return true
		}
	}
	return false
}

// digits returns how many digits b begins with.
func digits(b []byte) int {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number is the value of a short string of digits.
func number(b []byte) int64 {
	var n int64
	for _, c := range b {
		n = 10*n + int64(c-'0')
	}
	return n
}

func trimLeft(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}
