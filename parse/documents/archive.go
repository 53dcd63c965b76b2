package documents

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
)

// archive is a document of files in ZIP.
type archive struct {
	*document
	files map[string]*zip.File
}

const maxFiles = 10_000

// readArchive reads the document that an archive is, by what is in it.
func (d *document) readArchive() error {
	z, err := zip.NewReader(bytes.NewReader(d.content.Body), int64(len(d.content.Body)))
	if err != nil {
		return err
	}
	a := archive{d, map[string]*zip.File{}}
	for _, f := range z.File[:min(len(z.File), maxFiles)] {
		if a.files[f.Name] == nil {
			a.files[f.Name] = f
		}
	}
	has := func(name string) bool { return a.files[name] != nil }
	switch {
	case has("word/document.xml"):
		return a.office(a.word)
	case has("ppt/presentation.xml"):
		return a.office(a.slides)
	case has("xl/workbook.xml"):
		return a.office(a.sheets)
	case has("META-INF/container.xml"):
		return a.book()
	case has("content.xml") && has("mimetype"):
		return a.openDocument()
	}
	return fmt.Errorf("%w: an archive without a document", parse.ErrUnsupported)
}

// open opens a file of the archive, within what may be unpacked.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.files[name]
	if f == nil {
		return nil, fmt.Errorf("there is no %s", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{&budgetReader{r: r, left: &a.unpacked}, r}, nil
}

// budgetReader reads until a budget is used up, and never a tag of more than maxTag bytes: a decoder of XML
// holds it whole, and each of its attributes takes several times its length.
type budgetReader struct {
	r     io.Reader
	left  *int64
	inTag bool
	tag   int
}

const maxTag = 256 << 10

func (b *budgetReader) Read(p []byte) (int, error) {
	if *b.left <= 0 {
		return 0, errLimit
	}
	n, err := b.r.Read(p[:min(int64(len(p)), *b.left)])
	*b.left -= int64(n)
	for _, c := range p[:n] {
		switch {
		case c == '<':
			b.inTag, b.tag = true, 0
		case c == '>':
			b.inTag = false
		case b.inTag:
			if b.tag++; b.tag > maxTag {
				return 0, errLimit
			}
		}
	}
	return n, err
}

const maxDepth = 1000

// each calls visit for each token of a file of XML: names are without their namespaces.
func (a *archive) each(name string, visit func(xml.Token) error) error {
	r, err := a.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	x := xml.NewDecoder(r)
	x.Strict, x.Entity = false, nil
	depth := 0
	for n := 0; ; n++ {
		if n%256 == 0 && a.ctx.Err() != nil {
			return a.ctx.Err()
		}
		t, err := x.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch t.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return errLimit
			}
		case xml.EndElement:
			depth--
		}
		if err := visit(t); err != nil {
			return err
		}
	}
}

// attr returns the value of an attribute, by its local name.
func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// optional reads a file if there is one. What is wrong with it does not fail the document.
func (a *archive) optional(name string, visit func(xml.Token) error) error {
	if a.files[name] == nil {
		return nil
	}
	if err := a.each(name, visit); errors.Is(err, errLimit) || a.ctx.Err() != nil {
		return err
	}
	return nil
}

// properties reads the properties of a document: Dublin Core, in an element of their own each.
func (a *archive) properties(name string) error {
	at := ""
	return a.optional(name, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			at = t.Name.Local
		case xml.EndElement:
			at = ""
		case xml.CharData:
			switch text := string(t[:min(len(t), 10_000)]); at {
			case "title":
				if a.parsed.Title == "" {
					a.parsed.Title = text[:min(len(text), 1000)]
				}
			case "creator", "subject", "description", "keywords", "keyword", "language", "created", "modified", "date", "publisher", "identifier":
				a.meta(at, text)
			}
		}
		return nil
	})
}

func (a *archive) office(body func() error) error {
	if err := a.properties("docProps/core.xml"); err != nil {
		return err
	}
	return body()
}

// relations returns the targets outside of the document that a file refers to, by ID.
func (a *archive) relations(name string) (map[string]string, error) {
	targets := map[string]string{}
	err := a.optional(path.Dir(name)+"/_rels/"+path.Base(name)+".rels", func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "Relationship" && attr(e, "TargetMode") == "External" {
			targets[attr(e, "Id")] = attr(e, "Target")
		}
		return nil
	})
	return targets, err
}

func (a *archive) word() error {
	for _, name := range []string{"word/document.xml", "word/footnotes.xml", "word/endnotes.xml"} {
		if a.files[name] == nil {
			continue
		}
		if err := a.paragraphs(name); err != nil {
			return err
		}
	}
	return nil
}

// numbered returns the files with a name of prefix, number and ".xml", in the order of the numbers.
func (a *archive) numbered(prefix string) (names []string) {
	number := func(name string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, prefix), ".xml"))
		return n
	}
	for name := range a.files {
		if strings.HasPrefix(name, prefix) && number(name) > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(number(a)-number(b), strings.Compare(a, b)) })
	return names
}

