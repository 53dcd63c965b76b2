package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) compact() *cli.Command {
	return &cli.Command{
		Name: "compact", Category: flags.StoreVerbs, Usage: "rewrite the databases without obsolete data",
		Description: `What was changed or removed takes up space until the store gets round to it, which
it does bit by bit: crawl db, hosts and links may take up to twice the space they
need. compact does it all at once, for example before copying a crawl or when the
disk is short; it needs room for what it writes. Segments are not touched. It may
be killed and run again.

  recrawl compact -d crawl`,
		Flags: flags.Join(flags.Dir(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			if err := crawls.NeedDirectory(c.Name, c.String("d")); err != nil {
				return err
			}
			if _, err := flags.Clock(c); err != nil {
				return err
			}
			db, err := a.openToChange(ctx, c, true)
			if err != nil {
				return err
			}
			before, err := databasesSize(c.String("d"))
			if err == nil {
				err = crawls.Engine(db).(*pebblestore.DB).Compact(ctx)
			}
			if err := errors.Join(err, db.Close()); err != nil {
				return err
			}
			after, err := databasesSize(c.String("d"))
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.printJSON(map[string]int64{"bytes_before": before, "bytes": after})
			}
			fmt.Fprintf(a.out, "%s, %s before\n", render.Size(after), render.Size(before))
			return nil
		},
	}
}

// databasesSize returns how many bytes a crawl takes on disk, segments apart.
func databasesSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // it was replaced meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name == filepath.Join(dir, "segments") {
				return fs.SkipDir
			}
			return nil
		}
		i, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			n += i.Size()
		}
		return err
	})
	return n, err
}
