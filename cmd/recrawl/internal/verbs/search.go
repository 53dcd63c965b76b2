package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/index/bleve"
)

func (a *app) search() *cli.Command {
	return &cli.Command{
		Name: "search", Category: flags.ReadVerbs, Usage: "search an index that index -to bleve:DIR has made", ArgsUsage: "WORDS...",
		Description: `Prints the pages that have all words in their title, their text or the links to
them, the best first. DIR is that of the index, and not of the crawl.

  recrawl index -d crawl -to bleve:pages
  recrawl search -d pages gopher burrows
  recrawl search -d pages '"red burrows" -badger host:example.com'

A phrase stands in quotation marks, and a minus before a word leaves out the pages
that have it; after -d DIR and the other flags, -- lets the first word begin with one.
host:NAME, type:MEDIATYPE and title:WORD search in a field.`,
		Flags: flags.Join([]cli.Flag{
			&cli.StringFlag{Name: "d", Usage: "the `DIR` of the index (required)"},
			&cli.IntFlag{Name: "n", Value: 10, Usage: "print at most `N` pages (default: 10)"},
			&cli.IntFlag{Name: "skip", Usage: "leave out the first `N` pages"},
		}, flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			switch {
			case c.String("d") == "":
				return flags.Usagef("-d DIR is required: the directory of the index")
			case !c.Args().Present():
				return flags.Usagef("what is to be searched for?")
			case c.Int("n") < 1 || c.Int("skip") < 0:
				return flags.Usagef("-n is at least 1, and -skip at least 0")
			}
			x, err := bleve.Open(c.String("d"), bleve.Options{ReadOnly: true})
			if errors.Is(err, bleve.ErrNoIndex) {
				return fmt.Errorf("%w; recrawl index -d CRAWL -to bleve:%s makes one", err, c.String("d"))
			}
			if err != nil {
				return err
			}
			r, err := x.Search(ctx, bleve.Query{Text: strings.Join(c.Args().Slice(), " "), Limit: c.Int("n"), Offset: c.Int("skip")})
			if e := x.Close(); err == nil {
				err = e
			}
			if err != nil {
				return err
			}
			return a.printResults(c, &r)
		},
	}
}

// foundJSON is a line of search -json.
type foundJSON struct {
	URL      string    `json:"url"`
	Title    string    `json:"title,omitempty"`
	Snippet  string    `json:"snippet,omitempty"`
	Matches  [][2]int  `json:"matches,omitempty"`
	Score    float64   `json:"score"`
	Fetched  time.Time `json:"fetched,omitzero"`
	Modified time.Time `json:"modified,omitzero"`
}

func (a *app) printResults(c *cli.Command, r *bleve.Results) error {
	for i := range r.Results {
		d := &r.Results[i]
		if c.Bool("json") {
			if err := a.printLine(foundJSON{d.Document.URL, d.Document.Title, d.Snippet, d.Matches, d.Score, d.Document.Fetched, d.Document.Modified}); err != nil {
				return err
			}
			continue
		}
		title := d.Document.Title
		if title == "" {
			title = d.Document.URL
		}
		fmt.Fprintf(a.out, "%s\n  %s\n", strings.Join(strings.Fields(title), " "), d.Document.URL)
		if d.Snippet != "" {
			fmt.Fprint(a.out, "  ")
			render.Marked(a.out, d.Snippet, d.Matches)
			fmt.Fprintln(a.out)
		}
		fmt.Fprintln(a.out)
	}
	if !c.Bool("json") {
		fmt.Fprintf(a.out, "%d of %d pages\n", len(r.Results), r.Total)
	}
	return nil
}
