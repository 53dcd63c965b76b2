package verbs

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/extract/fields"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/robots"
)

func (a *app) checkExtract() *cli.Command {
	return &cli.Command{
		Name: "extract", Usage: "show main content, metadata and fields of a page", ArgsUsage: "[URL|FILE.html...]",
		Description: `Fetches the page, without filters and pauses, or reads a file, and prints title,
author, dates and what else is known of it, the fields that a file of rules describes,
and its main content in Markdown. A file is taken for the page of -base.

  recrawl check extract -agent mybot https://example.com/article
  recrawl check extract -fields shop.yaml -base https://shop.example/p/1 page.html

` + fieldsFormat,
		Flags: flags.Join(stdinFlag(),
			flags.FieldsFlag("extract the fields that the YAML `FILE` describes"),
			&cli.StringFlag{Name: "base", Usage: "the `URL` of a page that is read from a file (default: file:///PATH)"},
			&cli.BoolFlag{Name: "followRedirects", Usage: "follow up to five redirects, instead of just reporting one"},
			&cli.BoolFlag{Name: "checkRobotsTxt", Usage: "check robots.txt first, and do not fetch a page it forbids"},
			&cli.BoolFlag{Name: "normalize", Usage: "normalize the URL first"},
			&cli.StringFlag{Name: "forceAs", Usage: "read the page as this media `TYPE`, whatever the server says"},
			&cli.BoolFlag{Name: "tables", Usage: "print tables, JSON-LD and microdata, too; needs -json"},
			flags.Network(), flags.JSON(), flags.NutchConf()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Bool("tables") && !c.Bool("json") {
				return flags.Usagef("-tables needs -json")
			}
			var rules *fields.Rules
			var err error
			if f := c.String("fields"); f != "" {
				if rules, err = fields.Load(f); err != nil {
					return flags.Usagef("-fields: %w", err)
				}
			}
			k, err := a.checker(c)
			if err != nil {
				return err
			}
			var client *httpproto.Client // nil until a URL needs it
			var cache *robots.Cache
			defer func() {
				if client != nil {
					client.Close()
				}
			}()
			return a.each(ctx, c, func(target string) error {
				content, err := readHTMLFile(c, target)
				if err != nil {
					return err
				}
				if content == nil {
					if client == nil {
						if client, err = k.client(a); err != nil {
							return err
						}
						cache = k.robots(client)
					}
					resp, err := a.fetchToCheck(ctx, k, client, cache, target)
					if err != nil {
						return err
					}
					content = &resp.Content
				}
				return a.printExtract(ctx, c, content, rules)
			})
		},
	}
}

// fieldsFormat describes the file of -fields.
const fieldsFormat = `The file of -fields:

  rules:
    - url: https://shop.example/p/*       # or a list; * stands for any characters
      fields:
        price: {css: "#main .price", as: number}
        image: {css: "meta[property='og:image']", attr: content, as: url}
        name:  {xpath: "//h1"}
        sku:   {jsonld: Product.sku}
        tags:  {css: ".tags a", all: true}
        build: {regexp: 'data-build="(\w+)"'}
        stars: [{jsonld: Product.aggregateRating.ratingValue}, {css: .stars, regexp: "([0-9.]+) of 5"}]`

// readHTMLFile reads a page from a file; nil if the target is a URL.
func readHTMLFile(c *cli.Command, target string) (*page.Content, error) {
	if strings.Contains(target, "://") {
		return nil, nil
	}
	body, err := os.ReadFile(target)
	if err != nil {
		return nil, badURL{err}
	}
	base := c.String("base")
	if base == "" {
		abs, err := filepath.Abs(target)
		if err != nil {
			return nil, err
		}
		base = (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()
	}
	return &page.Content{URL: base, Type: cmp.Or(c.String("forceAs"), "text/html"), Body: body}, nil
}

// printExtract prints what is extracted from a page.
func (a *app) printExtract(ctx context.Context, c *cli.Command, content *page.Content, rules *fields.Rules) error {
	j, article, err := articleOf(ctx, content)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return badURL{err}
	}
	var found []page.Property
	if rules != nil {
		if found, err = rules.Extract(ctx, content); err != nil {
			return badURL{err}
		}
		if found == nil {
			fmt.Fprintf(a.err, "recrawl: %s: no rule of -fields is for this URL\n", content.URL)
		}
	}
	if c.Bool("json") {
		for _, f := range found {
			if j.Fields == nil {
				j.Fields = map[string][]string{}
			}
			j.Fields[f.Name] = append(j.Fields[f.Name], f.Value)
		}
		if c.Bool("tables") {
			return a.printLine(map[string]any{"article": j, "tables": article.Tables(), "jsonld": article.JSONLD(), "microdata": article.Microdata()})
		}
		return a.printLine(j)
	}
	fmt.Fprintf(a.out, "url:\t%s\n", j.URL)
	for name, value := range j.properties {
		fmt.Fprintf(a.out, "%s:\t%s\n", name, value)
	}
	for _, f := range found {
		fmt.Fprintf(a.out, "field:\t%s = %s\n", f.Name, f.Value)
	}
	fmt.Fprintf(a.out, "\n%s\n", j.Markdown)
	return nil
}
