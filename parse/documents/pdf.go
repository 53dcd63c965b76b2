package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// pdfReader reads PDF by PDFium, compiled to WebAssembly: a document that breaks it breaks only the
// memory of its own sandbox, which has no files and no network, and is thrown away after each document.
type pdfReader struct {
	pool pdfium.Pool
}

const wasmPage = 64 << 10

// pdfReader returns the reader, which takes seconds to be compiled the first time.
func (p *Parser) pdfReader() (*pdfReader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the parser is closed")
	}
	if p.pdf != nil {
		return p.pdf, nil
	}
	memory := min(orDefault(p.PDFMemory, 256<<20), 4<<30-wasmPage)
	pool, err := webassembly.Init(webassembly.Config{
		MaxTotal: orDefault(p.PDFWorkers, 1), FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard,
		RuntimeConfig: wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
			WithMemoryLimitPages(uint32(memory / wasmPage)).WithCloseOnContextDone(true),
	})
	if err != nil {
		return nil, err
	}
	p.pdf = &pdfReader{pool}
	return p.pdf, nil
}

func (r *pdfReader) close() error { return r.pool.Close() }

// read reads a document in a sandbox of its own, which is ended with the context of the document.
func (r *pdfReader) read(d *document) (err error) {
	in, err := r.pool.GetInstanceWithContext(d.ctx)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	stop := context.AfterFunc(d.ctx, func() { _ = in.Kill() })
	defer func() {
		if stop() {
			_ = in.Close()
		}
	}()
	doc, err := in.OpenDocument(&requests.OpenDocument{File: &d.content.Body})
	if err != nil {
		return err
	}
	for _, tag := range []string{"Title", "Author", "Subject", "Keywords", "CreationDate", "ModDate"} {
		if m, err := in.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: doc.Document, Tag: tag}); err == nil {
			if tag == "Title" {
				d.parsed.Title = m.Value[:min(len(m.Value), 1000)]
			} else {
				d.meta(strings.ToLower(tag), m.Value)
			}
		}
	}
	count, err := in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil {
		return err
	}
	for i := range count.PageCount {
		if d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		if err := d.pdfPage(in, doc.Document, i); err != nil {
			return err
		}
	}
	return nil
}

// pdfPage reads a page. One that is damaged is left out.
func (d *document) pdfPage(in pdfium.Pdfium, doc references.FPDF_DOCUMENT, i int) error {
	page := requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: i}}
	if text, err := in.GetPageText(&requests.GetPageText{Page: page}); err == nil {
		s := strings.NewReplacer("\r\n", "\n", "\x00", "", "\ufffe", "").Replace(text.Text)
		if err := d.add(s); err != nil {
			return err
		}
		if err := d.end("\n"); err != nil {
			return err
		}
	} else if d.ctx.Err() != nil {
		return d.ctx.Err()
	}
	for at, n := 0, 0; n < d.maxLinks; n++ {
		link, err := in.FPDFLink_Enumerate(&requests.FPDFLink_Enumerate{Page: page, StartPos: at})
		if err != nil || link.Link == nil || link.NextStartPos == nil || *link.NextStartPos <= at {
			return nil
		}
		at = *link.NextStartPos
		action, err := in.FPDFLink_GetAction(&requests.FPDFLink_GetAction{Link: *link.Link})
		if err != nil || action.Action == nil {
			continue
		}
		if uri, err := in.FPDFAction_GetURIPath(&requests.FPDFAction_GetURIPath{Document: doc, Action: *action.Action}); err == nil && uri.URIPath != nil {
			d.link(*uri.URIPath, "")
		}
	}
	return nil
}
