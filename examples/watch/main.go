// Command watch crawls pages each time that it is run, and writes down what has changed: the fields of a file of
// rules, and the main content of the page in Markdown, a file for each page. It compares pages by their
// fields, and those without any by their main content: adverts, menus and dates are no change.
//
//	watch -rules rules.yaml -out pages https://shop.example/p/1 https://news.example/
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/extract"
	"github.com/recrawl/recrawl/parse/extract/fields"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func main() {
	rules := flag.String("rules", "rules.yaml", "the `FILE` of rules")
	out := flag.String("out", "pages", "the `DIR` of the crawl and of the pages")
	flag.Parse()
	if err := watch(context.Background(), os.Stdout, *rules, *out, recrawl.Options{Agent: "mybot"}, flag.Args()...); err != nil {
		log.Fatal(err)
	}
}

// watch visits the pages that are due once, and no page that they link to.
func watch(ctx context.Context, w io.Writer, rulesFile, dir string, o recrawl.Options, urls ...string) error {
	rules, err := fields.Load(rulesFile)
	if err != nil {
		return err
	}
	db, err := pebblestore.Open(filepath.Join(dir, "crawl"), pebblestore.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	o.Parser = fields.Parser{Rules: rules, Parser: htmlparse.Mux(&htmlparse.Parser{Agent: o.Agent})}
	o.Signature = fields.Signature{Else: extract.MainContent{}}
	o.Update.NoAdditions = true
	o.OnPage = func(ctx context.Context, e recrawl.PageEvent) error { return write(ctx, w, dir, &e) }
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, o)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Inject(ctx, urls...); err != nil {
		return err
	}
	report, err := c.Run(ctx)
	return cmp.Or(err, report.Err())
}

// write prints what is new of a page, and writes its main content.
func write(ctx context.Context, w io.Writer, dir string, e *recrawl.PageEvent) error {
	parsed, err := e.Parsed(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s %s\n", e.Kind, e.URL)
	found := parsed.Fields()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(w, "  %s: %s\n", name, strings.Join(found[name], ", "))
	}
	content, err := e.Content(ctx)
	if err != nil || len(content.Body) == 0 { // it has moved or is gone
		return err
	}
	article, err := extract.Extract(ctx, &content)
	if errors.Is(err, parse.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	md, err := article.Markdown()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%x.md", sha256.Sum256([]byte(e.URL)))
	return os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "# %s\n\n<%s>\n\n%s\n", article.Title, e.URL, md), 0o666)
}
