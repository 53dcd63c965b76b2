package verbs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb/move"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) move() *cli.Command {
	return &cli.Command{
		Name: "move", Category: flags.StoreVerbs, Usage: "copy a crawl into another engine: from a directory into a database, or back",
		Description: `Copies all of a crawl to the bit: records, inlinks, hosts with what they were asked
and when, what the stages remember, and segments. The target must be empty. Then it
reads both again and compares them. It may be killed and run again: it goes on where it
was, and until it is complete no verb uses the target. The source is not changed, and
must not be crawled meanwhile; remove it when the copy has proved itself. Segments in an
object store stay there, unless -to-segments names another place.

  recrawl move -d crawl -to 'postgres://recrawl@db.example/crawls?crawl=news'
  recrawl move -d 'postgres://recrawl@db.example/crawls?crawl=news' -to crawl
  recrawl move -d crawl -to crawl2 \
      -to-segments 's3://bucket/news?region=eu-central-1&credentials=aws.ini'`,
		Flags: flags.Join(flags.Dir(), []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "copy into `TARGET`, a new directory or the URL of a database (required)"},
			&cli.StringFlag{Name: "to-segments", Usage: "keep the segments of the copy in the object store of this `URL`"},
		}, flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			if c.String("to") == "" {
				return flags.Usagef("-to TARGET is required: a directory, or the URL of a database")
			}
			return a.runMove(ctx, c)
		},
	}
}

func (a *app) runMove(ctx context.Context, c *cli.Command) (err error) {
	// The source is opened for changes, so that nothing else changes it.
	from, err := a.openToChange(ctx, c, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := a.openTarget(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	o := move.Options{Source: sourceName(c.String("d"))}
	source := move.Stores{Crawl: from.Crawl(), Hosts: from.Hosts(), Links: from.Links(), Segments: from.Segments()}
	target := move.Stores{Crawl: to.Crawl(), Hosts: to.Hosts(), Links: to.Links(), Segments: to.Segments()}
	place := c.String("to-segments")
	switch {
	case place != "":
		segments, err := crawls.OpenSegments(ctx, crawls.SegmentOptions{Place: place, Logger: a.logger(c)})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, segments.Close()) }()
		target.Segments = segments
		o.Change = func(name, value string) string { return flags.WithSegments(name, value, crawls.WithoutUser(place)) }
	case crawls.Engine(from) != from: // they stay in their object store
		source.Segments, target.Segments = nil, nil
	}
	var shown time.Time
	if f := render.Terminal(a.err); f != nil && !c.Bool("json") {
		o.Progress = func(r move.Report) {
			if now := time.Now(); now.Sub(shown) > 250*time.Millisecond {
				shown = now
				fmt.Fprintf(f, "\r\x1b[K%d records, %d hosts, inlinks of %d pages, %d segments; %d compared", r.Records, r.Hosts, r.Targets, r.Segments, r.Compared)
			}
		}
		defer fmt.Fprint(f, "\r\x1b[K")
	}
	r, err := move.Run(ctx, source, target, o)
	if err == nil && place != "" {
		err = crawls.KeepPlace(ctx, to, place)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.printJSON(map[string]any{"records": r.Records, "marks": r.Marks, "hosts": r.Hosts, "targets": r.Targets, "segments": r.Segments, "blocks": r.Blocks, "compared": r.Compared, "resumed": r.Resumed})
	}
	_, err = fmt.Fprintf(a.out, "copied: %s, %s, inlinks of %s, %s with %s; compared: %s\n", render.Count(r.Records, "record"), render.Count(r.Hosts, "host"),
		render.Count(r.Targets, "page"), render.Count(r.Segments, "segment"), render.Count(r.Blocks, "block"), render.Count(r.Compared, "entry"))
	return err
}

// openTarget opens the crawl that -to names, and makes it if there is none.
func (a *app) openTarget(ctx context.Context, c *cli.Command) (crawls.DB, error) {
	name := c.String("to")
	if flags.IsURL(name) {
		return crawls.OpenURL(ctx, name, crawls.Options{Logger: a.logger(c)})
	}
	db, err := pebblestore.Open(name, pebblestore.Options{Logger: a.logger(c)})
	if err != nil {
		return nil, err
	}
	return db, nil
}

// sourceName names a crawl for a move that is resumed, maybe from another directory.
func sourceName(name string) string {
	if flags.IsURL(name) {
		return crawls.WithoutPassword(name)
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
