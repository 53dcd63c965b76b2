package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

func minFreeFlag() cli.Flag {
	return &cli.StringFlag{Name: "min-free", Usage: "keep `SIZE` bytes of the disk free, for example 1G: with less, changes wait until 1.5 times as much is free (0: never wait, but fail when the disk is full; default: 64M, or a twentieth of a small disk)"}
}

// minFree returns -min-free in the form that the store takes.
func minFree(c *cli.Command) (int64, error) {
	n, given, err := sizeFlag(c, "min-free")
	if given && n == 0 {
		n = -1
	}
	return n, err
}

// tellRoom says once that a crawl is paused because the disk is full, and once
// that it resumes.
func tellRoom(w io.Writer) func(pebblestore.Room) {
	return func(r pebblestore.Room) {
		switch {
		case !r.Paused:
			fmt.Fprintf(w, "recrawl: resumed: there is room in %s again\n", r.Dir)
		case r.Err != nil && r.Free >= r.Need:
			fmt.Fprintf(w, "recrawl: paused: %v; resumes when writes succeed\n", r.Err)
		default:
			fmt.Fprintf(w, "recrawl: paused: the disk of %s is full, %s free; resumes at %s\n", r.Dir, size(r.Free), size(r.Need))
		}
	}
}

// finalError is a failure that room on the disk would not cure.
type finalError struct{ error }

func (f finalError) Unwrap() error { return f.error }

// printed returns the error of writing the output, if any.
func (a *app) printed() error {
	if out, ok := a.out.(*checked); ok {
		return out.err
	}
	return nil
}

// noRoom reports whether something failed only because a disk is full.
func noRoom(err error) bool {
	if errors.As(err, new(finalError)) {
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// repeats reports whether a verb may be run again after the disk was full: one that
// changes something, may wait for room, and does not read standard input, which cannot
// be read twice. crawl repeats by itself.
func repeats(c *cli.Command) bool {
	if n, err := minFree(c); n < 0 || err != nil {
		return false
	}
	told := c.String("seeds") == stdinArg || c.String("file") == stdinArg || slices.Contains(c.Args().Slice(), stdinArg)
	return c.Category != looking && c.Name != "crawl" && !told
}

// stdinArg stands for standard input.
const stdinArg = "-"

// whenRoom calls open, which opens something, runs a verb on it and closes it. If the disk
// fills up where the store cannot wait, it does so again once there is room. If the verb
// has come to its end, and with it to its last sync, it is not run again: another run of
// generate would make a second segment.
func whenRoom[T any](ctx context.Context, a *app, c *cli.Command, verb func(T) error, open func(verb func(T) error) error) error {
	if !repeats(c) {
		return open(verb)
	}
	done := false
	return a.untilRoom(ctx, func() error {
		err := open(func(on T) error {
			if done {
				return nil
			}
			err := verb(on)
			done = err == nil
			return err
		})
		if noRoom(err) && a.printed() != nil { // it is the output that had no room
			err = finalError{err}
		}
		return err
	})
}

// untilRoom runs a verb again for as long as it fails because a disk is full where the
// store cannot wait: on opening, on syncing, and in the directory of temporary files.
// The verb resumes where it stopped.
func (a *app) untilRoom(ctx context.Context, verb func() error) error {
	pause, told := time.Second, false
	for {
		err := verb()
		if ctx.Err() != nil || !noRoom(err) {
			return err
		}
		if !told {
			fmt.Fprintf(a.err, "recrawl: paused: %v; resumes when there is room\n", err)
		}
		told = true
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, 10*time.Second)
	}
}
