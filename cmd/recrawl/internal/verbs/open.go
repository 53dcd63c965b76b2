package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb/move"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/stores/pgstore"
)

// crawlIn returns an error if a directory does not exist, or has nothing in it but a
// configuration file.
func crawlIn(dir string) error {
	entries, err := os.ReadDir(dir)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == flags.ConfigName })
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return fmt.Errorf("there is no crawl in %s", dir)
	}
	return nil
}

// open opens the crawl, which must exist for verbs that read, with its segments, wherever they are.
func (a *app) open(ctx context.Context, c *cli.Command, mustExist, readOnly bool, cache int64) (crawls.DB, error) {
	db, err := a.openEngine(ctx, c, mustExist, readOnly, cache)
	if err != nil {
		return nil, err
	}
	if mark, err := db.Crawl().Mark(ctx, move.Mark); err != nil || mark != "" {
		if mark != "" {
			err = fmt.Errorf("a move into this crawl is not complete: run recrawl move again")
		}
		return nil, errors.Join(err, db.Close())
	}
	whole, err := crawls.WithSegments(ctx, db, crawls.SegmentOptions{Place: flags.Segments(c), ReadOnly: readOnly, Logger: a.logger(c)})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return whole, nil
}

// openEngine opens the database of the crawl.
func (a *app) openEngine(ctx context.Context, c *cli.Command, mustExist, readOnly bool, cache int64) (crawls.DB, error) {
	dir := c.String("d")
	if dir == "" {
		return nil, flags.Usagef("-d DIR is required: the directory of the crawl")
	}
	if flags.IsURL(dir) {
		db, err := crawls.OpenURL(ctx, dir, crawls.Options{ReadOnly: readOnly, MustExist: mustExist, Logger: a.logger(c)})
		if errors.Is(err, pgstore.ErrNoCrawl) {
			err = howToStart(c, err)
		}
		return db, err
	}
	if mustExist {
		if err := crawlIn(dir); err != nil {
			return nil, howToStart(c, err)
		}
	}
	o := pebblestore.Options{Logger: a.logger(c), OnRoom: reportDiskSpace(a.err)}
	m, err := flags.ReadMemory(c)
	if err != nil {
		return nil, err
	}
	m.BoundStore(&o)
	if o.MinFree, err = flags.ReadMinFree(c); err != nil {
		return nil, err
	}
	o.ReadOnly = readOnly
	if cache != 0 {
		o.CacheSize = cache
	}
	db, err := pebblestore.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// howToStart adds to the error of a crawl that does not exist how one is made.
func howToStart(c *cli.Command, err error) error {
	if c.Name == "crawl" {
		return fmt.Errorf("%w, and no seed to start one; give URLs or -seeds FILE", err)
	}
	return fmt.Errorf("%w; inject or crawl creates one", err)
}

// lockPatience is how long a verb waits for one that has announced no long run.
const lockPatience = time.Minute

// waitForLock opens a directory, and waits a little while another process has it: a crawl is
// not to fail because a monitor has just asked for its status. Only verbs that may run
// for days announce themselves, and for those it does not wait.
func (a *app) waitForLock(ctx context.Context, dir string, open func() error) error {
	for began, reported := time.Now(), false; ; {
		err := open()
		if !errors.Is(err, pebblestore.ErrLocked) || time.Since(began) > lockPatience {
			return err
		}
		if _, _, e := control.ReadRunStatus(dir); !errors.Is(e, fs.ErrNotExist) {
			return err
		}
		if !reported && time.Since(began) > time.Second {
			fmt.Fprintf(a.err, "recrawl: %v; waiting for it to end\n", err)
			reported = true
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openToChange opens the directory once there is room on the disk for it and no short verb
// has it open.
func (a *app) openToChange(ctx context.Context, c *cli.Command, mustExist bool) (db crawls.DB, err error) {
	open := func() error {
		return a.waitForLock(ctx, c.String("d"), func() error { db, err = a.open(ctx, c, mustExist, false, 0); return err })
	}
	if n, bad := flags.ReadMinFree(c); n < 0 || bad != nil {
		err = open()
	} else {
		err = a.retryWhileFull(ctx, open)
	}
	return db, err
}

// openToRead opens the directory for reading once no short verb changes it; others may be
// reading it. It changes nothing there: what a crash has left in a log is replayed in memory.
// cache is the size of the cache of the engine, zero for its default.
func (a *app) openToRead(ctx context.Context, c *cli.Command, cache int64) (db crawls.DB, err error) {
	err = a.waitForLock(ctx, c.String("d"), func() error {
		db, err = a.open(ctx, c, true, true, cache)
		return err
	})
	return db, err
}

// onceCache is the cache of a verb that reads each block once, mostly in the order in which
// blocks are stored. A larger one is not read again, and touching new memory costs more than
// using the same memory again.
const onceCache = 8 << 20
