package flags

import (
	"strconv"
	"time"

	"github.com/urfave/cli/v3"
)

// Span returns a flag that is a length of time, see ParseSpan.
func Span(group, name, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Category: group, Usage: usage}
}

// Spans reads flags that are durations.
type Spans struct {
	C   *cli.Command
	Err error
}

// Get returns zero for a flag that was not given.
func (s *Spans) Get(name string) time.Duration {
	text := s.C.String(name)
	if text == "" {
		return 0
	}
	d, ok := ParseSpan(text)
	if !ok && s.Err == nil {
		s.Err = Usagef("-%s: %q is not a time such as 90s, 15m, 12h, 30d, 4w or 1y, from a second to a hundred years", name, text)
	}
	return d
}

// ParseSpan reads what time.ParseDuration reads, and days, weeks and years of 365
// days.
func ParseSpan(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	if err != nil && s != "" {
		unit := map[byte]float64{'d': 24, 'w': 7 * 24, 'y': 365 * 24}[s[len(s)-1]]
		n, bad := strconv.ParseFloat(s[:len(s)-1], 64)
		if hours := n * unit; bad == nil && hours > 0 && hours <= 100*365*24 {
			d, err = time.Duration(hours*float64(time.Hour)), nil
		}
	}
	return d, err == nil && d >= time.Second && d <= 100*365*24*time.Hour
}
