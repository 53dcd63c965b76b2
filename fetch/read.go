package fetch

import (
	"context"
	"errors"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// reader turns content into text, data and links: what a fetch that parses and
// the parse stage have in common.
type reader struct{ o *Options }

func (o *Options) reader() reader { return reader{o} }

// read fills the parsed parts of a visit. from is the record as it was when the
// page was selected.
func (r reader) read(ctx context.Context, v *visited, from *crawldb.Datum, c *page.Content) {
	out := v.visit.Outcome
	switch {
	case out.Code.Redirect():
		v.parse = &segment.Parse{URL: from.URL}
		if target, ok := r.accept(v, urlfilter.Fetcher, from.URL, out.Location); ok && target != from.URL {
			r.distribute(v.parse, scoring.Page{Datum: from, Found: 1}, []string{target})
		}
		return
	case out.Code != protocol.Success:
		return
	}
	parsed, err := parsePage(ctx, r.o.Parser, c)
	if errors.Is(err, parse.ErrUnsupported) {
		v.parse = &segment.Parse{URL: from.URL, Signature: r.o.Signature.Sum(c, nil)}
		return
	}
	if err != nil {
		if errors.Is(err, errPanic) {
			r.o.Logger.Error("fetch: parser panicked", "url", from.URL, "error", err)
		}
		v.parse = &segment.Parse{URL: from.URL, Error: oneLine(err.Error())}
		return
	}
	v.parse = &segment.Parse{URL: from.URL, Signature: r.o.Signature.Sum(c, &parsed)}
	v.cut = parsed.OutlinksCut

	// What is kept of the links is what the crawl will follow.
	links := parsed.Outlinks
	page := scoring.Page{Datum: from, Content: c, Parsed: &parsed, Found: len(links) + parsed.OutlinksCut}
	parsed.Outlinks = nil
	seen := map[string]struct{}{from.URL: {}}
	var targets []string
	add := func(l outlink, scope urlfilter.Scope) (string, bool) {
		target, ok := r.accept(v, scope, from.URL, l.URL)
		if !ok {
			return "", false
		}
		if _, dup := seen[target]; dup {
			return target, false
		}
		seen[target] = struct{}{}
		targets = append(targets, target)
		return target, true
	}
	if parsed.Refresh != "" && !parsed.NoFollow {
		if target, _ := add(outlink{URL: parsed.Refresh}, urlfilter.Fetcher); target != "" {
			parsed.Refresh = target
		}
	}
	for _, l := range links {
		if l.NoFollow || parsed.NoFollow {
			v.rejected++
			continue
		}
		if target, ok := add(l, urlfilter.Outlink); ok {
			parsed.Outlinks = append(parsed.Outlinks, outlink{URL: target, Anchor: l.Anchor})
		}
	}
	r.distribute(v.parse, page, targets)
	v.text = &segment.Text{URL: from.URL, Text: parsed.Text}
	parsed.Text = ""
	v.data = &segment.Data{URL: from.URL, Parsed: parsed}
}

// accept applies the rules of the crawl to a target, and counts what they
// reject.
func (r reader) accept(v *visited, scope urlfilter.Scope, from, target string) (string, bool) {
	if r.o.Rules != nil {
		u, err := r.o.Rules.Apply(scope, target)
		if err != nil {
			v.rejected++
			return "", false
		}
		target = u
	}
	if target == "" || r.o.IgnoreExternal && !r.internal(from, target) {
		v.rejected++
		return "", false
	}
	return target, true
}

func (r reader) internal(from, target string) bool {
	return r.o.By.Key(from) == r.o.By.Key(target)
}

// distribute gives the targets their share of the page's importance.
func (r reader) distribute(p *segment.Parse, from scoring.Page, targets []string) {
	links := make([]scoring.Link, len(targets))
	for i, t := range targets {
		links[i] = scoring.Link{From: from.Datum.URL, URL: t}
	}
	p.Gave = r.o.Scoring.Distribute(from, links)
	p.Links = make([]segment.Link, 0, len(links))
	for _, l := range links {
		if !l.Drop {
			p.Links = append(p.Links, segment.Link{URL: l.URL, Score: l.Score, Meta: l.Meta})
		}
	}
}

type outlink = page.Outlink

func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || '\u2028' <= r && r <= '\u202e' {
			return ' '
		}
		return r
	}, s)
	if len(s) > 300 {
		s = s[:300]
	}
	return strings.ToValidUTF8(s, "?")
}
