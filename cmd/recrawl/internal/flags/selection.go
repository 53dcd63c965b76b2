package flags

import (
	"maps"
	"math"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/expression"
)

// IgnoreExternal returns the flag -ignore-external.
func IgnoreExternal() cli.Flag {
	return &cli.BoolFlag{Name: "ignore-external", Category: SelectionGroup, Usage: "follow no links to other hosts; ports and schemes do not count"}
}

// Selection returns the selection flags that verbs share.
func Selection() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "topN", Category: SelectionGroup, Usage: "select at most `N` URLs per round, best first (0: 50,000)"},
		&cli.IntFlag{Name: "max-per-host", Category: SelectionGroup, Usage: "select at most `N` URLs of a host per round (0: no limit)"},
		&cli.IntFlag{Name: "adddays", Category: SelectionGroup, Usage: "also select what is due within `N` days"},
	}
}

// Conditions returns the further selection flags of the verbs that select.
func Conditions() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "by", Category: SelectionGroup, Usage: "apply -max-per-host to each `host|domain`", Value: "host"},
		&cli.FloatFlag{Name: "min-score", Category: SelectionGroup, Usage: "select no record with a priority below `X`"},
		Span(SelectionGroup, "max-interval", "select no record with an interval longer than `TIME`, such as 12h or 30d"),
		&cli.StringFlag{Name: "status", Category: SelectionGroup, Usage: "select only records with this `STATUS`, such as unfetched"},
		&cli.StringFlag{Name: "expr", Category: SelectionGroup, Usage: "select only records that meet `CONDITION`, such as \"score > 0.5 && url.startsWith('https:')\""},
		&cli.StringFlag{Name: "host-limit-expr", Category: SelectionGroup, Usage: "compute -max-per-host for each known host: a `NUMBER` such as \"gone > 100 ? 10 : 1000\"; 0 selects none of the host, -1 means no limit"},
		&cli.StringFlag{Name: "host-delay-expr", Category: SelectionGroup, Usage: "compute the pause between requests for each known host: `MILLISECONDS` such as \"avg._rs_ * 10\""},
	}
}

// ApplySelection adds the conditions of the flags to those of a configuration.
func ApplySelection(c *cli.Command, o *generate.Options) (err error) {
	if c.Name != "generate" && c.Name != "crawl" {
		return nil // there, flags of these names mean something else
	}
	if c.IsSet("by") {
		switch by := c.String("by"); by {
		case "host":
			o.By = hostdb.ByHost
		case "domain":
			o.By = hostdb.ByDomain
		default:
			return Usagef("-by: %q is neither host nor domain", by)
		}
	}
	if c.IsSet("min-score") {
		if o.MinScore = float32(c.Float("min-score")); math.IsNaN(float64(o.MinScore)) {
			return Usagef("-min-score: NaN is not a score")
		}
	}
	if c.IsSet("max-interval") {
		spans := Spans{C: c}
		if o.MaxInterval = spans.Get("max-interval"); spans.Err != nil {
			return spans.Err
		}
	}
	if c.IsSet("status") {
		if o.Status, err = crawldb.ParseStatus(c.String("status")); err != nil {
			return Usagef("-status: %w", err)
		}
	}
	compile := expression.Options{NutchCompat: o.NutchCompat}
	if c.IsSet("expr") {
		if o.Where, err = compile.RecordFilter(c.String("expr")); err != nil {
			return Usagef("-expr: %w", err)
		}
	}
	if c.IsSet("host-limit-expr") {
		if o.HostLimit, err = compile.HostNumber(c.String("host-limit-expr")); err != nil {
			return Usagef("-host-limit-expr: %w", err)
		}
	}
	if c.IsSet("host-delay-expr") {
		if o.HostDelay, err = compile.HostNumber(c.String("host-delay-expr")); err != nil {
			return Usagef("-host-delay-expr: %w", err)
		}
	}
	return nil
}

// Lists returns the flags about fetch lists.
func Lists() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "lists", Aliases: []string{"numFetchers"}, Category: SelectionGroup, Usage: "spread the URLs of a segment over `N` lists, for fetch -lists", Value: 1},
		&cli.StringFlag{Name: "partition", Category: SelectionGroup, Usage: "keep all URLs of one `host|domain|ip` on one list", Value: "host"},
		&cli.Int32Flag{Name: "seed", Category: SelectionGroup, Usage: "spread the URLs over the lists differently for each `N`"},
		&cli.BoolFlag{Name: "no-filter", Aliases: []string{"noFilter"}, Category: SelectionGroup, Usage: "do not apply the URL filters"},
		&cli.BoolFlag{Name: "no-norm", Aliases: []string{"noNorm"}, Category: SelectionGroup, Usage: "do not normalize URLs"},
	}
}

// ApplyLists adds those flags to a configuration.
func ApplyLists(c *cli.Command, o *generate.Options) (err error) {
	if c.IsSet("lists") {
		if o.Lists.Count = c.Int("lists"); o.Lists.Count < 1 {
			return Usagef("-lists: %d is less than one", o.Lists.Count)
		}
	}
	if c.IsSet("partition") {
		if o.Lists.By, err = hostdb.ParseBy(c.String("partition")); err != nil {
			return Usagef("-partition: %w", err)
		}
	}
	if c.IsSet("seed") {
		o.Lists.Seed = c.Int32("seed")
	}
	SetBool(c, "no-filter", &o.NoFilter)
	SetBool(c, "no-norm", &o.NoNormalize)
	return nil
}

// ListNumbers reads -lists of fetch: numbers, sorted, each once.
func ListNumbers(c *cli.Command) ([]int, error) {
	if !c.IsSet("lists") {
		return nil, nil
	}
	seen := map[int]bool{}
	for _, n := range c.IntSlice("lists") {
		if n < 0 {
			return nil, Usagef("-lists: %d is negative; lists are counted from 0", n)
		}
		seen[n] = true
	}
	return slices.Sorted(maps.Keys(seen)), nil
}
