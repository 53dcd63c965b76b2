package verbs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"slices"

	"github.com/urfave/cli/v3"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
)

// showSegment shows the requested parts of a segment, and reports whether it has any.
// It adds the number of records shown to shown.
func (a *app) showSegment(ctx context.Context, c *cli.Command, s segment.Store, name string, shown *int) (found bool, err error) {
	if c.Bool("markdown") {
		return a.showMarkdown(ctx, c, s, name, shown)
	}
	w := bufio.NewWriter(a.out)
	var only []string // the spellings to look for: the crawl may have its own normalizers
	if u := c.String("url"); u != "" {
		only = []string{u, normal(u)}
	}
	skip := map[string]bool{}
	for flag, part := range partFlags() {
		skip[part] = c.Bool(flag)
	}
	var charsets map[string]string
	if c.Bool("recode") {
		if charsets, err = parsedCharsets(ctx, s, name); err != nil {
			return false, err
		}
	}
	for _, part := range segment.Parts() {
		if p := c.String("part"); p != "" && p != part || skip[part] {
			continue
		}
		if _, err := s.Stat(ctx, name, part); errors.Is(err, segment.ErrNotFound) {
			continue
		} else if err != nil {
			return found, err
		}
		found = true
		to := shower{w: w, json: c.Bool("json"), only: only, part: part, segment: name, shown: shown}
		switch part {
		case segment.GeneratePart:
			err = showPart(ctx, s, to, func(d crawldb.Datum) (string, any) { return d.URL, render.NewRecordJSON(&d) })
		case segment.FetchPart:
			err = showPart(ctx, s, to, func(v segment.Visit) (string, any) { return v.URL, render.VisitJSON(&v) })
		case segment.ContentPart:
			err = showPart(ctx, s, to, func(p page.Content) (string, any) {
				body := string(p.Body)
				if charsets != nil {
					body = recoded(&p, charsets[p.URL])
				}
				return p.URL, map[string]any{"url": p.URL, "type": p.Type, "truncated": p.Truncated, "fetched": p.Time, "robots": p.Robots, "bytes": len(p.Body), "body": body}
			})
		case segment.ParseTextPart:
			err = showPart(ctx, s, to, func(t segment.Text) (string, any) {
				return t.URL, map[string]any{"url": t.URL, "text": t.Text}
			})
		case segment.ParseDataPart:
			err = showPart(ctx, s, to, func(d segment.Data) (string, any) { return d.URL, render.DataJSON(&d) })
		case segment.ParsePart:
			err = showPart(ctx, s, to, func(p segment.Parse) (string, any) { return p.URL, render.ParseJSON(&p) })
		}
		if err != nil {
			return found, err
		}
	}
	return found, w.Flush()
}

type shower struct {
	w             io.Writer
	json          bool
	only          []string
	part, segment string
	shown         *int
}

// showPart prints the records of a part, as JSON lines or as text.
func showPart[T segment.Record](ctx context.Context, s segment.Store, show shower, view func(T) (string, any)) error {
	for block, err := range segment.Partial[T](ctx, s, show.segment, 0) {
		if err != nil {
			return err
		}
		for _, rec := range block {
			url, v := view(rec)
			if show.only != nil && !slices.Contains(show.only, url) {
				continue
			}
			*show.shown++
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

// parsedCharsets returns the charsets that the parser used for the pages of a segment,
// by URL.
func parsedCharsets(ctx context.Context, s segment.Store, name string) (map[string]string, error) {
	all := map[string]string{}
	if _, err := s.Stat(ctx, name, segment.ParseDataPart); errors.Is(err, segment.ErrNotFound) {
		return all, nil
	}
	for block, err := range segment.Partial[segment.Data](ctx, s, name, 0) {
		if err != nil {
			return nil, err
		}
		for i := range block {
			if charset := block[i].Parsed.Charset; charset != "" {
				all[block[i].URL] = charset
			}
		}
	}
	return all, nil
}

// recoded returns a body decoded from its charset: the one the parser used, else the
// one the server declared, else UTF-8.
func recoded(p *page.Content, charset string) string {
	if charset == "" {
		_, params, _ := mime.ParseMediaType(p.Type)
		charset = params["charset"]
	}
	enc, err := htmlindex.Get(charset)
	if err != nil {
		return string(p.Body)
	}
	text, err := enc.NewDecoder().Bytes(p.Body)
	if err != nil {
		return string(p.Body)
	}
	return string(text)
}
