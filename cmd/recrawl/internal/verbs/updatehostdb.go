package verbs

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/urlfilter"
)

func (a *app) updatehostdb() *cli.Command {
	const toCheck = "Looking up names"
	return &cli.Command{
		Name: "updatehostdb", Category: flags.StageVerbs, Usage: "compute the statistics of hosts",
		Description: `Computes pages by status, home page, response times and types of each host, anew
from the crawl db; host expressions of generate see the figures of the last run.
Response times and types need -visit-meta or -conf with crawl or update. Host names
are looked up only on request.

  recrawl updatehostdb -d crawl
  recrawl updatehostdb -d crawl -checkAll
  recrawl hosts -d crawl -expr 'gone > fetched'`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringFlag{Name: "by", Usage: "compute them per `MODE`, host or domain; it must match -queue-by of the crawl (default host)", Value: "host"},
			&cli.IntFlag{Name: "urlLimit", Usage: "skip hosts with fewer than `N` records"},
			&cli.BoolFlag{Name: "filter", Usage: "skip hosts that the URL filters reject"},
			flags.URLRules(),
			&cli.BoolFlag{Name: "normalize", Usage: "skip hosts whose normal form is another host"},
			&cli.StringFlag{Name: "tophosts", Usage: "take the scores of hosts from `FILE`: each line is a host, a tab and a number"},
			flags.Span("", "forget", "remove hosts that have no page and received no request for `TIME`, such as 90d (default: none)"),
			&cli.BoolFlag{Name: "nutch-compat", Usage: "as Nutch does, blame the host for every failed lookup, and do not count duplicates, orphans and parse failures for -urlLimit"},
			&cli.BoolFlag{Name: "checkNew", Category: toCheck, Usage: "look up names that were never looked up"},
			&cli.BoolFlag{Name: "checkKnown", Category: toCheck, Usage: "look up names that had an address, after a day"},
			&cli.BoolFlag{Name: "checkFailed", Category: toCheck, Usage: "look up names that had none, after a day per failure"},
			&cli.BoolFlag{Name: "checkAll", Category: toCheck, Usage: "look up all of these"},
			&cli.BoolFlag{Name: "force", Category: toCheck, Usage: "look up names even before their time"},
			flags.Span(toCheck, "recheck", "wait for `TIME`, such as 12h or 7d, instead of a day (default 24h)"),
			&cli.IntFlag{Name: "purge", Category: toCheck, Usage: "remove a host whose name had no address more than `N` times in a row; -1: never (default 3)"},
			&cli.IntFlag{Name: "resolvers", Category: toCheck, Usage: "look up at most `N` names at once (default 25)"},
			flags.NutchConf(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			conf, err := flags.ReadNutchConf(c)
			if err != nil {
				return err
			}
			o, err := statOptions(c, conf)
			if err != nil {
				return err
			}
			return a.changeStore(ctx, c, func(db crawls.DB, now func() time.Time) error {
				o.Now = now
				r, err := hoststat.Run(ctx, db.Crawl(), db.Hosts(), o)
				if err != nil {
					return err
				}
				return a.printHostStats(c, &r)
			})
		},
	}
}

