package verbs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/nutch/nutchtext"
)

func (a *app) readlinks() *cli.Command {
	return &cli.Command{
		Name: "readlinks", Aliases: []string{"readlinkdb"}, Category: flags.ReadVerbs, Usage: "show which pages link to a page, and with what text",
		Description: `Each line is the page, a page that links to it, and the text of the link, with tabs
between them. With -json each line is one page with all its inlinks; -format nutch
prints pages as Nutch's readlinkdb does. With -format graph each line is the page a
link is on and the page it leads to, the input of recrawl scoring simulate.

  recrawl readlinks -d crawl -url https://example.com/
  recrawl readlinks -d crawl -regex 'https://example\.com/docs/.*'
  recrawl readlinks -d crawl -format graph > links.tsv`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringFlag{Name: "url", Usage: "the page with this `URL`; without it, all pages"},
			&cli.StringFlag{Name: "regex", Usage: "the pages whose whole URL matches `EXPR`"},
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT`: text, json, nutch or graph (default text)", Value: "text"},
			flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			format := c.String("format")
			if c.Bool("json") && !c.IsSet("format") {
				format = "json"
			}
			match := func(string) bool { return true }
			switch {
			case c.IsSet("url") && c.String("url") == "":
				return flags.Usagef("-url needs a URL")
			case c.IsSet("url") && c.IsSet("regex"):
				return flags.Usagef("-url and -regex exclude each other")
			case !slices.Contains([]string{"text", "json", "nutch", "graph"}, format):
				return flags.Usagef("-format: %q is not one of text, json, nutch and graph", format)
			case c.IsSet("regex"):
				var err error
				if match, err = wholeMatch(c); err != nil {
					return err
				}
			}
			return a.readStore(ctx, c, func(db crawls.DB, _ func() time.Time) error {
				if format == "nutch" {
					render.Exact(a.out)
				}
				w := bufio.NewWriter(a.out)
				show := linkPrinter(w, format, c.IsSet("url"))
				var err error
				if c.IsSet("url") {
					err = showInlinksOf(ctx, db.Links(), c.String("url"), show)
				} else {
					err = showInlinks(ctx, db.Links(), match, show)
				}
				if err != nil {
					return err
				}
				return w.Flush()
			})
		},
	}
}

// showInlinks shows the inlinks of all pages whose URL matches.
func showInlinks(ctx context.Context, links linkdb.Store, match func(url string) bool, show func(*linkdb.Entry) error) error {
	for e, err := range links.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if !match(e.URL) {
			continue
		}
		if err := show(&e); err != nil {
			return err
		}
	}
	return nil
}

// showInlinksOf shows those of one page. It looks for the URL as given and only then for its
// normal form, since the crawl may have its own normalizers.
func showInlinksOf(ctx context.Context, links linkdb.Store, url string, show func(*linkdb.Entry) error) (err error) {
	var e linkdb.Entry
	for _, e.URL = range []string{url, normal(url)} {
		if e.Inlinks, err = links.Get(ctx, e.URL); err != nil {
			return err
		}
		if len(e.Inlinks) > 0 {
			break
		}
	}
	return show(&e)
}

// linkPrinter returns a function that prints the inlinks of a page, the only one or
// one of many.
func linkPrinter(w io.Writer, format string, one bool) func(*linkdb.Entry) error {
	switch format {
	case "json":
		type inlink struct {
			From   string `json:"from"`
			Anchor string `json:"anchor"`
		}
		type entry struct {
			URL     string   `json:"url"`
			Inlinks []inlink `json:"inlinks"`
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return func(e *linkdb.Entry) error {
			out := entry{URL: e.URL, Inlinks: []inlink{}}
			for _, l := range e.Inlinks {
				out.Inlinks = append(out.Inlinks, inlink{l.From, l.Anchor})
			}
			return enc.Encode(out)
		}
	case "nutch":
		var b []byte
		return func(e *linkdb.Entry) error {
			switch b = b[:0]; {
			case !one:
				b = nutchtext.AppendInlinks(b, e)
			case len(e.Inlinks) == 0:
				b = append(b, " - no link information.\n"...)
			default:
				for i := range e.Inlinks {
					b = append(nutchtext.AppendInlink(b, &e.Inlinks[i]), '\n')
				}
			}
			_, err := w.Write(b)
			return err
		}
	case "graph":
		return func(e *linkdb.Entry) (err error) {
			for _, l := range e.Inlinks {
				if err == nil {
					_, err = fmt.Fprintf(w, "%s\t%s\n", l.From, e.URL)
				}
			}
			return err
		}
	default:
		return func(e *linkdb.Entry) (err error) {
			if len(e.Inlinks) == 0 {
				_, err = fmt.Fprintf(w, "%s\tno inlinks\n", e.URL)
			}
			for _, l := range e.Inlinks {
				if err == nil {
					_, err = fmt.Fprintf(w, "%s\t%s\t%s\n", e.URL, l.From, l.Anchor)
				}
			}
			return err
		}
	}
}
