package schedule

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/internal/textlines"
)

// ParseHostIntervals reads Nutch's adaptive-host-specific-intervals.txt: a host,
// its least and its greatest interval in seconds, separated by white space, on
// each line; "0" or "default" means the bound for all hosts. Empty lines and
// those that begin with "#" are skipped. Two lines for a host are an error. An
// error names the line, and the file if r has a name.
func ParseHostIntervals(r io.Reader) (map[string]Bounds, error) {
	hosts := map[string]Bounds{}
	err := readFields(r, func(f []string) error {
		least, err := parseInterval(f[1])
		if err != nil {
			return err
		}
		most, err := parseInterval(f[2])
		if err != nil {
			return err
		}
		if most > 0 && least > most {
			return errors.New("the least interval exceeds the greatest")
		}
		host := strings.ToLower(f[0])
		if _, ok := hosts[host]; ok {
			return fmt.Errorf("an earlier line is for %s", host)
		}
		hosts[host] = Bounds{least, most}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return hosts, nil
}

// ParseMimeRates reads Nutch's adaptive-mimetypes.txt: a media type and the
// rates at which its intervals grow and shrink, separated by white space, on
// each line. Empty lines and those that begin with "#" are skipped. Two lines
// for a type are an error. An error names the line, and the file if r has a
// name.
func ParseMimeRates(r io.Reader) (map[string]AdaptiveRates, error) {
	types := map[string]AdaptiveRates{}
	err := readFields(r, func(f []string) error {
		inc, err := parseNumber(f[1])
		if err != nil {
			return err
		}
		dec, err := parseNumber(f[2])
		if err != nil {
			return err
		}
		typ := strings.ToLower(f[0])
		if _, ok := types[typ]; ok {
			return fmt.Errorf("an earlier line is for %s", typ)
		}
		types[typ] = AdaptiveRates{inc, dec}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return types, nil
}

func parseInterval(s string) (time.Duration, error) {
	if strings.EqualFold(s, "default") {
		return 0, nil
	}
	f, err := parseNumber(s)
	if err != nil {
		return 0, err
	}
	if f >= math.MaxInt64/1e9 {
		return 0, fmt.Errorf("the interval %q is too long", s)
	}
	return time.Duration(f * float64(time.Second)), nil
}

func parseNumber(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is not a number of at least zero", s)
	}
	return f, nil
}

// readFields calls f with the three fields of each line that has any.
func readFields(r io.Reader, f func(fields []string) error) error {
	s := bufio.NewScanner(r)
	n := 1
	for ; s.Scan(); n++ {
		fields := strings.Fields(strings.TrimPrefix(s.Text(), "\ufeff"))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		err := error(nil)
		if len(fields) != 3 {
			err = fmt.Errorf("%d fields, want 3", len(fields))
		} else {
			err = f(fields)
		}
		if err != nil {
			return fmt.Errorf("schedule: %s: %w", textlines.Place(r, n), err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("schedule: %s: %w", textlines.Place(r, n), err)
	}
	return nil
}
