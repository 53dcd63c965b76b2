// Package htmlparse reads HTML: title, visible text, links, and what the page
// tells robots. [Parser] is the stock implementation of
// [github.com/recrawl/recrawl/parse.Parser] for HTML and XHTML, [Text] the one
// for plain text, and [Mux], where to start, combines both. It fetches nothing, runs no script and
// does not decide which links are followed.
//
// The parser walks the tokens of the page in place and builds no tree. So its time and
// memory grow with the length of the page and with nothing else: no nesting is
// refused, and none makes it slow. The tokens are those of the tokenizer of
// golang.org/x/net/html, found in less time; only the first 4,096 attributes of a tag
// count.
//
// # What counts as a link
//
//   - a and area href, frame and iframe src.
//   - link href, if its rel says that the target is a page: alternate (but not
//     a style sheet, and only HTML or a feed), amphtml, appendix, archives,
//     author, bookmark, canonical, chapter, contents, copyright, first,
//     glossary, help, home, index, last, license, next, prev, previous,
//     related, section, start, subsection, toc, top, up.
//   - With [Parser.FollowResources] every other link href but dns-prefetch and
//     preconnect, and the src of script, embed, source, track, audio, video and
//     the data of object.
//   - With [Parser.Images] img src.
//
// Forms are not links, and nothing in a template is one. A link inside noscript
// or noframes is, although their text is left out.
//
// A link to the page itself, such as "#top", is left out. Schemes are those of
// [Parser.Schemes].
package htmlparse

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/recrawl/recrawl/internal/directives"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
)

// Defaults of the limits of a [Parser].
const (
	defaultMaxOutlinks = 10000
	defaultMaxURL      = 4096
	defaultMaxText     = 4 << 20
	defaultMaxTitle    = 1000
	defaultMaxAnchor   = 100
	defaultMaxMeta     = 250
	defaultTimeout     = 30 * time.Second
)

// Parser reads HTML and XHTML. The zero value is ready to use. Its fields must
// not change while it is in use; its method may be called from many goroutines
// at once.
//
// In each limit zero means the default and a negative number means none.
type Parser struct {
	// Agent is the name of the crawler: a meta element of that name applies to
	// it just as the one named robots does. Letter case does not matter. Empty:
	// only "robots" counts.
	Agent string

	// MaxOutlinks is how many distinct links of a page are kept: the first
	// ones. Each occurrence of another one is counted in OutlinksCut. The
	// default is 10,000.
	//
	// Nutch's db.max.outlinks.per.page is 100. On 31,459 pages of documentation
	// from 8 sites that limit cuts 3.5 % of the pages and 7.6 % of the links;
	// 500 cuts 15 pages and 1.2 %; 1,000 cuts one page, an index of 6,364
	// entries, and 0.7 %; 5,000 cuts 0.2 %; and 10,000 cuts none. The pages cut
	// are index pages, whose links occur nowhere else, so the default leaves
	// them whole.
	MaxOutlinks int

	// MaxURL is the length in bytes above which a link is left out, and counted
	// in OutlinksCut. The default is 4096, which is Nutch's
	// db.max.outlink.length. In addition, all links of a page together are
	// limited to 8 MiB.
	MaxURL int

	// MaxText is how many bytes of text are kept. The default is 4 MiB. A page
	// that has more is still read to its end, for its links, and marked as
	// truncated.
	MaxText int

	// MaxTitle is how many bytes of the title are kept. The default is 1000.
	MaxTitle int

	// MaxAnchor is how many bytes of the text of a link are kept. The default
	// is 100, which on the same pages cuts 0.2 % of the anchors; Nutch's
	// linkdb.max.anchor.length is 100 characters.
	MaxAnchor int

	// MaxMeta is how many properties of a page are kept, each value cut at 4096
	// bytes. The default is 250.
	MaxMeta int

	// Timeout is how long a page may take. What was found by then is returned,
	// marked as truncated. The default is 30 s, which is Nutch's parser.timeout.
	Timeout time.Duration

	// Images treats the pictures of a page as links.
	Images bool

	// FollowResources treats what a page needs to be displayed as links: style
	// sheets, scripts, icons, media.
	FollowResources bool

	// NutchCompat finds the links, title and text that Nutch's parse-html
	// finds. Links are each a and area with a href; each frame, iframe, script,
	// img and source with a src; and each link element with a href, whatever
	// its rel. Duplicates, links to the page itself and fragments are kept. An
	// a element without content is no link, and neither is one whose rel
	// contains the word nofollow; ugc and sponsored make no difference. URLs
	// are resolved as java.net.URL does. Meta elements count in the head only,
	// headers not at all; robots directives are recognized by substrings, and a
	// refresh has to be written without blanks. The texts of adjacent elements
	// are separated by a space, white space between elements ends a line, and
	// the contents of noscript and template are text. Agent, Images,
	// FollowResources and Schemes are then ignored. The charset is determined
	// as without it.
	NutchCompat bool
	// FormAction makes links of forms not sent by post, and elements listed in
	// IgnoreTags are no links; both with NutchCompat only. (Nutch:
	// parser.html.form.use_action, parser.html.outlinks.ignore_tags.)
	FormAction bool
	IgnoreTags []string

	// Schemes are the schemes of links, in lower case. Nil means http, https
	// and ftp, and also file if the page itself is a file: a web page has no
	// business on our disk.
	Schemes []string
}

