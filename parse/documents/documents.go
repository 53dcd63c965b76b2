// Package documents reads PDF, Word, PowerPoint, Excel, OpenDocument, EPUB and Markdown: title, text and links, each in a
// budget of time and memory. It reads no pictures and no encrypted files, and runs no macro or script. Start
// with [Parser.With].
package documents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol/robots"
)

// ErrDocument says that a document cannot be read: it is damaged, encrypted or of a kind that is not known.
var ErrDocument = errors.New("documents: cannot read the document")

// Parser reads documents. The zero value is ready to use. Its fields must not change while it is in
// use; its methods may be called from many goroutines at once. In each limit zero means the default.
type Parser struct {
	// Timeout is how long a document may take; what was read by then is returned, as truncated. The
	// default is 30 seconds.
	Timeout time.Duration
	// MaxText is how many bytes of text are kept. The default is 4 MiB.
	MaxText int
	// MaxOutlinks is how many distinct links are kept. The default is 10,000.
	MaxOutlinks int
	// MaxUnpacked is how many bytes of an archive are unpacked in all. The default is 64 MiB.
	MaxUnpacked int64
	// PDFMemory is how many bytes one PDF may take, which the reader of PDF has to itself. The default is
	// 256 MiB.
	PDFMemory int64
	// PDFWorkers is how many PDF are read at once. The default is 1.
	PDFWorkers int

	mu     sync.Mutex
	pdf    *pdfReader // nil until the first PDF
	closed bool
}

// The media types of documents.
const (
	typePDF  = "application/pdf"
	typeDOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	typePPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	typeXLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	typeODT  = "application/vnd.oasis.opendocument.text"
	typeODP  = "application/vnd.oasis.opendocument.presentation"
	typeODS  = "application/vnd.oasis.opendocument.spreadsheet"
	typeEPUB = "application/epub+zip"
	typeZIP  = "application/zip"
)

// Mux returns the parser under each media type that it reads, and under application/zip, which some servers send for
// documents. It does not find llms.txt by its name, as With does.
func (p *Parser) Mux() parse.Mux {
	m := parse.Mux{}
	for _, t := range []string{typePDF, "application/x-pdf", typeDOCX, typePPTX, typeXLSX, typeODT, typeODP, typeODS, typeEPUB, typeZIP, typeMarkdown} {
		m[t] = p
	}
	return m
}

// With returns a parser that reads documents by p, a site's llms.txt as Markdown too, and all else by rest.
func (p *Parser) With(rest parse.Parser) parse.Parser { return &combined{p.Mux(), rest} }

type combined struct {
	documents parse.Mux
	rest      parse.Parser
}

func (c *combined) Parse(ctx context.Context, content *page.Content) (page.Parsed, error) {
	p := c.documents[parse.MediaType(content)]
	if p == nil && isLLMsTxt(content.URL) {
		p = c.documents[typeMarkdown]
	}
	if p != nil {
		return p.Parse(ctx, content)
	}
	return c.rest.Parse(ctx, content)
}

// Close ends the reader of PDF, which takes about 300 MB once there was one.
func (p *Parser) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.pdf == nil {
		return nil
	}
	return p.pdf.close()
}

// Parse reads a document.
func (p *Parser) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	timeout := p.Timeout
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d := &document{
		ctx: limited, content: c, maxText: orDefault(p.MaxText, 4<<20), maxLinks: orDefault(p.MaxOutlinks, 10_000),
		unpacked: orDefault(p.MaxUnpacked, 64<<20), seen: map[string]bool{},
	}
	d.self, _ = parse.Resolve(c.URL, "")
	d.parsed.Directives = robots.ParseHeader([]string{c.Robots}).At(c.Time)
	d.parsed.Truncated = c.Truncated
	err := d.read(p)
	if ctx.Err() != nil {
		return page.Parsed{}, ctx.Err()
	}
	found := d.text.Len() > 0 || d.parsed.Title != ""
	if err != nil && !(found && (errors.Is(err, errLimit) || limited.Err() != nil || c.Truncated)) {
		if errors.Is(err, parse.ErrUnsupported) {
			return page.Parsed{}, err
		}
		return page.Parsed{}, fmt.Errorf("%w: %w", ErrDocument, err)
	}
	if err != nil {
		d.parsed.Truncated = true
	}
	d.parsed.Title = folded(d.parsed.Title)
	d.parsed.Text = strings.TrimSpace(strings.ToValidUTF8(d.text.String(), "\uFFFD"))
	return d.parsed, nil
}

func orDefault[T int | int64](n, byDefault T) T {
	if n <= 0 {
		return byDefault
	}
	return n
}

// errLimit ends the reading of a document at a limit.
var errLimit = errors.New("a limit was reached")

// document is the reading of one document.
type document struct {
	ctx      context.Context
	content  *page.Content
	self     string // the URL of the content without its fragment, as links to it are; empty if it is invalid
	maxText  int
	maxLinks int
	unpacked int64 // bytes that may still be unpacked

	text   strings.Builder
	seen   map[string]bool
	parsed page.Parsed
}

func (d *document) read(p *Parser) error {
	if parse.MediaType(d.content) == typeMarkdown || isLLMsTxt(d.content.URL) {
		return d.readMarkdown()
	}
	if isPDF(d.content.Body) {
		r, err := p.pdfReader()
		if err != nil {
			return err
		}
		return r.read(d)
	}
	return d.readArchive()
}

// isPDF reports whether a body is a PDF, which may begin with other bytes.
func isPDF(body []byte) bool {
	return strings.Contains(string(body[:min(len(body), 1024)]), "%PDF-")
}

// add adds text.
func (d *document) add(text string) error {
	if room := d.maxText - d.text.Len(); len(text) > room {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		d.text.WriteString(text[:max(room, 0)])
		return errLimit
	}
	d.text.WriteString(text)
	return nil
}

// end ends a word, a cell or a line, unless that was done.
func (d *document) end(separator string) error {
	s := d.text.String()
	if s == "" || strings.HasSuffix(s, "\n") || strings.HasSuffix(s, separator) {
		return nil
	}
	return d.add(separator)
}

const maxURL = 4096

// link adds the target of a link to the web; others are left out.
func (d *document) link(target, anchor string) {
	if target = strings.TrimSpace(target); target == "" || len(target) > maxURL || !utf8.ValidString(target) {
		return
	}
	u, ok := parse.Resolve(d.content.URL, target, "http", "https")
	if u, _, _ = strings.Cut(u, "#"); !ok || u == d.self || d.seen[u] {
		return
	}
	if len(d.parsed.Outlinks) >= d.maxLinks {
		d.parsed.OutlinksCut++
		return
	}
	d.seen[u] = true
	anchor = folded(anchor)
	for n := 100; len(anchor) > 100; n-- {
		if utf8.RuneStart(anchor[n]) {
			anchor = anchor[:n]
		}
	}
	d.parsed.Outlinks = append(d.parsed.Outlinks, page.Outlink{URL: u, Anchor: anchor, NoFollow: d.parsed.NoFollow})
}

// folded returns a text in valid UTF-8 with white space folded.
func folded(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
}

const maxMeta = 250

func (d *document) meta(name, value string) {
	value = folded(value)
	if value != "" && len(value) < 10_000 && len(d.parsed.Meta) < maxMeta {
		d.parsed.Meta = append(d.parsed.Meta, page.Property{Name: name, Value: value})
	}
}
