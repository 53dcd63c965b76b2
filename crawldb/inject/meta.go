package inject

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/schedule"
)

// The names with a meaning.
const (
	scoreName    = "nutch.score"
	intervalName = "nutch.fetchInterval"
	fixedName    = "nutch.fetchInterval.fixed"
)

var (
	errMeta  = errors.New("inject: bad metadata")
	errNoURL = errors.New("inject: no URL")
)

// read interprets the metadata of a seed.
func (e *entry) read(pairs []string) error {
	var set []string
	defer func() { e.meta.SetAll(set...) }()
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return fmt.Errorf("%w: metadata %q is not name=value", errMeta, clip(pair))
		}
		switch name {
		case scoreName:
			v, err := strconv.ParseFloat(value, 32)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || strings.Contains(value, "_") {
				return fmt.Errorf("%w: %s is not a number: %q", errMeta, name, clip(value))
			}
			e.d.Score, e.scoreGiven = float32(v), true
		case intervalName, fixedName:
			v, err := strconv.Atoi(value)
			if err != nil || v <= 0 || v > math.MaxInt32 {
				return fmt.Errorf("%w: %s is not a number of seconds: %q", errMeta, name, clip(value))
			}
			set = append(set, e.every(v, name == fixedName)...)
		default:
			set = append(set, name, value)
		}
	}
	return nil
}

// every sets the interval of a seed, and returns the pair of metadata that keeps it fixed.
func (e *entry) every(seconds int, fixed bool) []string {
	e.d.Interval, e.timeGiven = time.Duration(seconds)*time.Second, true
	if !fixed {
		return nil
	}
	return []string{schedule.FixedKey, strconv.Itoa(seconds)}
}

// nutchRead reads it as Nutch does: only the whole is trimmed, and what cannot
// be read is ignored.
func (e *entry) nutchRead(pairs []string) error {
	var set []string
	defer func() { e.meta.SetAll(set...) }()
	text := strings.TrimFunc(strings.Join(pairs, "\t"), javaSpace)
	for pair := range strings.SplitSeq(text, "\t") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			continue
		}
		switch name {
		case scoreName:
			if v, ok := javaFloat(value); ok {
				e.d.Score, e.scoreGiven = v, true
			}
		case intervalName, fixedName:
			v, err := strconv.ParseInt(value, 10, 32)
			if fixed := name == fixedName; err == nil && (!fixed || v > -1) {
				set = append(set, e.every(max(int(v), 0), fixed)...) // a record cannot hold a negative one
			}
		default:
			set = append(set, name, value)
		}
	}
	return nil
}

// javaSpace is what Java's trim removes.
func javaSpace(r rune) bool { return r <= ' ' }

// javaFloat parses what Java's parseFloat does: surrounding white space and a
// suffix are allowed. A score that is not finite cannot be kept.
func javaFloat(s string) (float32, bool) {
	s = strings.TrimFunc(s, javaSpace)
	hex := strings.HasPrefix(strings.ToLower(strings.TrimLeft(s, "+-")), "0x")
	if n := len(s); n > 1 && strings.IndexByte("fFdD", s[n-1]) >= 0 && (!hex || strings.ContainsAny(s, "pP")) {
		s = s[:n-1]
	}
	v, err := strconv.ParseFloat(s, 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || strings.Contains(s, "_") {
		return 0, false
	}
	return float32(v), true
}
