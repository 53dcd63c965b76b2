package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) backup() *cli.Command {
	return &cli.Command{
		Name: "backup", Category: repairing, Usage: "make a copy of a crawl, which may be at work", ArgsUsage: "NEWDIR",
		Description: `Makes a crawl in NEWDIR of what the crawl is at one moment: every record, host and
link that is committed by then, and of segments all that is written. A crawl at
work is held up for that moment and goes on; crawl can go on from the backup as
from the crawl itself. NEWDIR has its name when all of it is durable, and not
before; what is killed is begun anew by the same command.

  recrawl backup -d crawl /backups/2026-01-31
  recrawl verify -d /backups/2026-01-31

Files that never change are shared by hard links if NEWDIR is on the same file
system: that takes no time and hardly any room, and protects from mistakes, but
not from a disk that fails. On another file system, and with -copy, they are
copied.

While a crawl, fetch or sitemap is at work in the directory, that process makes the
backup, with its rights; beside another verb, or an older recrawl, this waits until
it ends.`,
		Flags: flags(dirFlag(), &cli.BoolFlag{Name: "copy", Usage: "share no file with the crawl"}, reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			dir := c.String("d")
			switch {
			case dir == "":
				return usagef("-d DIR is required: the directory of the crawl")
			case c.Args().Len() != 1:
				return usagef("backup takes one argument, the directory of the new crawl")
			}
			if _, err := clock(c); err != nil {
				return err
			}
			to, err := filepath.Abs(c.Args().First())
			if err != nil {
				return err
			}
			r, err := a.backUp(ctx, c, to)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.printJSON(map[string]any{"files": r.Files, "bytes": r.Bytes, "held_seconds": r.Held.Seconds()})
			}
			fmt.Fprintf(a.out, "%s, %s; changes waited for %v\n", number(r.Files, "file"), size(r.Bytes), r.Held.Round(time.Millisecond))
			return nil
		},
	}
}

// backUp makes a backup, or has it made by the process that has the crawl.
func (a *app) backUp(ctx context.Context, c *cli.Command, to string) (r pebblestore.BackupReport, err error) {
	o := pebblestore.BackupOptions{Copy: c.Bool("copy")}
	for told := false; ; told = true {
		db, err := a.openToChange(ctx, c, true)
		if err == nil {
			r, err = db.Backup(ctx, to, o)
			return r, errors.Join(err, db.Close())
		}
		if !errors.Is(err, pebblestore.ErrLocked) {
			return r, err
		}
		if !told {
			fmt.Fprintf(a.err, "recrawl: %v: it is asked for a backup; where it makes none, this waits until it ends\n", err)
		}
		if r, err = pebblestore.AskBackup(ctx, c.String("d"), to, o); !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
}
