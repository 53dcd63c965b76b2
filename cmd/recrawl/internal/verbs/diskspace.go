package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// reportDiskSpace says once that a crawl is paused because the disk is full, and once
// that it resumes.
func reportDiskSpace(w io.Writer) func(pebblestore.Room) {
	return func(r pebblestore.Room) {
		switch {
		case !r.Paused:
			fmt.Fprintf(w, "recrawl: resumed: there is room in %s again\n", r.Dir)
		case r.Err != nil && r.Free >= r.Need:
			fmt.Fprintf(w, "recrawl: paused: %v; resumes when writes succeed\n", r.Err)
		default:
			fmt.Fprintf(w, "recrawl: paused: the disk of %s is full, %s free; resumes at %s\n", r.Dir, render.Size(r.Free), render.Size(r.Need))
		}
	}
}

// finalError is a failure that room on the disk would not cure.
type finalError struct{ error }

func (f finalError) Unwrap() error { return f.error }

// printed returns the error of writing the output, if any.
func (a *app) printed() error {
	if out, ok := a.out.(*render.CheckedWriter); ok {
		return out.Err
	}
	return nil
}

// DiskFull reports whether something failed only because a disk is full.
func DiskFull(err error) bool {
	if errors.As(err, new(finalError)) {
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// repeats reports whether a verb may be run again after the disk was full: one that
// changes something, may wait for room, and does not read standard input, which cannot
// be read twice. crawl repeats by itself.
func repeats(c *cli.Command) bool {
	if n, err := flags.ReadMinFree(c); n < 0 || err != nil {
		return false
	}
	readsStdin := c.String("seeds") == flags.StdinArg || c.String("file") == flags.StdinArg || slices.Contains(c.Args().Slice(), flags.StdinArg)
	return c.Category != flags.ReadVerbs && c.Name != "crawl" && !readsStdin
}

// retryVerbWhileFull calls open, which opens something, runs a verb on it and closes it. If the disk
// fills up where the store cannot wait, it does so again once there is room. If the verb
// has come to its end, and with it to its last sync, it is not run again: another run of
// generate would make a second segment.
func retryVerbWhileFull[T any](ctx context.Context, a *app, c *cli.Command, verb func(T) error, open func(verb func(T) error) error) error {
	if !repeats(c) {
		return open(verb)
	}
	done := false
	return a.retryWhileFull(ctx, func() error {
		err := open(func(on T) error {
			if done {
				return nil
			}
			err := verb(on)
			done = err == nil
			return err
		})
		if DiskFull(err) && a.printed() != nil { // it is the output that had no room
			err = finalError{err}
		}
		return err
	})
}

// retryWhileFull runs a verb again for as long as it fails because a disk is full where the
// store cannot wait: on opening, on syncing, and in the directory of temporary files.
// The verb resumes where it stopped.
func (a *app) retryWhileFull(ctx context.Context, verb func() error) error {
	pause, reported := time.Second, false
	for {
		err := verb()
		if ctx.Err() != nil || !DiskFull(err) {
			return err
		}
		if !reported {
			fmt.Fprintf(a.err, "recrawl: paused: %v; resumes when there is room\n", err)
		}
		reported = true
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, 10*time.Second)
	}
}
