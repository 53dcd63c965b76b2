package main

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

const wikiType = "text/x-wiki"

// wiki is a protocol.Protocol: wiki://any-name/Title stands for the article of
// that title.
type wiki map[string]article

type article struct {
	Text    string
	Type    string // empty means wikiType
	MovedTo string // another title; empty for an article
}

// Fetch answers from memory. Any answer of the wiki is an outcome, even that it has no
// such article; an error is for visits that could not be made.
func (w wiki) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	if err := ctx.Err(); err != nil {
		return protocol.Response{}, err
	}
	resp := protocol.Response{Content: page.Content{URL: req.URL, Time: time.Now()}}
	u, err := url.Parse(req.URL)
	if err != nil || u.Scheme != "wiki" {
		resp.Outcome = protocol.Outcome{Code: protocol.Refused, Reason: "not a wiki URL"}
		return resp, nil
	}
	a, ok := w[strings.TrimPrefix(u.Path, "/")]
	switch {
	case !ok:
		resp.Outcome = protocol.Outcome{Code: protocol.NotFound, Reason: "no such article"}
	case a.MovedTo != "":
		resp.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Location: u.JoinPath("..", a.MovedTo).String()}
	default:
		resp.Outcome.Code = protocol.Success
		resp.Content.Type = cmp.Or(a.Type, wikiType)
		resp.Content.Body = []byte(a.Text)
		resp.Bytes = int64(len(a.Text))
		if n := req.MaxBytes; n > 0 && resp.Bytes > n {
			resp.Content.Body, resp.Content.Truncated = resp.Content.Body[:n], true
		}
	}
	return resp, nil
}

// wikiParser is a parse.Parser for articles: text with [[links]].
type wikiParser struct{}

// Parse reads bytes that anyone may have written: they need not be UTF-8, nor
// the brackets closed, and it stops when the context is done.
func (wikiParser) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	base, err := url.Parse(c.URL)
	if err != nil {
		return page.Parsed{}, err
	}
	p := page.Parsed{Title: strings.TrimPrefix(base.Path, "/"), Truncated: c.Truncated}
	var text strings.Builder
	seen := map[string]bool{}
	for rest := strings.ToValidUTF8(string(c.Body), "\uFFFD"); rest != ""; {
		if err := ctx.Err(); err != nil {
			return page.Parsed{}, err
		}
		before, after, _ := strings.Cut(rest, "[[")
		title, behind, closed := strings.Cut(after, "]]")
		text.WriteString(before + title)
		if target := base.JoinPath("..", title).String(); closed && !seen[target] { // each target once
			seen[target] = true
			p.Outlinks = append(p.Outlinks, page.Outlink{URL: target, Anchor: title})
		}
		rest = behind
	}
	p.Text = text.String()
	return p, nil
}
