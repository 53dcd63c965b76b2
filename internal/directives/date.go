package directives

import (
	"strconv"
	"strings"
	"time"
)

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
				return written(t.Add(-offset))
			}
		}
	}
	t, err := time.Parse("Jan 2 15:04:05 2006", s) // as C writes it
	if err != nil {
		return time.Time{}, false
	}
	return written(t.Add(-offset))
}

// written reports whether a time can be written as one reads it.
func written(t time.Time) (time.Time, bool) { return t, t.Year() > 0 && t.Year() < 10_000 }

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
