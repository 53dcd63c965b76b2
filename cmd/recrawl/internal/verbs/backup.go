package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) backup() *cli.Command {
	return &cli.Command{
		Name: "backup", Category: flags.StoreVerbs, Usage: "copy a crawl, even while it is running", ArgsUsage: "NEWDIR",
		Description: `Copies the crawl as it is at one moment to NEWDIR: every record, host and link
		committed by then, and everything written to segments. A running crawl pauses for
		that moment only. The backup is a complete crawl: recrawl crawl can continue it.
		NEWDIR gets its name when all of it is durable, not before. After a kill, the same
		command starts over.

  recrawl backup -d crawl /backups/2026-01-31
  recrawl verify -d /backups/2026-01-31

If NEWDIR is on the same file system, files that never change are shared as hard
links. That takes hardly any time or space, and protects from mistakes, but not
from a failing disk. On another file system, or with -copy, everything is copied; so
is a crawl that cannot be changed, such as one on a read-only file system.

If a crawl, fetch or sitemap is running in the directory, its process makes the
backup, with its permissions. If it is another verb or an older recrawl, backup
waits until it ends.`,
		Flags: flags.Join(flags.Dir(), &cli.BoolFlag{Name: "copy", Usage: "copy every file, and share none with the crawl"}, flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			dir := c.String("d")
			switch {
			case dir == "":
				return flags.Usagef("-d DIR is required: the directory of the crawl")
			case c.Args().Len() != 1:
				return flags.Usagef("backup takes one argument, the directory of the new crawl")
			}
			if err := crawls.NeedDirectory(c.Name, c.String("d")); err != nil {
				return err
			}
			if _, err := flags.Clock(c); err != nil {
				return err
			}
			to, err := filepath.Abs(c.Args().First())
			if err != nil {
				return err
			}
			r, err := a.backUp(ctx, c, to)
			if err == nil {
				err = copyConfig(dir, to)
			}
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.printJSON(map[string]any{"files": r.Files, "bytes": r.Bytes, "held_seconds": r.Held.Seconds()})
			}
			fmt.Fprintf(a.out, "%s, %s; changes waited for %v\n", render.Count(r.Files, "file"), render.Size(r.Bytes), r.Held.Round(time.Millisecond))
			return nil
		},
	}
}

// copyConfig copies the configuration file of a crawl, if there is one.
func copyConfig(dir, to string) error {
	text, err := os.ReadFile(filepath.Join(dir, flags.ConfigName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return render.ReplaceFile(filepath.Join(to, flags.ConfigName), func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
}

// backUp makes a backup, or asks the process that has the crawl open to make it.
func (a *app) backUp(ctx context.Context, c *cli.Command, to string) (r pebblestore.BackupReport, err error) {
	o := pebblestore.BackupOptions{Copy: c.Bool("copy")}
	for reported := false; ; reported = true {
		db, err := a.openToChange(ctx, c, true)
		if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
			db, err = a.openToRead(ctx, c, onceCache)
		}
		if err == nil {
			r, err = crawls.Engine(db).(*pebblestore.DB).Backup(ctx, to, o)
			return r, errors.Join(err, db.Close())
		}
		if !errors.Is(err, pebblestore.ErrLocked) {
			return r, err
		}
		if !reported {
			fmt.Fprintf(a.err, "recrawl: %v: asking that process for a backup, or waiting until it ends\n", err)
		}
		if r, err = control.RequestBackup(ctx, c.String("d"), to, o); !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
}