// Parse reads the page. It fails only if the context was done before it began,
// with an error that is ctx.Err().
//
// Charset: a byte order mark decides, or else the Content-Type, or else a meta
// element or XML declaration in the first 1024 bytes. Without these, the
// charset is UTF-8 if the body is valid UTF-8; else what a later meta element
// says; else windows-1252. Invalid bytes become U+FFFD.
//
// Text has one line per block (a paragraph, a row of a table), with its white
// space folded. It excludes the title and the content of script, style,
// textarea, noscript, noframes, iframe and template.
//
// A target that occurs more than once is one link, at the place of its first
// occurrence. Its anchor is the first that is not empty. It is NoFollow if all
// its occurrences are, by rel=nofollow, ugc or sponsored, or if the page is.
//
// Meta holds the meta elements that have a name or a property, by lower-case
// name; "content-language", if given as http-equiv; and as "lang" the language
// of the html element.
//
// A refresh that leads to the page itself, or is inside noscript, is left out.
func (p *Parser) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	if err := ctx.Err(); err != nil {
		return page.Parsed{}, fmt.Errorf("htmlparse: %s: %w", c.URL, err)
	}
	lim := p.limits()
	body, enc, name := decode(c.Body, c.Type, true)
	stop := &stopper{ctx: ctx}
	if lim.timeout > 0 {
		stop.deadline = time.Now().Add(lim.timeout)
	}
	if p.NutchCompat {
		out, err := p.parseNutch(c, &lim, newReader(body, enc, stop))
		out.Charset = name
		out.Truncated = out.Truncated || stop.stopped
		return out, err
	}
	utf8 := readAll(body, enc, stop)
	s := newScan(&lim, c)
	s.run(utf8, stop)
	if s.again {
		// The first base element came after something had been resolved without
		// it. Reading again happens only once, as there is only one first base
		// element.
		base := s.res.Base
		s = newScan(&lim, c)
		s.res.Base, s.baseSet = base, true
		s.run(utf8, stop)
	}
	out := s.finish()
	out.Charset = name
	if stop.stopped {
		out.Truncated = true
	}
	return out, nil
}

// Mux returns a Mux that reads HTML and XHTML with p and plain text with the
// same limits. A nil p means the zero Parser.
func Mux(p *Parser) parse.Mux {
	if p == nil {
		p = &Parser{}
	}
	return parse.Mux{
		"text/html":             p,
		"application/xhtml+xml": p,
		"text/plain":            &Text{MaxText: p.MaxText},
	}
}

// limits are the fields of a Parser with the defaults filled in; an absent
// limit is a very large number.
type limits struct {
	outlinks, url, text, title, anchor, meta int
	timeout                                  time.Duration
	products                                 []string
	images, resources                        bool
	schemes                                  []string
}

func (p *Parser) limits() limits {
	return limits{
		outlinks:  limit(p.MaxOutlinks, defaultMaxOutlinks),
		url:       limit(p.MaxURL, defaultMaxURL),
		text:      limit(p.MaxText, defaultMaxText),
		title:     limit(p.MaxTitle, defaultMaxTitle),
		anchor:    limit(p.MaxAnchor, defaultMaxAnchor),
		meta:      limit(p.MaxMeta, defaultMaxMeta),
		timeout:   limit(p.Timeout, defaultTimeout),
		products:  directives.Products([]string{p.Agent}),
		images:    p.Images,
		resources: p.FollowResources,
		schemes:   p.Schemes,
	}
}

// none is larger than any body and leaves room to add to it.
const none = min(1<<31, math.MaxInt/2)

func limit[T int | time.Duration](n, def T) T {
	switch {
	case n == 0:
		return def
	case n < 0:
		if _, ok := any(n).(time.Duration); ok {
			return 0
		}
		return none
	}
	return n
}
