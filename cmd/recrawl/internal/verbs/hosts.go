package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/expression"
	"github.com/recrawl/recrawl/nutch/nutchtext"
)

func (a *app) hosts() *cli.Command {
	return &cli.Command{
		Name: "hosts", Aliases: []string{"readhostdb"}, Category: flags.ReadVerbs, Usage: "show what is known about each host",
		Description: `Shows when each host may be visited again, the answer to its robots.txt, how its
visits ended, and its statistics, once updatehostdb has computed them.

  recrawl hosts -d crawl
  recrawl hosts -d crawl -get example.com
  recrawl hosts -d crawl -expr 'gone > fetched' -dumpHostnames
  recrawl hosts -d crawl -json | jq '.hosts[] | select(.backoff > 0)'`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringFlag{Name: "get", Usage: "show only this `HOST`"},
			&cli.StringFlag{Name: "expr", Usage: "show only hosts for which this `EXPRESSION` is true; its names are unfetched, fetched, notModified, redirTemp, redirPerm, redirs, gone, ok, numRecords, dnsFailures, connectionFailures, score, host, homepage and the other figures, such as avg._rs_"},
			&cli.BoolFlag{Name: "dumpHomepages", Usage: "show only the URLs of home pages, where known"},
			&cli.BoolFlag{Name: "dumpHostnames", Usage: "show only the names"},
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT`: text, or nutch for the output of Nutch's readhostdb, with times in UTC (default text)", Value: "text"},
			flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if f := c.String("format"); f != "text" && f != "nutch" {
				return flags.Usagef("-format: %q is not one of text and nutch", f)
			}
			if c.IsSet("get") && c.String("get") == "" {
				return flags.Usagef("-get needs the name of a host")
			}
			var keep func(*hostdb.Host) (bool, error)
			if c.IsSet("expr") {
				var err error
				if keep, err = expression.HostFilter(c.String("expr")); err != nil {
					return flags.Usagef("-expr: %w", err)
				}
			}
			if c.Bool("dumpHomepages") && c.Bool("dumpHostnames") {
				return flags.Usagef("-dumpHomepages and -dumpHostnames exclude each other")
			}
			return a.readStore(ctx, c, func(db crawls.DB, _ func() time.Time) error {
				scan := db.Hosts().Scan(ctx)
				if name := c.String("get"); name != "" {
					h, err := db.Hosts().Get(ctx, strings.ToLower(name))
					if errors.Is(err, hostdb.ErrNotFound) {
						return fmt.Errorf("no record of host %q", name)
					}
					scan = func(yield func(hostdb.Host, error) bool) { yield(h, err) }
				}
				return a.showHosts(c, scan, keep)
			})
		},
	}
}

// showHosts shows the hosts for which keep is true, or all if keep is nil.
func (a *app) showHosts(c *cli.Command, hosts iter.Seq2[hostdb.Host, error], keep func(*hostdb.Host) (bool, error)) error {
	w := bufio.NewWriter(a.out)
	all := []render.HostJSON{}
	show := render.Host
	switch {
	case c.Bool("dumpHomepages"):
		show = func(w *bufio.Writer, h *hostdb.Host) {
			if h.Homepage != "" {
				fmt.Fprintln(w, h.Homepage)
			}
		}
	case c.Bool("dumpHostnames"):
		show = func(w *bufio.Writer, h *hostdb.Host) { fmt.Fprintln(w, h.Name) }
	case c.Bool("json"):
		show = func(_ *bufio.Writer, h *hostdb.Host) { all = append(all, render.NewHostJSON(h)) }
	case c.String("format") == "nutch":
		render.Exact(a.out)
		if !c.IsSet("get") {
			fmt.Fprintln(w, nutchtext.HostHeader())
		}
		show = func(w *bufio.Writer, h *hostdb.Host) { w.Write(nutchtext.AppendHost(nil, h)) }
	}
	unfit := 0
	for h, err := range hosts {
		if err != nil {
			return err
		}
		if keep != nil {
			ok, err := keep(&h)
			switch {
			case errors.Is(err, expression.ErrValue):
				unfit++
				continue
			case err != nil:
				return err
			case !ok:
				continue
			}
		}
		show(w, &h)
	}
	if unfit > 0 {
		fmt.Fprintf(a.err, "recrawl: the expression is neither true nor false for %d hosts, which are left out\n", unfit)
	}
	if c.Bool("json") && !c.Bool("dumpHomepages") && !c.Bool("dumpHostnames") {
		return a.printJSON(map[string]any{"hosts": all})
	}
	return w.Flush()
}
