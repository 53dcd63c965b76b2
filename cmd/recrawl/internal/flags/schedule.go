package flags

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/schedule"
)

// Scheduling returns the flags that say when pages are fetched again. A crawl keeps them.
func Scheduling() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "schedule", Category: SelectionGroup, Usage: "fetch pages again on this `KIND` of schedule: learned (as often as each changes and matters), adaptive, or default (at the interval of each). The crawl remembers it until another is given; conf: as -conf says (default: adaptive)"},
		&cli.StringFlag{Name: "budget", Category: SelectionGroup, Usage: "with -schedule learned: make at most `N/TIME` visits, such as 10000/day, 50000/week or 500/hour, or polite: as many as hosts and threads allow. The crawl remembers it. 0: no limit, and a visit to each page every 30 days on average (default: 0)"},
	}
}

// setSchedule makes the schedule that a crawl keeps.
func setSchedule(k SavedFlags, o *recrawl.Options) error {
	if k.Budget != "" && k.Schedule != "learned" {
		return Usagef("-budget works only with -schedule learned")
	}
	if k.Schedule == "" {
		return nil
	}
	var base schedule.Default
	switch s := o.Schedule.(type) { // the schedule of a configuration
	case *schedule.Default:
		base = *s
	case schedule.Default:
		base = s
	case *schedule.Adaptive:
		base = s.Default
	case schedule.Adaptive:
		base = s.Default
	case *schedule.MimeAdaptive:
		base = s.Default
	case schedule.MimeAdaptive:
		base = s.Default
	}
	switch k.Schedule {
	case "default":
		o.Schedule = base
	case "adaptive":
		o.Schedule = schedule.Adaptive{Default: base}
	case "learned":
		perDay, err := parseBudget(k.Budget)
		if err != nil {
			return err
		}
		o.Schedule = schedule.Learned{Default: base, Budget: perDay}
	default:
		return Usagef("-schedule: %q is not one of learned, adaptive and default", k.Schedule)
	}
	return nil
}

// parseBudget reads visits a day.
func parseBudget(text string) (float64, error) {
	switch text {
	case "":
		return 0, nil
	case "polite":
		return -1, nil
	}
	number, per, ok := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	days := map[string]float64{"hour": 1. / 24, "day": 1, "week": 7, "month": 30, "year": 365}[per]
	if !ok {
		days = 1
	}
	if err != nil || !(n > 0) || n > 1e12 || days == 0 {
		return 0, Usagef("-budget: %q is neither a number of visits such as 10000/day, 50000/week or 500/hour, nor \"polite\"", text)
	}
	return n / days, nil
}
