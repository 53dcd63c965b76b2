package directives

import (
	"strconv"
	"strings"
	"time"
)

const shortest = len("2 Jan 06")

// date reads a date as RFC 822, 850, 1123 and ISO 8601 write it, in any letter
// case, with or without the day of the week, the time and the zone.
func date(s string) (time.Time, bool) {
	if len(s) < shortest || len(s) > 64 || !strings.ContainsAny(s, "0123456789") {
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
	for _, layout := range layouts(s) {
		if t, err := time.Parse(layout, s); err == nil {
			return written(t.Add(-offset))
		}
	}
	return time.Time{}, false
}

// layouts returns those that a date without its zone may be of by its shape. To try
// them all would let a page with a hundred thousand invalid dates cost too much.
func layouts(s string) []string {
	clock := ""
	switch strings.Count(s, ":") {
	case 0:
	case 1:
		clock = " 15:04"
	case 2:
		clock = " 15:04:05"
	default:
		return nil
	}
	letter := s != "" && 'A' <= s[0] && s[0] <= 'Z'
	switch dashes := strings.Count(s, "-"); {
	case len(s) < shortest:
		return nil
	case letter && clock == " 15:04:05" && !strings.Contains(s, ","):
		return []string{"Jan 2 15:04:05 2006"} // as C writes it
	case letter:
		return []string{"Jan 2, 2006" + clock, "January 2, 2006" + clock}
	case dashes == 2 && s[4] == '-':
		return []string{"2006-01-02" + clock}
	case dashes == 2:
		return []string{"2-Jan-2006" + clock, "2-Jan-06" + clock}
	case dashes == 0:
		return []string{"2 Jan 2006" + clock, "2 Jan 06" + clock, "2 January 2006" + clock}
	}
	return nil
}

// written returns a time if it can be written as one reads it.
func written(t time.Time) (time.Time, bool) {
	if t.Year() <= 0 || t.Year() >= 10_000 {
		return time.Time{}, false
	}
	return t, true
}

// zone cuts the zone off the end of a date.
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
