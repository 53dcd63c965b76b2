// Package render turns reports of the library into text and JSON: numbers, tables, progress,
// help texts, and files that replace others once they are complete. It opens no crawl and
// decides nothing. Its functions are named after what they print; those ending in JSON
// return what is encoded.
package render

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Span prints a time as days where it is that long.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return d.Round(time.Millisecond).String()
	}
	if d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%.2fd", float64(d)/float64(day))
}

// Size formats a number of bytes.
func Size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n == 0:
		return "0 B"
	default:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
}

// Age formats a duration, to three digits.
func Age(d time.Duration) string {
	if d.Abs() < 100*time.Millisecond {
		return "0"
	}
	return Days(d.Hours() / 24)
}

// digits3 formats a number to three digits, without an exponent, and in full from 100 on.
func digits3(f float64) string {
	switch {
	case math.Abs(f) >= 100:
		return fmt.Sprintf("%.0f", f)
	case f == 0:
		return "0"
	}
	return fmt.Sprintf("%.3g", f)
}

// Days formats a number of days, in a more suitable unit where there is one.
func Days(days float64) string {
	switch {
	case days*24*60 < 2:
		return fmt.Sprintf("%.3gs", days*86400)
	case days*24 < 2:
		return fmt.Sprintf("%.3gm", days*24*60)
	case days < 2:
		return fmt.Sprintf("%.3gh", days*24)
	case days >= 1000:
		return fmt.Sprintf("%.0fd", days)
	}
	return fmt.Sprintf("%.3gd", days)
}

// Time formats a time to the millisecond, in UTC.
func Time(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// OrNull returns what Nutch prints for an empty text.
func OrNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

// Printable returns a metadata value as text, or in hexadecimal if it is not text.
func Printable(v string) string {
	if utf8.ValidString(v) && !strings.ContainsFunc(v, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return v
	}
	return "0x" + hex.EncodeToString([]byte(v))
}

// Count formats a count of things.
func Count[T int | int64](n T, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