func (a *archive) slides() error {
	for _, name := range a.numbered("ppt/slides/slide") {
		if err := a.paragraphs(name); err != nil {
			return err
		}
	}
	return nil
}

// paragraphs reads a file of WordprocessingML or DrawingML: text is in elements t, in paragraphs p.
func (a *archive) paragraphs(name string) error {
	targets, err := a.relations(name)
	if err != nil {
		return err
	}
	inText, link, linkFrom := false, "", 0
	return a.each(name, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "t":
				inText = true
			case "tab":
				return a.end("\t")
			case "br", "cr":
				return a.end("\n")
			case "hyperlink", "hlinkClick":
				link, linkFrom = targets[attr(t, "id")], a.text.Len()
				if t.Name.Local == "hlinkClick" { // it stands before its text
					a.link(link, "")
					link = ""
				}
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "t":
				inText = false
			case "tc":
				return a.end("\t")
			case "p", "tr":
				return a.end("\n")
			case "hyperlink":
				a.link(link, a.text.String()[linkFrom:])
				link = ""
			}
		case xml.CharData:
			if inText {
				return a.add(string(t))
			}
		}
		return nil
	})
}

const maxShared = 1_000_000

func (a *archive) sheets() error {
	var shared []string
	var item strings.Builder
	inText, total := false, 0
	err := a.optional("xl/sharedStrings.xml", func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			inText = t.Name.Local == "t"
			if t.Name.Local == "si" {
				item.Reset()
			}
		case xml.EndElement:
			inText = false
			if t.Name.Local == "si" && len(shared) < maxShared {
				shared = append(shared, item.String())
			}
		case xml.CharData:
			if total += len(t); inText && total < 4*a.maxText {
				item.Write(t)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = a.optional("xl/workbook.xml", func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "sheet" {
			return a.add(attr(e, "name") + "\n")
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range a.numbered("xl/worksheets/sheet") {
		if err := a.sheet(name, shared); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) sheet(name string, shared []string) error {
	targets, err := a.relations(name)
	if err != nil {
		return err
	}
	kind, inValue := "", false
	return a.each(name, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "c":
				kind = attr(t, "t")
			case "v", "t":
				inValue = true
			case "hyperlink":
				a.link(targets[attr(t, "id")], attr(t, "display"))
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "v", "t":
				inValue = false
			case "c":
				return a.end("\t")
			case "row":
				return a.end("\n")
			}
		case xml.CharData:
			if !inValue {
				return nil
			}
			if kind != "s" {
				return a.add(string(t))
			}
			if i, err := strconv.Atoi(string(t)); err == nil && 0 <= i && i < len(shared) {
				return a.add(shared[i])
			}
		}
		return nil
	})
}

func (a *archive) openDocument() error {
	if err := a.properties("meta.xml"); err != nil {
		return err
	}
	body, link, linkFrom := 0, "", 0
	return a.each("content.xml", func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "body":
				body++
			case "tab":
				return a.end("\t")
			case "s":
				return a.end(" ")
			case "line-break":
				return a.end("\n")
			case "a":
				link, linkFrom = attr(t, "href"), a.text.Len()
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "body":
				body--
			case "table-cell":
				return a.end("\t")
			case "p", "h", "table-row":
				return a.end("\n")
			case "a":
				a.link(link, a.text.String()[linkFrom:])
			}
		case xml.CharData:
			if body > 0 {
				return a.add(string(t))
			}
		}
		return nil
	})
}

// insideBook is the base of links in a book that lead to other files of it.
const insideBook = "http://book.invalid/"

// book reads the chapters of an EPUB in their order.
func (a *archive) book() error {
	root := ""
	if err := a.each("META-INF/container.xml", func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "rootfile" && root == "" {
			root = attr(e, "full-path")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := a.properties(root); err != nil {
		return err
	}
	files, spine := map[string]string{}, []string(nil)
	if err := a.each(root, func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok {
			switch e.Name.Local {
			case "item":
				files[attr(e, "id")] = attr(e, "href")
			case "itemref":
				spine = append(spine, attr(e, "idref"))
			}
		}
		return nil
	}); err != nil {
		return err
	}
	html := &htmlparse.Parser{MaxText: a.maxText}
	done := map[string]bool{}
	for _, id := range spine {
		name := path.Join(path.Dir(root), files[id])
		if done[name] || a.files[name] == nil {
			continue
		}
		done[name] = true
		r, err := a.open(name)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil && !errors.Is(err, errLimit) {
			return err
		}
		chapter, perr := html.Parse(a.ctx, &page.Content{URL: insideBook + name, Type: "application/xhtml+xml", Body: body})
		if perr == nil {
			if perr = a.add(chapter.Text); perr == nil {
				perr = a.end("\n")
			}
			for _, l := range chapter.Outlinks {
				if !strings.HasPrefix(l.URL, insideBook) {
					a.link(l.URL, l.Anchor)
				}
			}
		}
		if err = errors.Join(err, perr); err != nil {
			return err
		}
	}
	return nil
}
