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

// builder makes options of a configuration. Every property is asked for by one of
// its methods, which keep the errors, so that all mistakes are told at once.
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

// keep keeps an error, once however often a property is asked for.
func (b *builder) keep(err error) {
	if !slices.ContainsFunc(b.errs, func(e error) bool { return e.Error() == err.Error() }) {
		b.errs = append(b.errs, err)
	}
}

// note says that what a property asks for cannot be had, if somebody asked for it.
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

// list returns the parts of a list that is separated by commas, trimmed; Hadoop
// leaves blanks at them, with which no name is ever found.
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

// bool returns a value that is true or false. Where it is neither, Hadoop takes
// the default of the code and says nothing.
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
			b.fail(name, "%q has more than %d bits", s, bits)
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

// limit returns a bound as options have it: what is less than zero in Nutch means
// none, and so does zero where it cannot be a bound.
func (b *builder) limit(name string) int {
	n := b.int(name)
	if n < 0 {
		return -1
	}
	if n == 0 && b.set(name) {
		b.note(name, "0 is not a bound here: the default of "+field(name)+" holds")
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

// float returns a value as Java reads a float, with the letter that it may have
// at its end; zero if there is none. NaN is the caller's to look at.
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

// number is float for values that have to be finite.
func (b *builder) number(name string) float32 {
	f := b.float(name)
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		b.fail(name, "%q is not a number", b.word(name))
		return 0
	}
	return f
}

// factor returns a number as options have it where zero means the default.
func (b *builder) factor(name string) float32 {
	if f := b.number(name); f != 0 {
		return f
	}
	return -1
}

// share returns a number from zero as options have it: a decimal as it was
// written, so that 0.4 is 0.4 and not its neighbour among the floats of 32 bits.
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
		b.fail(name, "%q is too long a time", b.word(name))
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

// positive fails if a time is not above zero, where that is not told already.
func (b *builder) positive(name string, d time.Duration) time.Duration {
	if d <= 0 && !b.failed[name] {
		b.fail(name, "%q is not above zero", b.word(name))
	}
	return d
}

// never is a bound as options have it: none if it is negative, and the least
// there is if it is zero, which there means the default.
func never(d time.Duration) time.Duration {
	switch {
	case d < 0:
		return -1
	case d == 0:
		return 1
	}
	return d
}

// by returns how URLs are grouped: prefix is what stands before Host and Domain in
// Nutch's words.
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

// path returns where a file of the configuration is.
func (c *Conf) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.dir, name)
}

// class returns the last part of the name of a Java class, by which it is known
// here.
func class(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

// exists reports whether a file is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
