package nutchconf

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// builder makes options from a configuration. Its methods read the properties, and
// collect the errors so that all mistakes are reported at once.
type builder struct {
	*Conf
	asked  map[string]bool
	failed map[string]bool
	notes  []Note
	errs   []error
}

func newBuilder(c *Conf) *builder {
	return &builder{Conf: c, asked: map[string]bool{}, failed: map[string]bool{}}
}

func (b *builder) fail(name, format string, args ...any) {
	b.failed[name] = true
	b.keep(b.errorf(name, format, args...))
}

// keep adds an error, once however often a property is read.
func (b *builder) keep(err error) {
	if !slices.ContainsFunc(b.errs, func(e error) bool { return e.Error() == err.Error() }) {
		b.errs = append(b.errs, err)
	}
}

// note adds a note about a property, if it was set.
func (b *builder) note(name, text string) {
	if b.set(name) {
		b.notes = append(b.notes, b.noteOf(name, text))
	}
}

func (c *Conf) noteOf(name, text string) Note {
	v := c.values[name]
	return Note{Property: name, Value: v.text, File: v.file, Line: v.line, Text: text}
}

// text returns the value of a property; false if it has none.
func (b *builder) text(name string) (string, bool) {
	b.asked[name] = true
	s, ok, err := b.Get(name)
	if err != nil {
		b.failed[name] = true
		b.keep(err)
	}
	return s, ok
}

// word returns a value without the white space around it; empty if there is none.
func (b *builder) word(name string) string {
	s, _ := b.text(name)
	return strings.TrimSpace(s)
}

// words returns the words of a list that is separated by white space.
func (b *builder) words(name string) []string {
	s, _ := b.text(name)
	return strings.Fields(s)
}

// list returns the parts of a list that is separated by commas. It trims them: Hadoop
// keeps their blanks, with which they match nothing.
func (b *builder) list(name string) []string {
	s, _ := b.text(name)
	var parts []string
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// bool returns a value that is true or false. If it is neither, Hadoop silently uses
// the default of the code.
func (b *builder) bool(name string) bool {
	s := b.word(name)
	switch {
	case strings.EqualFold(s, "true"):
		return true
	case strings.EqualFold(s, "false") || s == "":
		return false
	}
	b.fail(name, "%q is neither true nor false", s)
	return false
}

// int returns a value that is a whole number of 32 bits, as Hadoop reads it; zero
// if there is none.
func (b *builder) int(name string) int { return int(b.integer(name, 32)) }

func (b *builder) integer(name string, bits int) int64 {
	s := b.word(name)
	if s == "" {
		return 0
	}
	base, digits, sign := 10, s, ""
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		digits, sign = rest, "-"
	}
	if len(digits) > 2 && strings.EqualFold(digits[:2], "0x") {
		base, digits = 16, digits[2:]
	}
	n, err := strconv.ParseInt(sign+digits, base, bits)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			b.fail(name, "%q does not fit into %d bits", s, bits)
		} else {
			b.fail(name, "%q is not a whole number", s)
		}
		return 0
	}
	return n
}

// count returns a whole number above zero.
func (b *builder) count(name string) int {
	n := b.int(name)
	if n <= 0 && !b.failed[name] {
		b.fail(name, "%d is not above zero", n)
	}
	return n
}

// limit returns a bound in the form of the options. In Nutch a value below zero means
// none; zero, here the default, gets a note.
func (b *builder) limit(name string) int {
	n := b.int(name)
	if n < 0 {
		return -1
	}
	if n == 0 && b.set(name) {
		b.note(name, "0 is not supported; the default of "+field(name)+" is used")
	}
	return n
}

// field names the field that a property sets, for messages.
func field(name string) string {
	if p := row(name); p != nil {
		return p.Field
	}
	return ""
}

// float returns a value as Java parses a float, which may end with a letter; zero if
// there is none. It may be NaN.
func (b *builder) float(name string) float32 {
	s := b.word(name)
	if s == "" {
		return 0
	}
	t := s
	if strings.ContainsAny(t[len(t)-1:], "fFdD") && !strings.Contains(strings.ToLower(t), "inf") {
		t = t[:len(t)-1]
	}
	f, err := strconv.ParseFloat(t, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		b.fail(name, "%q is not a number", s)
		return 0
	}
	return float32(f)
}

// number is float for values that must be finite.
func (b *builder) number(name string) float32 {
	f := b.float(name)
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		b.fail(name, "%q is not a number", b.word(name))
		return 0
	}
	return f
}

// factor returns a number for an option whose zero value means the default.
func (b *builder) factor(name string) float32 {
	if f := b.number(name); f != 0 {
		return f
	}
	return -1
}

// share returns a number of at least zero for such an option, as the nearest float64 to
// the decimal that was written: 0.4, not the float32 next to it.
func (b *builder) share(name string) float64 {
	f := b.number(name)
	if f < 0 {
		b.fail(name, "%v is negative", f)
	}
	if f == 0 {
		return -1
	}
	d, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return d
}

// seconds returns a time that is given in seconds, possibly with a fraction.
func (b *builder) seconds(name string) time.Duration {
	return b.duration(name, float64(b.number(name)), time.Second)
}

func (b *builder) duration(name string, n float64, unit time.Duration) time.Duration {
	d := n * float64(unit)
	if d >= math.MaxInt64 || d <= math.MinInt64 {
		b.fail(name, "%q is too long", b.word(name))
		return 0
	}
	return time.Duration(math.Round(d/1e6)) * time.Millisecond
}

// wholeSeconds and millis return a time that is given as a whole number.
func (b *builder) wholeSeconds(name string) time.Duration {
	return time.Duration(b.int(name)) * time.Second
}

func (b *builder) millis(name string) time.Duration {
	n := b.integer(name, 64)
	return b.duration(name, float64(n), time.Millisecond)
}

// positive fails if a time is not above zero, unless the property has failed already.
func (b *builder) positive(name string, d time.Duration) time.Duration {
	if d <= 0 && !b.failed[name] {
		b.fail(name, "%q is not above zero", b.word(name))
	}
	return d
}

// never returns a bound in the form of the options: none if it is negative, and the least
// possible if it is zero, which would mean the default.
func never(d time.Duration) time.Duration {
	switch {
	case d < 0:
		return -1
	case d == 0:
		return 1
	}
	return d
}

// by returns how URLs are grouped; host and domain are Nutch's words for the two ways.
func (b *builder) by(name, host, domain string) hostdb.By {
	switch s := b.word(name); {
	case strings.EqualFold(s, host):
		return hostdb.ByHost
	case strings.EqualFold(s, domain):
		return hostdb.ByDomain
	default:
		b.fail(name, "%q is neither %s nor %s", s, host, domain)
		return hostdb.ByHost
	}
}

// path returns the path of a configuration file.
func (c *Conf) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.dir, name)
}

// class returns the last part of the name of a Java class, which identifies it here.
func class(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