func (a *app) printHostStats(c *cli.Command, r *hoststat.Report) error {
	if c.Bool("json") {
		return a.printJSON(map[string]int{"records": r.Records, "no_host": r.NoHost, "hosts": r.Hosts, "empty": r.Empty, "forgotten": r.Forgotten, "filtered": r.Filtered, "below_limit": r.BelowLimit,
			"checked": r.Checked, "new_known": r.NewKnown, "new_unknown": r.NewUnknown, "rediscovered": r.Rediscovered, "existing_known": r.ExistingKnown,
			"existing_unknown": r.ExistingUnknown, "purged": r.Purged, "unanswered": r.Unanswered})
	}
	fmt.Fprintf(a.out, "%d hosts, of %d records\n", r.Hosts, r.Records)
	if n := r.NoHost; n > 0 {
		fmt.Fprintf(a.out, "%d records have no host\n", n)
	}
	if r.Forgotten > 0 {
		fmt.Fprintf(a.out, "%d hosts without a page were removed\n", r.Forgotten)
	}
	if r.Filtered+r.BelowLimit > 0 {
		fmt.Fprintf(a.out, "left out: %d hosts by the rules, %d by the limit\n", r.Filtered, r.BelowLimit)
	}
	if r.Checked > 0 {
		fmt.Fprintf(a.out, "%d names looked up: %d new, %d new without address, %d rediscovered, %d as before, %d without address, %d without answer; %d removed\n",
			r.Checked, r.NewKnown, r.NewUnknown, r.Rediscovered, r.ExistingKnown, r.ExistingUnknown, r.Unanswered, r.Purged)
	}
	return nil
}

// statOptions makes options from a configuration, if there is one, and from the flags
// that were given. Only flags decide which names are looked up, as in Nutch.
func statOptions(c *cli.Command, conf *nutchconf.Options) (o hoststat.Options, err error) {
	if conf != nil {
		o = conf.Hosts
	}
	all := c.Bool("checkAll")
	o.CheckNew, o.CheckKnown, o.CheckFailed = all || c.Bool("checkNew"), all || c.Bool("checkKnown"), all || c.Bool("checkFailed")
	flags.SetBool(c, "force", &o.Force)
	flags.SetBool(c, "nutch-compat", &o.NutchCompat)
	for _, n := range []string{"urlLimit", "resolvers"} {
		if c.Int(n) < 0 {
			return o, flags.Usagef("-%s: %d is negative", n, c.Int(n))
		}
	}
	if c.IsSet("urlLimit") {
		o.URLLimit = int64(c.Int("urlLimit"))
	}
	if c.IsSet("resolvers") {
		o.Resolvers = c.Int("resolvers")
	}
	spans := flags.Spans{C: c}
	if c.IsSet("recheck") {
		o.Recheck = spans.Get("recheck")
	}
	if c.IsSet("forget") {
		o.Forget = spans.Get("forget")
	}
	if spans.Err != nil {
		return o, spans.Err
	}
	if c.IsSet("purge") {
		if o.PurgeAfter = int64(c.Int("purge")); o.PurgeAfter == 0 {
			return o, flags.Usagef("-purge: a name that had no address once may have one the next time; want at least 1, or -1")
		}
	}
	if conf == nil || c.IsSet("by") {
		switch by := c.String("by"); by {
		case "host":
			o.By = hostdb.ByHost
		case "domain":
			o.By = hostdb.ByDomain
		default:
			return o, flags.Usagef("-by: %q is not one of host and domain", by)
		}
	}
	if c.Bool("filter") || c.Bool("normalize") {
		rules, err := flags.RulesOf(c, conf)
		if err != nil {
			return o, err
		}
		o.Rules = &urlfilter.Rules{}
		if c.Bool("filter") {
			o.Rules.Filters = rules.Filters
		}
		if c.Bool("normalize") {
			o.Rules.Normalizers = rules.Normalizers
		}
	}
	if file := c.String("tophosts"); c.IsSet("tophosts") {
		if o.Scores, err = readScores(file); err != nil {
			return o, flags.Usagef("-tophosts: %w", err)
		}
	}
	return o, nil
}

// readScores reads lines of a host, a tab and a number. Empty lines and those that
// start with '#' are skipped.
func readScores(file string) (map[string]float32, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	scores := map[string]float32{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		host, text, ok := strings.Cut(line, "\t")
		score, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
		if !ok || err != nil || score != score {
			return nil, fmt.Errorf("%s:%d: %q is not a host, a tab and a number", file, n, line)
		}
		scores[strings.ToLower(strings.TrimSpace(host))] = float32(score)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return scores, nil
}
