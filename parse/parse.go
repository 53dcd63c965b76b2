// Package parse reads pages. Its contract, [Parser], turns the bytes of a page
// into text, links and properties; [Mux] picks a parser by the media type. The
// stock parser for HTML is parse/htmlparse.
package parse

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/recrawl/recrawl/page"
)

// ErrUnsupported says that no parser reads content of that type. It is no
// failure of the page.
var ErrUnsupported = errors.New("parse: unsupported content type")

// A Parser reads content of some types.
//
// It is called from many goroutines at once, on bytes chosen by strangers: it
// must not panic, and must bound its time and memory by the size of the body and
// limits of its own. What it found before a limit, it returns, marked as
// truncated. It keeps nothing of the body and does not change it.
//
// Cancellation: when the context is done it returns soon, within a second however
// long the page is, with what it has found, marked as truncated, or with an error
// that is ctx.Err(). So it looks at the context again and again while it works.
// Who calls it waits for it: one that does not look keeps a worker of the fetch.
//
// Errors: an error says that nothing of use could be read. It fails that page
// only.
type Parser interface {
	// Parse reads content. Outlinks are absolute and distinct, in the order of
	// the page. All strings are valid UTF-8.
	Parse(ctx context.Context, c *page.Content) (page.Parsed, error)
}

// Mux picks a parser by media type: "text/html", or "text/*" for what has no
// entry of its own. It is a Parser.
type Mux map[string]Parser

// Parse asks the parser for the media type of the content, or returns an error
// that is ErrUnsupported.
func (m Mux) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	t := MediaType(c)
	p, ok := m[t]
	if !ok {
		major, _, _ := strings.Cut(t, "/")
		p, ok = m[major+"/*"]
	}
	if !ok {
		return page.Parsed{}, fmt.Errorf("%w %q", ErrUnsupported, t)
	}
	return p.Parse(ctx, c)
}

// MediaType returns the media type of content in lower case and without
// parameters: the one that was sent or, if none was, what the first 512 bytes
// look like.
func MediaType(c *page.Content) string {
	if t, _, err := mime.ParseMediaType(c.Type); err == nil || errors.Is(err, mime.ErrInvalidMediaParameter) {
		return t
	}
	if t, _, _ := strings.Cut(c.Type, ";"); strings.Contains(t, "/") {
		return strings.ToLower(strings.TrimSpace(t))
	}
	t, _, _ := strings.Cut(http.DetectContentType(c.Body[:min(len(c.Body), 512)]), ";")
	return t
}
