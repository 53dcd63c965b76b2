package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) readseg() *cli.Command {
	return &cli.Command{
		Name: "readseg", Category: looking, Usage: "list the segments, or show what one holds", ArgsUsage: "[SEGMENT]",
		Description: `Without anything: a line for each segment, with the number of records in each
part. With a segment: its records, part by part. With -url or -part: only those,
of all segments if none is named. The list is one object with -json, records are
one object a line.

  recrawl readseg -d crawl
  recrawl readseg -d crawl -url https://example.com/ -part crawl_fetch
  recrawl readseg -d crawl -json 20260131080000000`,
		Flags: flags(dirFlag(),
			&cli.StringFlag{Name: "url", Usage: "only what belongs to this `URL`"},
			&cli.StringFlag{Name: "part", Usage: "only this `PART`: one of " + strings.Join(segment.Parts(), ", ")},
			reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if p := c.String("part"); p != "" && !slices.Contains(segment.Parts(), p) {
				return usagef("-part: %q is not one of %s", p, strings.Join(segment.Parts(), ", "))
			}
			name := c.Args().First()
			if name != "" {
				if err := segment.ValidName(name); err != nil {
					return usageError{err}
				}
			}
			return a.reading(c, func(db *pebblestore.DB, _ func() time.Time) error {
				if name == "" && (c.IsSet("url") || c.IsSet("part")) {
					for n, err := range db.Segments().List(ctx) {
						if err != nil {
							return err
						}
						if err := a.showSegment(ctx, c, db.Segments(), n); err != nil {
							return err
						}
					}
					return nil
				}
				if name == "" {
					return a.listSegments(ctx, c, db.Segments())
				}
				return a.showSegment(ctx, c, db.Segments(), name)
			})
		},
	}
}

type segmentJSON struct {
	Name  string              `json:"name"`
	Parts map[string]partJSON `json:"parts"`
}

type partJSON struct {
	Records   int   `json:"records"`
	Blocks    int   `json:"blocks"`
	Bytes     int64 `json:"bytes"`
	Committed bool  `json:"committed"`
}

func (a *app) listSegments(ctx context.Context, c *cli.Command, s segment.Store) error {
	all := []segmentJSON{}
	for name, err := range s.List(ctx) {
		if err != nil {
			return err
		}
		seg := segmentJSON{Name: name, Parts: map[string]partJSON{}}
		for _, part := range segment.Parts() {
			info, err := s.Stat(ctx, name, part)
			if errors.Is(err, segment.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			n, err := countPart(ctx, s, name, part)
			if err != nil {
				return err
			}
			seg.Parts[part] = partJSON{n, info.Blocks, info.Bytes, info.Committed}
		}
		all = append(all, seg)
	}
	if c.Bool("json") {
		return a.printJSON(map[string]any{"segments": all})
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
	return nil
}

func countPart(ctx context.Context, s segment.Store, name, part string) (int, error) {
	switch part {
	case segment.GeneratePart:
		return count(segment.Partial[crawldb.Datum](ctx, s, name, 0))
	case segment.FetchPart:
		return count(segment.Partial[segment.Visit](ctx, s, name, 0))
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

func (a *app) showSegment(ctx context.Context, c *cli.Command, s segment.Store, name string) error {
	w := bufio.NewWriter(a.out)
	found := false
	show := ""
	if c.IsSet("url") {
		show = normal(c.String("url"))
	}
	for _, part := range segment.Parts() {
		if p := c.String("part"); p != "" && p != part {
			continue
		}
		if _, err := s.Stat(ctx, name, part); errors.Is(err, segment.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		found = true
		to := shower{w: w, json: c.Bool("json"), url: show, part: part, segment: name}
		var err error
		switch part {
		case segment.GeneratePart:
			err = showPart(ctx, s, to, func(d crawldb.Datum) (string, any) { return d.URL, record(&d) })
		case segment.FetchPart:
			err = showPart(ctx, s, to, func(v segment.Visit) (string, any) { return v.URL, visit(&v) })
		case segment.ContentPart:
			err = showPart(ctx, s, to, func(p page.Content) (string, any) {
				return p.URL, map[string]any{"url": p.URL, "type": p.Type, "truncated": p.Truncated, "fetched": p.Time, "robots": p.Robots, "bytes": len(p.Body), "body": string(p.Body)}
			})
		case segment.ParseTextPart:
			err = showPart(ctx, s, to, func(t segment.Text) (string, any) {
				return t.URL, map[string]any{"url": t.URL, "text": t.Text}
			})
		case segment.ParseDataPart:
			err = showPart(ctx, s, to, func(d segment.Data) (string, any) { return d.URL, data(&d) })
		case segment.ParsePart:
			err = showPart(ctx, s, to, func(p segment.Parse) (string, any) { return p.URL, parse(&p) })
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("segment %s: %w", name, segment.ErrNotFound)
	}
	return w.Flush()
}

type shower struct {
	w                  io.Writer
	json               bool
	url, part, segment string
}

// showPart prints the records of a part, as JSON lines or as text.
func showPart[T segment.Record](ctx context.Context, s segment.Store, show shower, view func(T) (string, any)) error {
	for block, err := range segment.Partial[T](ctx, s, show.segment, 0) {
		if err != nil {
			return err
		}
		for _, rec := range block {
			url, v := view(rec)
			if show.url != "" && url != show.url {
				continue
			}
			if show.json {
				e := json.NewEncoder(show.w)
				e.SetEscapeHTML(false)
				if err := e.Encode(map[string]any{"segment": show.segment, "part": show.part, "record": v}); err != nil {
					return err
				}
				continue
			}
			if _, err := fmt.Fprintf(show.w, "%s %s %s\n  ", show.segment, show.part, url); err != nil {
				return err
			}
			e := json.NewEncoder(show.w)
			e.SetEscapeHTML(false)
			e.SetIndent("  ", "  ")
			if err := e.Encode(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func visit(v *segment.Visit) any {
	return map[string]any{"url": v.URL, "time": v.Time, "outcome": v.Outcome.Code.String(), "status": v.Outcome.Status, "location": v.Outcome.Location, "reason": v.Outcome.Reason,
		"retry_after_seconds": v.Outcome.RetryAfter.Seconds(), "content_type": v.ContentType, "etag": v.ETag, "last_modified": v.LastModified, "truncated": v.Truncated,
		"bytes": v.Bytes, "elapsed_ms": v.Elapsed.Milliseconds()}
}

func data(d *segment.Data) any {
	p := &d.Parsed
	type link struct {
		URL    string `json:"url"`
		Anchor string `json:"anchor"`
	}
	links := []link{}
	for _, l := range p.Outlinks {
		links = append(links, link{l.URL, l.Anchor})
	}
	return map[string]any{"url": d.URL, "title": p.Title, "outlinks": links, "outlinks_cut": p.OutlinksCut, "charset": p.Charset, "noindex": p.NoIndex, "nofollow": p.NoFollow,
		"refresh": p.Refresh, "canonical": p.Canonical, "truncated": p.Truncated, "meta": p.Meta}
}

func parse(p *segment.Parse) any {
	type link struct {
		URL   string  `json:"url"`
		Score float64 `json:"score"`
	}
	links := []link{}
	for _, l := range p.Links {
		links = append(links, link{l.URL, l.Score})
	}
	return map[string]any{"url": p.URL, "signature": hex.EncodeToString(p.Signature), "error": p.Error, "gave": p.Gave, "links": links}
}
