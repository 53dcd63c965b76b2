package verbs

import (
	"bufio"
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) salvage() *cli.Command {
	return &cli.Command{
		Name: "salvage", Category: flags.StoreVerbs, Usage: "make a new crawl from the undamaged parts of a damaged one", ArgsUsage: "NEWDIR",
		Description: `Reads everything undamaged in the crawl, which stays as it is, and makes a new one
from it in NEWDIR: every undamaged block of a table, even if its index is lost;
every step in a log; and the blocks of segments that all parts have. Each line is
one loss, with the file and offset, and the keys, URL or segment lost; with -json
each line is one object. The last line is a summary. Pages lost from a fetch list
are due again. It may be killed and run again.

The exit code is 0 if nothing is lost, 3 if NEWDIR was made but something is lost,
and 1 if salvage failed or was interrupted.

  recrawl salvage -d crawl crawl-new
  recrawl verify -d crawl-new`,
		Flags: flags.Join(flags.Dir(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			dir, to := c.String("d"), c.Args().First()
			switch {
			case dir == "":
				return flags.Usagef("-d DIR is required: the directory of the damaged crawl")
			case c.Args().Len() != 1:
				return flags.Usagef("salvage takes one argument, the directory of the new crawl")
			}
			if err := crawls.NeedDirectory(c.Name, c.String("d")); err != nil {
				return err
			}
			if _, err := flags.Clock(c); err != nil {
				return err
			}
			if err := crawlIn(dir); err != nil {
				return err
			}
			w := bufio.NewWriter(a.out)
			var r pebblestore.SalvageReport
			err := a.waitForLock(ctx, dir, func() (err error) {
				r, err = pebblestore.Salvage(ctx, dir, to, pebblestore.SalvageOptions{Lost: func(l pebblestore.Loss) { showLoss(w, l, c.Bool("json")) }})
				return err
			})
			if err == nil {
				if c.Bool("json") {
					render.JSONLine(w, map[string]any{"losses": r.Losses, "records": r.Records, "hosts": r.Hosts, "targets": r.Targets, "marks": r.Marks,
						"segments": r.Segments, "segment_blocks": r.SegmentBlocks, "leases_ended": r.Leases})
				} else {
					fmt.Fprintf(w, "kept: %s, %s, inlinks of %s, %s with %s\n", render.Count(r.Records, "record"), render.Count(r.Hosts, "host"), render.Count(r.Targets, "page"), render.Count(r.Segments, "segment"), render.Count(r.SegmentBlocks, "block"))
					fmt.Fprintf(w, "%s; %s ended\n", lossesOf(r.Losses), render.Count(r.Leases, "lease"))
				}
			}
			if e := w.Flush(); err == nil {
				err = e
			}
			if err == nil && r.Losses > 0 {
				err = LossError{fmt.Errorf("%s was made, but without all of %s: %s", to, dir, lossesOf(r.Losses))}
			}
			return err
		},
	}
}

// LossError says that the new crawl was made without some of the old one: a script must
// tell that from a failure.
type LossError struct{ error }

func lossesOf(n int64) string {
	switch n {
	case 0:
		return "nothing is lost"
	case 1:
		return "1 loss"
	}
	return fmt.Sprintf("%d losses", n)
}

type lossJSON struct {
	What    string `json:"what"`
	File    string `json:"file,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	After   string `json:"after,omitempty"`
	To      string `json:"to,omitempty"`
	URL     string `json:"url,omitempty"`
	Segment string `json:"segment,omitempty"`
	Part    string `json:"part,omitempty"`
	Block   *int   `json:"block,omitempty"`
	Error   string `json:"error"`
}

func showLoss(w *bufio.Writer, l pebblestore.Loss, asJSON bool) {
	if !asJSON {
		fmt.Fprintf(w, "lost: %v\n", l)
		return
	}
	j := lossJSON{What: l.What, File: l.File, After: l.After, To: l.To, URL: l.URL, Segment: l.Segment, Part: l.Part, Error: l.Err.Error()}
	if l.Offset >= 0 {
		j.Offset = &l.Offset
	}
	if l.Block >= 0 {
		j.Block = &l.Block
	}
	render.JSONLine(w, j)
}
