// Package parse reads pages. Its contract, [Parser], turns the bytes of a page
// into text, links and properties; [Mux] picks a parser by the media type. It contains no parser: the
// stock one for HTML is parse/htmlparse, where a reader starts.
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

// ErrUnsupported says that no parser reads content of that type. The page is
// not at fault.
var ErrUnsupported = errors.New("parse: unsupported content type")

// A Parser reads content of some types.
//
// It is called from many goroutines at once, on bytes chosen by strangers: it
// must not panic, and must bound its time and memory by the size of the body
// and its own limits. On reaching a limit, it returns what it has found, marked
// as truncated. It neither retains nor changes the body.
//
// Cancellation: once the context is done it returns soon, within a second
// however long the page is, either with what it has found, marked as truncated,
// or with an error that is ctx.Err(). So it must check the context repeatedly.
// The caller waits for it: a parser that does not check occupies a worker of
// the fetch.
//
// Errors: an error says that nothing useful could be read. It fails that page
// only.
type Parser interface {
	// Parse reads content. Outlinks are absolute and distinct, in the order of
	// the page. All strings are valid UTF-8.
	Parse(ctx context.Context, c *page.Content) (page.Parsed, error)
}

// Mux picks a parser by media type: "text/html", or "text/*" for types without
// an entry of their own. It is a Parser.
type Mux map[string]Parser

// Parse calls the parser for the media type of the content, or returns an error
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
// parameters: the one that was sent or, if there was none, the one that the
// first 512 bytes look like.
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
