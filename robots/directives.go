package robots

import (
	"strconv"
	"strings"
	"time"
)

// Directives is what a page asks of a crawler in its X-Robots-Tag headers
// ([ParseHeader]) and meta elements ([ParseMeta]). The zero value asks for
// nothing. What is not understood asks for nothing either.
type Directives struct {
	// NoIndex asks not to show the page in an index, NoFollow not to follow its
	// links, NoArchive not to show a copy of it. "none" is NoIndex and NoFollow,
	// "nocache" is NoArchive.
	NoIndex, NoFollow, NoArchive bool
	// UnavailableAfter is when NoIndex begins to hold (unavailable_after); zero if
	// the page does not say so.
	UnavailableAfter time.Time
}

// Indexable reports whether the page may be in an index at the given time.
func (d Directives) Indexable(now time.Time) bool {
	return !d.NoIndex && (d.UnavailableAfter.IsZero() || now.Before(d.UnavailableAfter))
}

// And returns what both ask for: of two that disagree the stricter holds.
func (d Directives) And(e Directives) Directives {
	d.NoIndex = d.NoIndex || e.NoIndex
	d.NoFollow = d.NoFollow || e.NoFollow
	d.NoArchive = d.NoArchive || e.NoArchive
	if !e.UnavailableAfter.IsZero() && (d.UnavailableAfter.IsZero() || e.UnavailableAfter.Before(d.UnavailableAfter)) {
		d.UnavailableAfter = e.UnavailableAfter
	}
	return d
}

// ParseHeader reads the values of X-Robots-Tag headers for the crawler with the
// given product token: what they ask of everybody and of it, taken together. The
// name of a crawler before a colon holds for all that follows in that header, up
// to the next name: "otherbot: noindex, nofollow, recrawl: nofollow".
func ParseHeader(values []string, product string) Directives {
	var d Directives
	product = word(product)
	for _, v := range values {
		d.read(v, product, true)
	}
	return d
}

// ParseMeta reads a meta element with the given name and content. It asks for
// something if its name is "robots" or the product token.
func ParseMeta(name, content, product string) Directives {
	var d Directives
	if name = trim(name); strings.EqualFold(name, "robots") || isName(name, word(product)) {
		d.read(content, "", false)
	}
	return d
}

// isName reports whether a name is that of the crawler with the given product
// token, which is in lower case.
func isName(name, product string) bool {
	return product != "" && (word(name) == product || token(name) == product)
}

// read adds what a list of directives asks for. If names is set, those of
// crawlers may stand in it.
func (d *Directives) read(list, product string, names bool) {
	mine := true
	for more := true; more; {
		var part string
		part, list, more = strings.Cut(list, ",")
		for {
			name, rest, valued := strings.Cut(part, ":")
			name = trim(name)
			if !valued {
				d.words(part, mine)
				break
			}
			switch strings.ToLower(name) {
			case "unavailable_after":
				// A date may hold a comma: "Sunday, 06-Nov-94 08:49:37 GMT".
				next, after, found := strings.Cut(list, ",")
				t, ok := date(rest)
				if two, ok2 := date(rest + "," + next); more && ok2 {
					t, ok, list, more = two, true, after, found
				}
				if ok && mine {
					*d = d.And(Directives{UnavailableAfter: t})
				}
			case "max-snippet", "max-image-preview", "max-video-preview":
				// Of no use to a crawler, but no names.
			default:
				// Names begin with a letter; "06-Nov-94 08:49:37" is no name.
				if names && name != "" && (name == "*" || name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z') {
					mine = name == "*" || isName(name, product)
					part = rest
					continue
				}
			}
			break
		}
	}
}

// words adds directives without a value, which commas should separate, and
// white space and semicolons often do.
func (d *Directives) words(s string, mine bool) {
	if !mine {
		return
	}
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r == ';' || strings.ContainsRune(space, r) }) {
		switch strings.ToLower(w) {
		case "none":
			d.NoIndex, d.NoFollow = true, true
		case "noindex":
			d.NoIndex = true
		case "nofollow":
			d.NoFollow = true
		case "noarchive", "nocache":
			d.NoArchive = true
		}
	}
}

// date reads a date as RFC 822, 850, 1123 and ISO 8601 write it, in any letter
// case, with or without the day of the week, the time and the zone.
func date(s string) (time.Time, bool) {
	if len(s) > 64 || !strings.ContainsAny(s, "0123456789") {
		return time.Time{}, false
	}
	s = strings.Join(strings.Fields(strings.ToUpper(s)), " ")
	if day, rest, ok := strings.Cut(s, " "); ok && len(day) >= 3 && strings.Contains("MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY", strings.TrimSuffix(day, ",")) {
		s = rest
	}
	if len(s) > 10 && s[10] == 'T' && s[4] == '-' {
		s = s[:10] + " " + s[11:]
	}
	s, offset := zone(s)
	for _, layout := range [...]string{"2 Jan 2006", "2 Jan 06", "2-Jan-2006", "2-Jan-06", "2006-01-02", "2 January 2006", "Jan 2, 2006", "January 2, 2006"} {
		for _, clock := range [...]string{"", " 15:04:05", " 15:04"} {
			if t, err := time.Parse(layout+clock, s); err == nil {
				return t.Add(-offset), true
			}
		}
	}
	t, err := time.Parse("Jan 2 15:04:05 2006", s) // as C writes it
	return t.Add(-offset), err == nil
}

// zone takes the zone off the end of a date.
func zone(s string) (string, time.Duration) {
	i := len(s)
	for i > 0 && 'A' <= s[i-1] && s[i-1] <= 'Z' {
		i--
	}
	if name := s[i:]; i > 0 && name != "" {
		return strings.TrimRight(s[:i], " "), time.Duration(hours(name)) * time.Hour
	}
	i = strings.LastIndexAny(s, "+-")
	if i < 0 || !strings.Contains(s[:i], ":") {
		return s, 0 // a hyphen of the date
	}
	n, err := strconv.Atoi(strings.Replace(s[i+1:], ":", "", 1))
	if err != nil || len(s)-i < 5 {
		return s, 0
	}
	offset := time.Duration(n/100)*time.Hour + time.Duration(n%100)*time.Minute
	if s[i] == '-' {
		offset = -offset
	}
	return strings.TrimRight(s[:i], " "), offset
}

// hours returns how far a zone of RFC 822 is from UTC. Others count as UTC: a day
// is what people mean, and the zones that this machine knows mean nothing.
func hours(zone string) int {
	switch zone {
	case "EDT":
		return -4
	case "EST", "CDT":
		return -5
	case "CST", "MDT":
		return -6
	case "MST", "PDT":
		return -7
	case "PST":
		return -8
	}
	return 0
}
