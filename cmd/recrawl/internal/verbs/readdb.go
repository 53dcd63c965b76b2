package verbs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/nutch/nutchtext"
	"github.com/recrawl/recrawl/urlfilter"
)

// normal returns the form of a URL that the stores use.
func normal(url string) string {
	if n, err := urlfilter.Default().Apply(urlfilter.Inject, url); err == nil {
		return n
	}
	return url
}

func (a *app) readdb() *cli.Command {
	return &cli.Command{
		Name: "readdb", Category: flags.ReadVerbs, Usage: "show what the crawl db holds: -stats, -url U, -dump or -top N",
		Description: `Needs one of -stats, -url, -dump and -top. With -json each prints one object,
except -dump, which prints one object a line. With -format nutch each prints what
Nutch's readdb does, with times in UTC, and -dump is in URL order.

  recrawl readdb -d crawl -stats
  recrawl readdb -d crawl -url https://example.com/
  recrawl readdb -d crawl -top 20
  recrawl readdb -d crawl -dump -format csv > crawl.csv
  recrawl readdb -d crawl -dump -expr 'status == "db_gone" && retries > 0'`,
		Flags: flags.Join(flags.Dir(),
			&cli.BoolFlag{Name: "stats", Usage: "count the records by status, retries and host, with quantiles of score and interval, and show how fresh the copies are (see recrawl status)"},
			&cli.BoolFlag{Name: "sort", Usage: "with -stats: list the hosts of each status, too"},
			&cli.StringFlag{Name: "quantiles", Usage: "with -stats: these quantiles, for example `0.5,0.9`, from 0 to 1"},
			&cli.StringFlag{Name: "url", Usage: "show the record of one `URL`"},
			&cli.BoolFlag{Name: "dump", Usage: "show every record, in the order of the crawl db: by host, last label first"},
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT`: text, json (for a dump, an object a line), nutch or, for a dump, csv; normal means text (default text)", Value: "text"},
			&cli.IntFlag{Name: "top", Usage: "show the `N` records with the best score; so does -topN by itself"},
			&cli.FloatFlag{Name: "min", Usage: "with -top: only records with a score of at least `SCORE` (default: any; with -format nutch 0)"},
			&cli.StringFlag{Name: "status", Category: toFilter, Usage: "only records with this `STATUS`, such as db_gone; the prefix may be left out"},
			&cli.IntFlag{Name: "retry", Category: toFilter, Usage: "only records that failed at least `N` times in a row"},
			&cli.StringFlag{Name: "regex", Category: toFilter, Usage: "only records whose whole URL matches `PATTERN`, a Go regular expression"},
			&cli.FloatFlag{Name: "sample", Category: toFilter, Usage: "only this `SHARE` of the records, from 0 to 1. A hash of the URL decides, so the same records are always chosen, and a larger share includes a smaller one"},
			&cli.StringFlag{Name: "expr", Category: toFilter, Usage: "only records for which this `EXPRESSION` is true; its names are url, status, fetchTime, modifiedTime, retries, interval, score, signature and the names of metadata"},
			flags.Reporting()),
		Action: a.runReaddb,
	}
}

func (a *app) runReaddb(ctx context.Context, c *cli.Command) error {
	mode, n, err := readdbMode(c)
	if err != nil {
		return err
	}
	format, err := readdbFormat(c, mode)
	if err != nil {
		return err
	}
	quantiles, err := parseQuantiles(c)
	if err != nil {
		return err
	}
	conf, err := flags.ReadNutchConf(c)
	if err != nil {
		return err
	}
	if conf != nil && quantiles == nil {
		quantiles = conf.Quantiles
	}
	keep, unfit, err := recordFilter(c, flags.NutchCompat(c, conf))
	if err != nil {
		return err
	}
	if mode == "stats" {
		if err := flags.NoArgs(c); err != nil {
			return err
		}
		return a.withCrawl(ctx, c, access{}, func(s *session) error { return a.stats(ctx, c, s, format, quantiles) })
	}
	return a.readStore(ctx, c, func(db crawls.DB, _ func() time.Time) error {
		switch mode {
		case "url":
			return a.record(ctx, c, db, format)
		case "top":
			return a.top(ctx, c, db, format, n)
		}
		if err := a.dump(ctx, db.Crawl(), format, keep); err != nil {
			return err
		}
		if *unfit > 0 {
			fmt.Fprintf(a.err, "recrawl: the expression is neither true nor false for %d records, which are left out\n", *unfit)
		}
		return nil
	})
}

// readdbMode returns which of -stats, -url, -dump and -top is given, and the number of -top.
func readdbMode(c *cli.Command) (mode string, n int, err error) {
	var modes []string
	for _, f := range []string{"stats", "url", "dump", "top"} {
		if c.IsSet(f) {
			modes = append(modes, f)
		}
	}
	n = c.Int("top")
	if len(modes) == 0 && c.IsSet("topN") {
		modes, n = []string{"top"}, c.Int("topN")
	}
	switch {
	case len(modes) != 1:
		return "", 0, flags.Usagef("readdb needs one of -stats, -url U, -dump and -top N")
	case modes[0] == "url" && c.String("url") == "":
		return "", 0, flags.Usagef("-url needs a URL")
	case modes[0] == "top" && n < 1:
		return "", 0, flags.Usagef("-top: %d is less than one", n)
	}
	return modes[0], n, nil
}

// readdbFormat returns the format, and refuses flags that are for another mode.
func readdbFormat(c *cli.Command, mode string) (format string, err error) {
	format = c.String("format")
	switch {
	case format == "normal":
		format = "text"
	case !slices.Contains([]string{"text", "json", "csv", "nutch"}, format):
		return "", flags.Usagef("-format: %q is not one of text, json, csv and nutch", format)
	case format == "csv" && mode != "dump":
		return "", flags.Usagef("-format csv is for -dump")
	case c.Bool("json"):
		format = "json"
	}
	for flag, of := range map[string]string{"sort": "stats", "quantiles": "stats", "min": "top", "status": "dump", "retry": "dump", "regex": "dump", "sample": "dump", "expr": "dump"} {
		if c.IsSet(flag) && mode != of {
			return "", flags.Usagef("-%s is for -%s", flag, of)
		}
	}
	return format, nil
}

// record shows the record of one URL.
func (a *app) record(ctx context.Context, c *cli.Command, db crawls.DB, format string) error {
	// As given first, since the crawl may have its own normalizers.
	u := c.String("url")
	d, err := db.Crawl().Get(ctx, u)
	if errors.Is(err, crawldb.ErrNotFound) {
		u = normal(u)
		d, err = db.Crawl().Get(ctx, u)
	}
	if errors.Is(err, crawldb.ErrNotFound) {
		return fmt.Errorf("no record of %q", u)
	}
	switch {
	case err != nil:
		return err
	case format == "json":
		return a.printJSON(render.NewRecordJSON(&d))
	case format == "nutch":
		render.Exact(a.out)
		_, err := fmt.Fprintf(a.out, "URL: %s\n%s\n", d.URL, nutchtext.AppendDatum(nil, &d))
		return err
	}
	return render.Record(a.out, &d)
}

func (a *app) top(ctx context.Context, c *cli.Command, db crawls.DB, format string, n int) error {
	least := c.Float("min")
	if math.IsNaN(least) {
		return flags.Usagef("-min: NaN is not a score")
	}
	if !c.IsSet("min") && format != "nutch" {
		least = math.Inf(-1)
	}
	best, err := render.BestScored(ctx, db.Crawl(), n, least)
	if err != nil {
		return err
	}
	if format == "json" {
		out := make([]render.RecordJSON, len(best))
		for i := range best {
			out[i] = render.NewRecordJSON(&best[i])
		}
		return a.printJSON(map[string]any{"records": out})
	}
	for _, d := range best {
		score := fmt.Sprint(d.Score)
		if format == "nutch" {
			score = nutchtext.Float(d.Score)
		}
		fmt.Fprintf(a.out, "%s\t%s\n", score, d.URL)
	}
	return nil
}
