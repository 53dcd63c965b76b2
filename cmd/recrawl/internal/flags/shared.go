package flags

import (
	"github.com/urfave/cli/v3"
)

// AcceptShared makes every verb with a directory accept all the flags that verbs share, so
// that a script can pass the same list to each. The help omits a flag where it has
// no effect.
func AcceptShared(root *cli.Command) {
	for _, verb := range root.Commands {
		has := map[string]bool{}
		for _, f := range verb.Flags {
			has[f.Names()[0]] = true
		}
		if !has["d"] {
			continue
		}
		for _, f := range NutchConf() {
			if !has[f.Names()[0]] {
				verb.Flags = append(verb.Flags, f)
			}
		}
		for _, f := range Join(Network(), Politeness(), FetchLimits(), Selection(), EndlessSites(), URLRules(), Extraction(), Scoring(), Scheduling(), Memory(), MinFree(), Reporting()) {
			if has[f.Names()[0]] {
				continue
			}
			switch f := f.(type) {
			case *cli.StringFlag:
				f.Hidden = true
			case *cli.BoolFlag:
				f.Hidden = true
			case *cli.IntFlag:
				f.Hidden = true
			case *cli.Float64Flag:
				f.Hidden = true
			case *cli.DurationFlag:
				f.Hidden = true
			case *cli.StringSliceFlag:
				f.Hidden = true
			}
			verb.Flags = append(verb.Flags, f)
		}
	}
}

// Join puts flags and lists of flags together.
func Join(lists ...any) []cli.Flag {
	var all []cli.Flag
	for _, l := range lists {
		switch l := l.(type) {
		case cli.Flag:
			all = append(all, l)
		case []cli.Flag:
			all = append(all, l...)
		}
	}
	return all
}
