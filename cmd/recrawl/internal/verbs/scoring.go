package verbs

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/schedule/simulate/ordering"
)

// toGraph is the group of flags of the verb scoring that say what is crawled.
const toGraph = "The graph"

func (a *app) scoring() *cli.Command {
	return &cli.Command{
		Name: "scoring", Category: flags.ReadVerbs, Usage: "try orders of fetching on a link graph",
		Description: `recrawl scoring simulate crawls a link graph in each order, and shows how early it
finds the pages that matter: see recrawl scoring simulate --help.`,
		Commands: []*cli.Command{a.scoringSimulate()},
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return flags.Usagef("scoring has no %q; try recrawl scoring simulate", c.Args().First())
			}
			return flags.Usagef("scoring what? simulate")
		},
	}
}

func (a *app) scoringSimulate() *cli.Command {
	return &cli.Command{
		Name: "simulate", Usage: "show how early each order of fetching finds the pages that matter",
		Description: `Replays a crawl over a link graph in each order, and prints what share of the total
PageRank it holds after downloading a given share of the pages. The orders are:
breadth first, at random, by the number of links seen, Nutch's OPIC, OPIC, PageRank
of the known graph, the best known page by its true PageRank, and the best possible.
OPIC and PageRank run the same code as a crawl. It needs neither a crawl nor a
network.

  recrawl scoring simulate -graph links.tsv -svg curves.svg
  recrawl scoring simulate -graph links.tsv -runs 20
  recrawl scoring simulate -pages 100000
  recrawl scoring simulate -pages 325557 -sites

A graph has one link a line: the page it is on and the page it leads to, separated
by a tab. A page is a URL or any name without spaces. Lines that start with # or %
are skipped. If the first line is the number of pages, a line follows for each, with
the numbers of the pages it links to, as in WebGraph's ASCII format. The file may be
gzipped.

  https://example.org/	https://example.org/about
  17	4711`,
		Flags: flags.Join(
			&cli.StringFlag{Name: "graph", Category: toGraph, Usage: "the links, from `FILE`; - is standard input"},
			&cli.IntFlag{Name: "pages", Category: toGraph, Value: 20_000, Usage: "without a file: a generated web of `N` pages (default 20000)"},
			&cli.BoolFlag{Name: "sites", Category: toGraph, Usage: "without a file: generate large sites with deep collections"},
			&cli.FloatFlag{Name: "batch", Category: toGraph, Value: 0.005, Usage: "fetch this `SHARE` of all pages in a round (default 0.005)"},
			&cli.IntFlag{Name: "seeds", Category: toGraph, Value: 20, Usage: "start with `N` pages chosen at random, and add as many whenever nothing more is known (default 20)"},
			&cli.IntFlag{Name: "runs", Category: toGraph, Value: 1, Usage: "average over `N` choices of seeds (default 1)"},
			&cli.Uint64Flag{Name: "seed", Category: toGraph, Value: 1, Usage: "seed the random choices with `NUMBER` (default 1)"},
			&cli.FloatFlag{Name: "growth", Category: toGraph, Value: 0.03, Usage: "recompute ranks when this `SHARE` of the known links has changed (default 0.03)"},
			&cli.StringFlag{Name: "svg", Category: flags.OutputGroup, Usage: "also draw the curves to `FILE`"},
			&cli.BoolFlag{Name: "times", Category: flags.OutputGroup, Usage: "show how long each order took"},
			&cli.BoolFlag{Name: "json", Category: flags.OutputGroup, Usage: "print JSON instead of text"},
		),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			o := ordering.Options{Batch: c.Float("batch"), Seeds: int(c.Int("seeds")), Runs: int(c.Int("runs")), Seed: c.Uint64("seed")}
			if !(o.Batch > 0 && o.Batch <= 1) {
				return flags.Usagef("-batch: %g is not a share above 0, up to 1", o.Batch)
			}
			if o.Seeds < 1 || o.Runs < 1 {
				return flags.Usagef("-seeds and -runs must be at least 1")
			}
			growth := c.Float("growth")
			if !(growth >= 0) {
				return flags.Usagef("-growth: %g is not a share", growth)
			}
			if growth == 0 {
				growth = -1
			}
			if err := checkPictures(c, ""); err != nil {
				return err
			}
			w, err := a.graphOf(c)
			if err != nil {
				return err
			}
			orders := ordering.Stock()
			for i := range orders {
				orders[i].Rank.Growth = growth
			}
			done := render.ShowWork(a.err, fmt.Sprintf("simulating %d orders", len(orders)))
			defer done()
			r, err := ordering.Run(ctx, w, orders, o)
			if err != nil {
				return err
			}
			if name := c.String("svg"); name != "" {
				if err := render.ReplaceFile(name, func(f *os.File) error { return r.WriteSVG(f) }); err != nil {
					return fmt.Errorf("-svg: %w", err)
				}
			}
			if c.Bool("json") {
				return a.printOrders(&r)
			}
			if err := r.WriteTable(a.out); err != nil || !c.Bool("times") {
				return err
			}
			fmt.Fprintln(a.out)
			return r.WriteTimes(a.out)
		},
	}
}

func (a *app) printOrders(r *ordering.Result) error {
	for i := range r.Curves {
		c := &r.Curves[i]
		err := a.printLine(map[string]any{"order": c.Name, "pages": r.Pages, "links": r.Links, "held": c.Held, "area": c.Area, "lowest": c.Low, "highest": c.High,
			"seconds": c.Elapsed.Seconds(), "ranking_seconds": c.Ranking.Seconds(), "ranked": c.Ranked, "written": c.Written})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) graphOf(c *cli.Command) (*ordering.Web, error) {
	switch name := c.String("graph"); name {
	case "":
		n := int(c.Int("pages"))
		if n < 2 || n > 50_000_000 {
			return nil, flags.Usagef("-pages: %d is not a number from 2 to 50,000,000", n)
		}
		if c.Bool("sites") {
			return ordering.GenerateSites(n, c.Uint64("seed")), nil
		}
		return ordering.Generate(n, c.Uint64("seed")), nil
	default:
		if c.IsSet("pages") || c.Bool("sites") {
			return nil, flags.Usagef("-graph excludes -pages and -sites")
		}
		if name == "-" {
			return ordering.Read(os.Stdin)
		}
		return readFile(name, ordering.Read)
	}
}
