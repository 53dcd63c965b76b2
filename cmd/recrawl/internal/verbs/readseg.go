package verbs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
)

func (a *app) readseg() *cli.Command {
	return &cli.Command{
		Name: "readseg", Category: flags.ReadVerbs, Usage: "list the segments, or show what one holds", ArgsUsage: "[SEGMENT]",
		Description: `By default, or with -list, prints a line for each segment, with the number of
records in each part. Given a segment, prints its records, part by part. With -url,
-dump or a choice of parts, prints only those, of the named segment or of all. With
-json the list is one object, and records are one object a line.

  recrawl readseg -d crawl
  recrawl readseg -d crawl -list -format nutch
  recrawl readseg -d crawl -url https://example.com/ -part crawl_fetch
  recrawl readseg -d crawl -json 20260131080000-000
  recrawl readseg -d crawl -markdown -url https://example.com/`,
		Flags: flags.Join(flags.Dir(),
			&cli.BoolFlag{Name: "list", Usage: "count the records of each part, of the named segment or of all"},
			&cli.BoolFlag{Name: "dump", Usage: "show all records, of the named segment or of all"},
			&cli.StringFlag{Name: "url", Aliases: []string{"get"}, Usage: "only the records of this `URL`"},
			&cli.StringFlag{Name: "part", Usage: "only this `PART`: one of " + strings.Join(segment.Parts(), ", ")},
			without("nogenerate"), without("nofetch"), without("nocontent"), without("noparsetext"), without("noparsedata"), without("noparse"),
			&cli.BoolFlag{Name: "recode", Usage: "show contents as text, decoded from the charset that the parser used, or else the one the server declared"},
			&cli.BoolFlag{Name: "markdown", Usage: "show the main content of pages in Markdown, with title, author and dates, instead of the records"},
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT` of -list: text, or nutch for its columns, with times in UTC (default text)", Value: "text"},
			flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			list, err := readsegLists(c)
			if err != nil {
				return err
			}
			return a.readStore(ctx, c, func(db crawls.DB, _ func() time.Time) error {
				switch name := c.Args().First(); {
				case list:
					return a.listSegments(ctx, c, db.Segments(), name)
				case name != "":
					return a.showOne(ctx, c, db.Segments(), name)
				default:
					return a.showAll(ctx, c, db.Segments())
				}
			})
		},
	}
}

// readsegLists checks the flags, and reports whether segments are to be listed instead of shown.
func readsegLists(c *cli.Command) (list bool, err error) {
	list = c.Bool("list")
	if f := c.String("format"); f != "text" && f != "nutch" {
		return false, flags.Usagef("-format: %q is not one of text and nutch", f)
	}
	for _, f := range append(slices.Collect(maps.Keys(partFlags())), "dump", "url", "part", "recode", "markdown") {
		if list && c.IsSet(f) {
			return false, flags.Usagef("-list and -%s exclude each other", f)
		}
	}
	for _, f := range []string{"part", "recode"} {
		if c.Bool("markdown") && c.IsSet(f) {
			return false, flags.Usagef("-markdown and -%s exclude each other", f)
		}
	}
	if c.IsSet("url") && c.String("url") == "" {
		return false, flags.Usagef("-url needs a URL")
	}
	if p := c.String("part"); p != "" && !slices.Contains(segment.Parts(), p) {
		return false, flags.Usagef("-part: %q is not one of %s", p, strings.Join(segment.Parts(), ", "))
	}
	name := c.Args().First()
	if name != "" {
		if err := segment.ValidName(name); err != nil {
			return false, flags.UsageError{Err: err}
		}
	}
	show := name != "" || c.Bool("dump") || c.Bool("markdown") || c.IsSet("url") || c.IsSet("part")
	for f := range partFlags() {
		show = show || c.Bool(f)
	}
	list = list || !show
	if !list && c.String("format") == "nutch" {
		return false, flags.Usagef("-format nutch is for -list")
	}
	return list, nil
}

// showOne shows the records of one segment.
func (a *app) showOne(ctx context.Context, c *cli.Command, s segment.Store, name string) error {
	shown := 0
	found, err := a.showSegment(ctx, c, s, name, &shown)
	if err == nil && !found {
		err = fmt.Errorf("segment %s: %w", name, segment.ErrNotFound)
	}
	return cmp.Or(err, nothingOf(c, shown))
}

// showAll shows the records of all segments.
func (a *app) showAll(ctx context.Context, c *cli.Command, s segment.Store) error {
	shown := 0
	for name, err := range s.List(ctx) {
		if err != nil {
			return err
		}
		if _, err := a.showSegment(ctx, c, s, name, &shown); err != nil {
			return err
		}
	}
	return nothingOf(c, shown)
}

// nothingOf returns an error if -url names a URL that is in no segment shown.
func nothingOf(c *cli.Command, shown int) error {
	if shown == 0 && c.IsSet("url") {
		return fmt.Errorf("nothing found of %q", c.String("url"))
	}
	return nil
}

// partFlags are the flags that leave a part out.
func partFlags() map[string]string {
	return map[string]string{
		"nogenerate": segment.GeneratePart, "nofetch": segment.FetchPart, "nocontent": segment.ContentPart,
		"noparsetext": segment.ParseTextPart, "noparsedata": segment.ParseDataPart, "noparse": segment.ParsePart,
	}
}

func without(flag string) cli.Flag {
	return &cli.BoolFlag{Name: flag, Usage: "leave " + partFlags()[flag] + " out"}
}

type segmentJSON struct {
	Name         string              `json:"name"`
	FetcherStart *time.Time          `json:"fetcher_start,omitempty"`
	FetcherEnd   *time.Time          `json:"fetcher_end,omitempty"`
	Parts        map[string]partJSON `json:"parts"`
}

type partJSON struct {
	Records   int   `json:"records"`
	Blocks    int   `json:"blocks"`
	Bytes     int64 `json:"bytes"`
	Committed bool  `json:"committed"`
}

// listSegments lists one segment, or all.
func (a *app) listSegments(ctx context.Context, c *cli.Command, s segment.Store, only string) error {
	all := []segmentJSON{}
	var bad []error // the list continues after what cannot be read
	for name, err := range s.List(ctx) {
		if err != nil {
			return err
		}
		if only != "" && name != only {
			continue
		}
		seg := segmentJSON{Name: name, Parts: map[string]partJSON{}}
		for _, part := range segment.Parts() {
			info, err := s.Stat(ctx, name, part)
			if errors.Is(err, segment.ErrNotFound) {
				continue
			}
			n := 0
			if err == nil {
				n, err = countPart(ctx, s, name, part, &seg)
			}
			if damage := (*segment.CorruptError)(nil); errors.As(err, &damage) {
				bad = append(bad, fmt.Errorf("%s/%s: %w", name, part, damage))
				continue
			}
			if err != nil {
				return err
			}
			seg.Parts[part] = partJSON{n, info.Blocks, info.Bytes, info.Committed}
		}
		all = append(all, seg)
	}
	if only != "" && len(all) == 0 {
		return fmt.Errorf("segment %s: %w", only, segment.ErrNotFound)
	}
	if c.Bool("json") {
		return cmp.Or(a.printJSON(map[string]any{"segments": all}), errors.Join(bad...))
	}
	if c.String("format") == "nutch" {
		return cmp.Or(a.listAsNutch(all), errors.Join(bad...))
	}
	for _, seg := range all {
		fmt.Fprint(a.out, seg.Name)
		for _, part := range segment.Parts() {
			if p, ok := seg.Parts[part]; ok {
				open := ""
				if !p.Committed {
					open = " (open)"
				}
				fmt.Fprintf(a.out, "\t%s %d%s", part, p.Records, open)
			}
		}
		fmt.Fprintln(a.out)
	}
	return errors.Join(bad...)
}

// listAsNutch prints Nutch's columns, with "?" for what is unknown. FETCHED counts the
// visits; Nutch also counts the links and redirects found.
func (a *app) listAsNutch(all []segmentJSON) error {
	w := bufio.NewWriter(a.out)
	fmt.Fprintln(w, "NAME\tGENERATED\tFETCHER START\tFETCHER END\tFETCHED\tPARSED")
	count := func(seg *segmentJSON, part string) string {
		if p, ok := seg.Parts[part]; ok {
			return strconv.Itoa(p.Records)
		}
		return "?"
	}
	at := func(t *time.Time) string {
		if t == nil {
			return "?"
		}
		return t.UTC().Format("2006-01-02T15:04:05")
	}
	for i := range all {
		seg := &all[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", seg.Name, count(seg, segment.GeneratePart), at(seg.FetcherStart), at(seg.FetcherEnd),
			count(seg, segment.FetchPart), count(seg, segment.ParseDataPart))
	}
	return w.Flush()
}

// countPart counts the records of a part, and notes the times of visits.
func countPart(ctx context.Context, s segment.Store, name, part string, seg *segmentJSON) (int, error) {
	switch part {
	case segment.GeneratePart:
		return count(segment.Partial[crawldb.Datum](ctx, s, name, 0))
	case segment.FetchPart:
		n := 0
		for block, err := range segment.Partial[segment.Visit](ctx, s, name, 0) {
			if err != nil {
				return n, err
			}
			for i := range block {
				n++
				if t := block[i].Time; seg.FetcherStart == nil || t.Before(*seg.FetcherStart) {
					seg.FetcherStart = &t
				}
				if t := block[i].Time; seg.FetcherEnd == nil || t.After(*seg.FetcherEnd) {
					seg.FetcherEnd = &t
				}
			}
		}
		return n, nil
	case segment.ContentPart:
		return count(segment.Partial[page.Content](ctx, s, name, 0))
	case segment.ParseTextPart:
		return count(segment.Partial[segment.Text](ctx, s, name, 0))
	case segment.ParseDataPart:
		return count(segment.Partial[segment.Data](ctx, s, name, 0))
	default:
		return count(segment.Partial[segment.Parse](ctx, s, name, 0))
	}
}

func count[T any](blocks iter.Seq2[[]T, error]) (n int, err error) {
	for b, err := range blocks {
		if err != nil {
			return n, err
		}
		n += len(b)
	}
	return n, nil
}
