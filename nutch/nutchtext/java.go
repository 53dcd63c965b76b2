package nutchtext

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Float returns what Java's Float.toString does: the shortest digits that
// identify the float, but at least two; with an exponent below a thousandth and
// from ten million on. (Before version 19 Java printed a few digits too many in
// rare cases.)
func Float(f float32) string { return java(float64(f), 32) }

// double returns what Java's Double.toString does; see [Float].
func double(f float64) string { return java(f, 64) }

func java(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0 && math.Signbit(f):
		return "-0.0"
	case f == 0:
		return "0.0"
	}
	text := nearest(f, strconv.FormatFloat(f, 'e', -1, bits), bits)
	if !strings.Contains(text, ".") {
		// Of one digit Java makes two, if the nearest number with two is still this
		// one: 1.4E-45 and not 1.0E-45.
		two := strconv.FormatFloat(f, 'e', 1, bits)
		if back, err := strconv.ParseFloat(two, bits); err == nil && back == f {
			text = two
		}
	}
	mantissa, exponent, _ := strings.Cut(text, "e")
	if a := math.Abs(f); a >= 1e-3 && a < 1e7 {
		mantissa = strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		return mantissa
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}

// nearest returns the shortest digits of a number, given some that are as short.
// Just between two of them Java takes the even one: 2.4414062E-4 for 1/4096.
func nearest(f float64, text string, bits int) string {
	mantissa, _, _ := strings.Cut(text, "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	other := strconv.FormatFloat(f, 'e', len(fraction), 64)
	if back, err := strconv.ParseFloat(other, bits); err != nil || back != f {
		return text
	}
	return other
}

// date returns what Java's Date.toString does where the time zone is UTC: "Mon Jan
// 05 08:00:00 UTC 2026". A zero time is the beginning of 1970, as in Nutch, where
// times are numbers.
func date(t time.Time) string {
	if t.IsZero() {
		t = time.UnixMilli(0)
	}
	return t.UTC().Format("Mon Jan 02 15:04:05 UTC 2006")
}
