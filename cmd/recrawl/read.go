package main

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

// reading opens the crawl for a verb that makes no crawler, and closes it.
func (a *app) reading(ctx context.Context, c *cli.Command, verb func(*pebblestore.DB, func() time.Time) error) error {
	if err := noArgsBut(c); err != nil {
		return err
	}
	now, err := clock(c)
	if err != nil {
		return err
	}
	return a.readingAll(ctx, c, onceCache, func(db *pebblestore.DB) error { return verb(db, now) })
}

// readingAll is reading for a verb with any arguments, and a cache of that size, see
// openToRead.
func (a *app) readingAll(ctx context.Context, c *cli.Command, cache int64, verb func(*pebblestore.DB) error) error {
	if _, err := clock(c); err != nil {
		return err
	}
	db, err := a.openToRead(ctx, c, cache)
	if err != nil {
		return err
	}
	return using(db, verb)
}

// changing opens the crawl for a verb that makes no crawler and takes no argument.
func (a *app) changing(ctx context.Context, c *cli.Command, verb func(*pebblestore.DB, func() time.Time) error) error {
	if err := noArgs(c); err != nil {
		return err
	}
	now, err := clock(c)
	if err != nil {
		return err
	}
	return whenRoom(ctx, a, c, func(db *pebblestore.DB) error { return verb(db, now) }, func(verb func(*pebblestore.DB) error) error {
		db, err := a.openToChange(ctx, c, true)
		if err != nil {
			return err
		}
		return using(db, verb)
	})
}

// using runs a verb and closes what it used.
func using(db *pebblestore.DB, verb func(*pebblestore.DB) error) error {
	err := verb(db)
	if e := db.Close(); err == nil {
		err = e
	}
	return err
}

// noArgsBut refuses arguments, except for the verbs that take one.
func noArgsBut(c *cli.Command) error {
	if c.ArgsUsage != "" {
		if c.Args().Len() > 1 {
			return usagef("%s takes one argument, not %q too", c.Name, c.Args().Get(1))
		}
		return nil
	}
	return noArgs(c)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

// printable returns a metadata value as text, or in hexadecimal if it is not text.
func printable(v string) string {
	if utf8.ValidString(v) && !strings.ContainsFunc(v, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return v
	}
	return "0x" + hex.EncodeToString([]byte(v))
}
