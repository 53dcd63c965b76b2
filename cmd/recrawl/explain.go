package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/urlfilter"
)

func (a *app) explain() *cli.Command {
	return &cli.Command{
		Name: "explain", Category: looking, Usage: "say why a URL is or is not fetched next", ArgsUsage: "URL",
		Description: `Makes no request: what it says about robots.txt and the host is what the last
rounds learned. -agent is the name that robots.txt is matched against.

  recrawl explain -d crawl -agent mybot https://example.com/page

With -schedule learned it shows the arithmetic behind the interval:

  changes   how often the page changes, give or take a standard deviation: so
            many changes seen in so many days, or what pages like it do
  worth     weight / changes is what there is to lose, and the threshold of a
            visit, which follows from the budget, a share of it
  signs     what those of sitemaps, feeds and Signal are worth on this host
  interval  after r changes that share is lost: 1 - (1 + r) / exp(r), less where
            there are signs; r / changes is the time until then, within bounds
  next      the last visit, and the interval that was set then. The threshold
            may have changed since: a visit now would set the interval above`,
		Flags: flags(dirFlag(), &cli.StringFlag{Name: "agent", Usage: "the `NAME` of the crawler"},
			&cli.StringFlag{Name: "host-rules", Usage: "the `FILE` of host rules, to know which hosts are closed: see recrawl crawl --help"}, urlRulesFlag(), scheduling(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() != 1 {
				return usagef("explain needs one URL")
			}
			return a.with(ctx, c, access{}, func(s *session) error {
				e, err := s.crawler.Explain(ctx, c.Args().First())
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(explanationJSON(&e))
				}
				return printExplanation(a.out, &e)
			})
		},
	}
}

func explanationJSON(e *recrawl.Explanation) map[string]any {
	out := map[string]any{"url": e.URL, "normal": e.Normal, "verdict": e.Verdict, "due": e.Due, "leased": e.Leased,
		"robots_known": e.RobotsKnown, "robots_allowed": e.RobotsAllowed, "robots_unavailable": e.RobotsUnavailable, "crawl_delay_seconds": e.CrawlDelay.Seconds()}
	if e.Rejected != nil {
		out["rejected"] = e.Rejected.Error()
	}
	if !e.Spent.IsZero() {
		out["budget_spent_until"] = e.Spent
	}
	if e.Record != nil {
		out["record"] = record(e.Record)
	}
	if e.Visit != nil {
		out["visit"] = visit(e.Visit)
	}
	if m := e.Sitemap; m != nil {
		out["sitemap"] = map[string]any{"depth": m.Depth, "listed_by": listed(m.Origins)}
	}
	if h := e.Hint; h != nil {
		out["hint"] = map[string]any{"modified": h.Modified, "span_seconds": h.Span.Seconds(), "claim": e.Claim}
	}
	if e.Worth != nil {
		out["schedule"] = worthJSON(e)
	}
	if e.Host != nil {
		out["host"] = host(e.Host)
	}
	return out
}

func printExplanation(w io.Writer, e *recrawl.Explanation) error {
	fmt.Fprintf(w, "%s\n", e.Verdict)
	if e.Normal != e.URL {
		fmt.Fprintf(w, "\nnormal form  %s\n", e.Normal)
	}
	fmt.Fprintln(w)
	switch {
	case e.Rejected != nil && !errors.Is(e.Rejected, urlfilter.ErrRejected):
		return nil // it can have neither a host nor a record
	case e.Rejected != nil:
		fmt.Fprintf(w, "rules        %v\n", e.Rejected)
	default:
		fmt.Fprintln(w, "rules        accepted")
	}
	switch {
	case !e.RobotsKnown:
		fmt.Fprintln(w, "robots.txt   unknown or expired; fetched first")
	case e.RobotsUnavailable:
		fmt.Fprintln(w, "robots.txt   unavailable")
	case e.RobotsAllowed:
		fmt.Fprintf(w, "robots.txt   allows it, Crawl-delay %v\n", e.CrawlDelay)
	default:
		fmt.Fprintln(w, "robots.txt   forbids it")
	}
	if h := e.Host; h != nil {
		fmt.Fprintf(w, "host         %s may be visited from %s; %d fetched, %d failed, %d in a row, back-off %d\n", h.Name, stamp(h.NextFetch), h.Stats.Fetched, h.Stats.Failed, h.Stats.Failures, h.Backoff)
	} else {
		fmt.Fprintln(w, "host         never visited")
	}
	if e.Record == nil {
		fmt.Fprintln(w, "record       none")
		return nil
	}
	if v := e.Visit; v != nil {
		fmt.Fprintf(w, "last visit   %s\n", visitText(v))
	}
	if m := e.Sitemap; m != nil {
		fmt.Fprintf(w, "sitemap      at depth %d; listed by %s\n", m.Depth, cmp.Or(strings.Join(m.Origins, ", "), "nobody"))
	}
	if h := e.Hint; h != nil {
		fmt.Fprintf(w, "sitemaps say modified %s within %v: %s\n", stamp(h.Modified), h.Span, e.Claim)
	}
	if e.Worth != nil {
		printWorth(w, e)
	}
	lease := "none"
	if e.Leased {
		lease = e.Record.LeasedBy + " until " + stamp(e.Record.LeasedUntil)
	}
	fmt.Fprintf(w, "lease        %s\n\n", lease)
	return printRecord(w, e.Record)
}
