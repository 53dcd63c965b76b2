package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// reading opens the crawl for a verb that makes no crawler, and closes it.
func (a *app) reading(c *cli.Command, verb func(*pebblestore.DB, func() time.Time) error) error {
	if err := noArgsBut(c); err != nil {
		return err
	}
	now, err := clock(c)
	if err != nil {
		return err
	}
	db, err := a.open(c, true)
	if err != nil {
		return err
	}
	err = verb(db, now)
	if e := db.Close(); err == nil {
		err = e
	}
	return err
}

// noArgsBut refuses arguments but for the verbs that take one.
func noArgsBut(c *cli.Command) error {
	if c.ArgsUsage != "" {
		if c.Args().Len() > 1 {
			return usagef("%s takes one argument, not %q too", c.Name, c.Args().Get(1))
		}
		return nil
	}
	return noArgs(c)
}

func (a *app) index() *cli.Command {
	return &cli.Command{
		Name: "index", Category: looking, Usage: "write the pages as documents, one JSON object a line",
		Description: `A page comes from the newest segment that holds it. Pages that are gone, redirect
or ask not to be indexed are lines with "deleted": true. With -o and -json, a
summary in JSON goes to standard output.

  recrawl index -d crawl -o pages.jsonl
  recrawl index -d crawl | jq -r .title`,
		Flags: flags(dirFlag(),
			&cli.StringFlag{Name: "o", Usage: "write to `FILE`, which is replaced once all is written (default: standard output)"},
			reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			conf, err := a.configured(c)
			if err != nil {
				return err
			}
			return a.reading(c, func(db *pebblestore.DB, _ func() time.Time) error {
				var o index.Options
				if conf != nil {
					o = conf.Index
				}
				var r index.Report
				write := func(w io.Writer) (err error) {
					b := bufio.NewWriterSize(w, 1<<16)
					r, err = index.Run(ctx, db.Crawl(), db.Links(), db.Segments(), index.NewJSONL(b), o)
					if err != nil {
						return err
					}
					return b.Flush()
				}
				out := c.String("o")
				if out == "" {
					return write(a.out)
				}
				if err := replaceFile(out, func(f *os.File) error { return write(f) }); err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(map[string]int{"documents": r.Documents, "deleted": r.Deleted, "noindex": r.NoIndex, "unparsed": r.Unparsed, "segments": r.Segments, "skipped": r.Skipped})
				}
				fmt.Fprintf(a.out, "%d documents, %d deletions from %d segments\n", r.Documents, r.Deleted, r.Segments)
				return nil
			})
		},
	}
}

func (a *app) readlinks() *cli.Command {
	return &cli.Command{
		Name: "readlinks", Category: looking, Usage: "show which pages link to a page, and with what words",
		Description: `A line is the page, a page that links to it, and the text of the link, with tabs
between them. With -json a line is one page with all its inlinks.

  recrawl readlinks -d crawl -url https://example.com/
  recrawl readlinks -d crawl > links.tsv`,
		Flags: flags(dirFlag(), &cli.StringFlag{Name: "url", Usage: "the page with this `URL`; without it, all pages"}, reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.IsSet("url") && c.String("url") == "" {
				return usagef("-url wants a URL")
			}
			return a.reading(c, func(db *pebblestore.DB, _ func() time.Time) error {
				type inlink struct {
					From   string `json:"from"`
					Anchor string `json:"anchor"`
				}
				type entry struct {
					URL     string   `json:"url"`
					Inlinks []inlink `json:"inlinks"`
				}
				w := bufio.NewWriter(a.out)
				enc := json.NewEncoder(w)
				enc.SetEscapeHTML(false)
				links := db.Links()
				show := func(url string) error {
					in, err := links.Get(ctx, url)
					if err != nil {
						return err
					}
					if c.Bool("json") {
						e := entry{URL: url, Inlinks: []inlink{}}
						for _, l := range in {
							e.Inlinks = append(e.Inlinks, inlink{l.From, l.Anchor})
						}
						return enc.Encode(e)
					}
					if len(in) == 0 {
						fmt.Fprintf(w, "%s\tno inlinks\n", url)
					}
					for _, l := range in {
						fmt.Fprintf(w, "%s\t%s\t%s\n", url, l.From, l.Anchor)
					}
					return nil
				}
				if c.IsSet("url") {
					if err := show(normal(c.String("url"))); err != nil {
						return err
					}
					return w.Flush()
				}
				for e, err := range links.Scan(ctx, crawldb.Range{}) {
					if err != nil {
						return err
					}
					if err := show(e.URL); err != nil {
						return err
					}
				}
				return w.Flush()
			})
		},
	}
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

// printable returns a metadata value as text; what is not text, in hexadecimal.
func printable(v string) string {
	if utf8.ValidString(v) && !strings.ContainsFunc(v, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return v
	}
	return "0x" + hex.EncodeToString([]byte(v))
}
