package verbs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/targets"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/extract"
	"github.com/recrawl/recrawl/segment"
)

// articleJSON is what is extracted from a page.
type articleJSON struct {
	URL         string              `json:"url"`
	Title       string              `json:"title,omitempty"`
	Author      string              `json:"author,omitempty"`
	Published   time.Time           `json:"published,omitzero"`
	Modified    time.Time           `json:"modified,omitzero"`
	Language    string              `json:"language,omitempty"`
	Canonical   string              `json:"canonical,omitempty"`
	Image       string              `json:"image,omitempty"`
	Description string              `json:"description,omitempty"`
	Site        string              `json:"site,omitempty"`
	Fields      map[string][]string `json:"fields,omitempty"`
	Markdown    string              `json:"markdown"`
}

// articleOf extracts an article.
func articleOf(ctx context.Context, c *page.Content) (articleJSON, *extract.Article, error) {
	x, err := extract.Extract(ctx, c)
	if err != nil {
		return articleJSON{}, nil, err
	}
	md, err := x.Markdown()
	return articleJSON{URL: c.URL, Title: x.Title, Author: x.Author, Published: x.Published, Modified: x.Modified, Language: x.Language, Canonical: x.Canonical,
		Image: x.Image, Description: x.Description, Site: x.Site, Markdown: md}, x, err
}

// properties yields the properties of an article that are known.
func (j *articleJSON) properties(yield func(name, value string) bool) {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339)
	}
	for _, p := range [][2]string{{"title", j.Title}, {"author", j.Author}, {"published", at(j.Published)}, {"modified", at(j.Modified)}, {"language", j.Language},
		{"canonical", j.Canonical}, {"image", j.Image}, {"description", j.Description}, {"site", j.Site}} {
		if p[1] != "" && !yield(p[0], p[1]) {
			return
		}
	}
}

// write writes Markdown with its properties before it, as many programs read it.
func (j *articleJSON) write(w io.Writer) error {
	var b strings.Builder
	quoted := func(s string) string {
		q, _ := json.Marshal(s) // which is also YAML
		return string(q)
	}
	fmt.Fprintf(&b, "---\nurl: %s\n", quoted(j.URL))
	for name, value := range j.properties {
		fmt.Fprintf(&b, "%s: %s\n", name, quoted(value))
	}
	fmt.Fprintf(&b, "---\n\n%s\n\n", j.Markdown)
	_, err := io.WriteString(w, b.String())
	return err
}

// showMarkdown shows the main content of the pages of a segment.
func (a *app) showMarkdown(ctx context.Context, c *cli.Command, s segment.Store, name string, shown *int) (found bool, err error) {
	if _, err := s.Stat(ctx, name, segment.ContentPart); errors.Is(err, segment.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	charsets, err := parsedCharsets(ctx, s, name)
	if err != nil {
		return true, err
	}
	w := bufio.NewWriter(a.out)
	var only []string
	if u := c.String("url"); u != "" {
		only = []string{u, normal(u)}
	}
	for block, err := range segment.Partial[page.Content](ctx, s, name, 0) {
		if err != nil {
			return true, err
		}
		for i := range block {
			p := &block[i]
			if only != nil && !slices.Contains(only, p.URL) {
				continue
			}
			if cs := charsets[p.URL]; cs != "" {
				p.Type = parse.MediaType(p) + "; charset=" + cs
			}
			j, _, err := articleOf(ctx, p)
			if errors.Is(err, parse.ErrUnsupported) {
				continue
			}
			if err != nil {
				return true, err
			}
			*shown++
			if !c.Bool("json") {
				err = j.write(w)
			} else {
				e := json.NewEncoder(w)
				e.SetEscapeHTML(false)
				err = e.Encode(map[string]any{"segment": name, "record": j})
			}
			if err != nil {
				return true, err
			}
		}
	}
	return true, w.Flush()
}

// markdownWriter turns the text of documents into the Markdown of their main content.
type markdownWriter struct {
	index.Writer
	keepContent bool
}

// markdownOf returns a writer that does what -format says.
func markdownOf(c *cli.Command, w index.Writer) index.Writer {
	if c.String("format") != "markdown" {
		return w
	}
	return markdownWriter{w, c.Bool("addBinaryContent")}
}

// Write passes on a document with its main content. What is not HTML keeps its text.
func (w markdownWriter) Write(ctx context.Context, d *index.Document) error {
	doc, err := markdownDocument(ctx, d, w.keepContent)
	if err != nil {
		return err
	}
	return w.Writer.Write(ctx, doc)
}

func markdownDocument(ctx context.Context, d *index.Document, keepContent bool) (*index.Document, error) {
	doc := *d
	c := &page.Content{URL: d.URL, Type: d.ContentType, Body: d.BinaryContent}
	if d.Charset != "" {
		c.Type += "; charset=" + d.Charset
	}
	if !keepContent {
		doc.BinaryContent, doc.Charset = nil, ""
	}
	j, _, err := articleOf(ctx, c)
	if errors.Is(err, parse.ErrUnsupported) {
		return &doc, nil
	}
	if err != nil {
		return nil, err
	}
	doc.Text = j.Markdown
	if j.Title != "" {
		doc.Title = j.Title
	}
	fields := map[string][]string{}
	for name, value := range j.properties {
		if name != "title" {
			fields[name] = []string{value}
		}
	}
	for name, values := range d.Fields {
		fields[name] = values
	}
	doc.Fields = fields
	return &doc, nil
}

// markdownTarget is a target whose documents have their main content as text.
type markdownTarget struct {
	targets.Writer
	keepContent bool
}

// Write passes on a document as markdownWriter does.
func (t markdownTarget) Write(ctx context.Context, d *index.Document) error {
	return markdownWriter{t.Writer, t.keepContent}.Write(ctx, d)
}
