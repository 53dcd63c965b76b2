package fetch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// contentReader turns content into text, data and links: the common part of a fetch
// that parses and the parse stage.
type contentReader struct {
	opts *Options
	// parseStage says that this is the parse stage, which makes a difference in
	// Nutch.
	parseStage bool
}

func (o *Options) contentReader() contentReader { return contentReader{opts: o} }

// read fills the parsed parts of a visit. from is the record as it was when the page
// was selected. If a rule, the signature or the scoring panics, the page counts as
// one that could not be parsed: it leads nowhere and keeps what it has to give.
func (r contentReader) read(ctx context.Context, v *visitResult, from *crawldb.Datum, c *page.Content) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(v, p)
			if v.visit.Outcome.Code == protocol.Success {
				v.parse = &segment.Parse{URL: from.URL, Error: oneLine(fmt.Sprintf("a policy panicked: %v", p))}
			}
		}
	}()
	switch code := v.visit.Outcome.Code; {
	case code == protocol.Success:
		r.readContent(ctx, v, from, c)
	case code.Redirect():
		v.parse = &segment.Parse{URL: from.URL}
		var links []scoring.Link
		if l, ok := r.followRedirect(v, from, v.visit.Outcome.Location); ok {
			links = []scoring.Link{l}
		}
		r.distribute(v.parse, scoring.Page{Datum: from, Found: 1}, links)
		r.redirectedSitemap(v.parse, from)
		if len(v.parse.Links) > 0 {
			v.target = &v.parse.Links[0]
		}
	case code == protocol.NotModified || code.Transient():
		// The page keeps what it has for links found later.
	default:
		// There is no page, so it cannot keep what it has.
		p := &segment.Parse{URL: from.URL}
		if r.distribute(p, scoring.Page{Datum: from}, nil); p.Gave != 0 {
			v.parse = p
		}
	}
}

// sign does the part that does not wait until a page is parsed: it finds where the
// page leads and, with Options.Parsing.SignUnparsed, fingerprints its content.
func (r contentReader) sign(v *visitResult, c *page.Content) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(v, p)
		}
	}()
	r.findTarget(v)
	if r.opts.Parsing.SignUnparsed && v.visit.Outcome.Code == protocol.Success {
		v.visit.Signature = r.opts.Signature.Sum(c, nil)
	}
}

// panicked logs that a policy panicked on a page, and where, and resets the visit to
// what the protocol returned.
func (r contentReader) panicked(v *visitResult, p any) {
	r.opts.Logger.Error("fetch: a policy panicked", "url", v.visit.URL, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	v.parse, v.text, v.data, v.target, v.sitemap = nil, nil, nil, nil, nil
	v.rejected, v.cut = 0, 0
}

func (r contentReader) readContent(ctx context.Context, v *visitResult, from *crawldb.Datum, c *page.Content) {
	if r.readSitemap(ctx, v, from, c) {
		return
	}
	if r.opts.Parsing.SkipTruncated && c.Truncated {
		return
	}
	v.parse = &segment.Parse{URL: from.URL}
	parsed, err := r.parse(ctx, c)
	var hints []segmentLink
	if errors.Is(err, parse.ErrUnsupported) {
		if p, links, ok := r.readFeed(ctx, v, c); ok {
			parsed, hints, err = p, links, nil
		}
	}
	if err != nil {
		r.recordTag(&v.parse.Meta, from, c)
		if errors.Is(err, parse.ErrUnsupported) {
			// Nutch's parse stage drops content that no parser reads.
			if !r.opts.NutchCompat || !r.parseStage {
				v.parse.Signature = r.opts.Signature.Sum(c, nil)
			}
		} else {
			if errors.Is(err, errPanic) {
				r.opts.Logger.Error("fetch: parser panicked", "url", from.URL, "error", err)
			}
			v.parse.Error = oneLine(err.Error())
			if r.opts.NutchCompat { // which continues with an empty parse
				v.parse.Signature = r.opts.Signature.Sum(c, &page.Parsed{})
			}
		}
		r.distribute(v.parse, scoring.Page{Datum: from, Content: c}, nil)
		return
	}
	v.parse.Signature = r.opts.Signature.Sum(c, &parsed)
	if hints != nil { // a feed has no text to fingerprint
		v.parse.Signature = r.signSitemap(c)
	}
	v.parse.Meta = r.properties(&parsed)
	addUsage(&parsed, c)
	r.recordTag(&v.parse.Meta, from, c)
	v.cut = parsed.OutlinksCut

	// What is kept of the links is what the crawl will follow.
	p := scoring.Page{Datum: from, Content: c, Parsed: &parsed, Found: len(parsed.Outlinks) + parsed.OutlinksCut}
	if r.opts.NutchCompat {
		r.nutchLinks(v, p)
	} else {
		r.links(v, p)
	}
	v.parse.Links = append(v.parse.Links, hints...)
	v.text = &segment.Text{URL: from.URL, Text: parsed.Text}
	parsed.Text = ""
	v.data = &segment.Data{URL: from.URL, Parsed: parsed}
}

// addUsage adds a property with the uses that the page allows or forbids in headers and meta elements.
func addUsage(p *page.Parsed, c *page.Content) {
	said := []string{c.Robots}
	for _, m := range p.Meta {
		if m.Name == "robots" {
			said = append(said, m.Value)
		}
	}
	if u := robots.PageUsage(said...); len(u) > 0 {
		p.Meta = append(p.Meta, page.Property{Name: page.UsageName, Value: u.String()})
	}
}

// parse calls the parser, within the time that a page may take, and turns its
// panic into an error.
func (r contentReader) parse(ctx context.Context, c *page.Content) (parsed page.Parsed, err error) {
	if limit := r.opts.Parsing.Timeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		start := time.Now()
		defer func() {
			if took := time.Since(start); took > limit+parseGrace {
				r.opts.Logger.Warn("fetch: the parser did not end in time", "url", c.URL, "limit", limit, "elapsed", took)
			}
		}()
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	return r.opts.Parser.Parse(ctx, c)
}

// parseGrace is how long a parser may take to notice that its time is over.
const parseGrace = time.Second

var errPanic = errors.New("fetch: parser panicked")

// properties selects the properties of a page that the crawl db keeps: the
// first value of each name.
func (r contentReader) properties(p *page.Parsed) (m crawldb.Meta) {
	for _, name := range r.opts.Parsing.Meta {
		for _, q := range p.Meta {
			if !strings.EqualFold(q.Name, name) {
				continue
			}
			value := q.Value
			if len(value) > maxProperty && !r.opts.NutchCompat {
				value = strings.ToValidUTF8(value[:maxProperty], "")
			}
			m.Set(name, value)
			break
		}
	}
	return m
}

// maxProperty limits what one property of a page adds to every copy of its
// record, in bytes.
const maxProperty = 1024

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
