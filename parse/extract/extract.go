// Package extract finds the main content of a page, as text and as Markdown, without the frame of
// menus, adverts and notices, and what the page says of itself: title, author, dates, language, OpenGraph,
// JSON-LD, microdata, tables. It fetches nothing, runs no script, and does not replace the parser of a crawl,
// which reads links. Start with [Extract]; [MainContent] compares pages by their main content.
//
// The main content is found by the density of text: each run of text speaks for the elements that hold it,
// short runs and links speak against them, and the element with the highest sum is chosen. What names of tags,
// roles, ids and classes call a part of the frame is left out, unless it holds most of the text of the page.
// A page without much running text, such as a list, is taken whole but for its frame.
//
// Time and memory are bounded by the size of the page, whatever is in it: see internal/dom.
package extract

import (
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/extract/internal/dom"
)

// timeout is how long a page may take; the parts found by then are returned.
const timeout = 10 * time.Second

// minText is the length in bytes below which a text is doubted, and others are tried.
const minText = 250

// Article has the main content and the properties of a page. All strings are valid UTF-8 with white space folded;
// one that is not known is empty. It is not changed after it was made; its methods may be called from many goroutines at once.
type Article struct {
	// URL is the URL of the page.
	URL string
	// Title is the headline, without the name of the site; Author has the names of the authors, separated
	// by a comma and a space.
	Title, Author string
	// Published and Modified are as the page says, in UTC if it names no zone. Zero if it does not say.
	Published, Modified time.Time
	// Language is a BCP 47 tag, as the page says.
	Language string
	// Canonical is the absolute URL that the page calls its own. Image is that of its picture.
	Canonical, Image string
	// Description is the summary of the page, Site the name of its site.
	Description, Site string
	// OpenGraph has the meta elements whose names begin with "og:", "article:", "product:" or "twitter:", in
	// the order of the page, at most 250.
	OpenGraph []page.Property
	// Text is the main content, a line for each block. It leaves out headline, author and date at
	// its start.
	Text string
	// Truncated says that a limit was reached before the end of the page.
	Truncated bool

	page *dom.Page
	main *measurer
	root int32
	wide int32 // root, or an element that holds it and counts for MainContent
	out  []bool
	runs []int
	data []any // of JSON-LD
}

// Extract reads HTML or XHTML. For other types the error is parse.ErrUnsupported. Otherwise it fails only if
// the context was done before it began, with an error that is ctx.Err(). Once the context is done, or after 10
// seconds, it returns what it has found, marked as truncated. It neither retains nor changes the body.
func Extract(ctx context.Context, c *page.Content) (*Article, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("extract: %s: %w", c.URL, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p, err := dom.Read(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("extract: %s: %w", c.URL, err)
	}
	p.UTF8 = nil // it may be the body
	a := &Article{URL: c.URL, Truncated: p.Truncated, page: p}
	a.readMeta()
	a.findMain()
	return a, nil
}

// findMain finds the main content. Attempts after the first are for pages with little text.
func (a *Article) findMain() {
	body := a.page.Doc.FirstChild.LastChild
	m := measure(body, false)
	root, out, wide := m.choose()
	a.take(m, root, out, m.trim(m.selected(root, out)))
	a.wide = wide
	if len(a.Text) < minText {
		all := measure(body, true)
		root, out, _ := all.choose()
		a.takeIfLonger(all, root, out)
		if len(a.Text) < minText {
			root, out := all.chooseAll()
			a.takeIfLonger(all, root, out)
		}
	}
	if len(a.Text) < minText {
		if t := a.articleBody(); len(t) > 2*len(a.Text) {
			a.main, a.Text = nil, t
		}
	}
}

func (a *Article) take(m *measurer, root int32, out []bool, runs []int) {
	a.main, a.root, a.wide, a.out, a.runs, a.Text = m, root, root, out, runs, m.textOf(runs)
}

func (a *Article) takeIfLonger(m *measurer, root int32, out []bool) {
	was := *a
	a.take(m, root, out, m.selected(root, out))
	if len(a.Text) <= 2*len(was.Text) {
		*a = was
	}
}

// resolve returns an absolute URL, or an empty string if it is not one of http or https.
func (a *Article) resolve(ref string) string {
	u, _ := a.page.Resolve(ref)
	return u
}
