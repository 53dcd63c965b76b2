package merge

import (
	"context"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
)

// blockBytes is about the most bytes of contents and texts in one block, unless
// a single page has more.
const blockBytes = 8 << 20

// output writes one segment. Block k of its parts holds the same pages, as
// package segment requires; the fetch list has its own blocks.
type output struct {
	name  string
	block int // pages in a block

	listed   part[crawldb.Datum]
	visits   part[segment.Visit]
	contents part[page.Content]
	texts    part[segment.Text]
	data     part[segment.Data]
	parses   part[segment.Parse]
	pages    int // in the current block
	bytes    int
}

// part writes one part, unless no source has it.
type part[T segment.Record] struct {
	w    *segment.Writer[T]
	recs []T
}

// partOfAny is a part of records of any type.
type partOfAny interface {
	open(ctx context.Context, s segment.Store, name string, parts map[string]bool) error
	flush(ctx context.Context) error
	commit(ctx context.Context) error
	close()
}

func openOutput(ctx context.Context, s segment.Store, name string, parts map[string]bool, block int) (*output, error) {
	out := &output{name: name, block: block}
	err := out.listed.open(ctx, s, name, parts)
	if err == nil && out.listed.w != nil {
		// A segment that has visits but no fetch list has lost the list and is not one
		// being made, so the name of the list is durable before there are any visits.
		err = out.listed.w.Sync(ctx)
	}
	for _, p := range out.beside() {
		if err == nil {
			err = p.open(ctx, s, name, parts)
		}
	}
	return out, err
}

// beside returns the parts other than the fetch list, which go together block by block: the
// visits after what belongs to them.
func (out *output) beside() []partOfAny {
	return []partOfAny{&out.contents, &out.texts, &out.data, &out.parses, &out.visits}
}

func (p *part[T]) open(ctx context.Context, s segment.Store, name string, parts map[string]bool) (err error) {
	if parts[segment.PartOf[T]()] {
		p.w, err = segment.NewWriter[T](ctx, s, name, 0)
	}
	return err
}

func (p *part[T]) add(rec *T) {
	if rec != nil && p.w != nil {
		p.recs = append(p.recs, *rec)
	}
}

func (p *part[T]) flush(ctx context.Context) error {
	recs := p.recs
	if p.w == nil {
		return nil
	}
	err := p.w.Append(ctx, recs)
	clear(recs)
	p.recs = recs[:0]
	return err
}

func (p *part[T]) commit(ctx context.Context) error {
	if p.w == nil {
		return nil
	}
	return p.w.Commit(ctx)
}

func (p *part[T]) close() {
	if p.w != nil {
		p.w.Close()
	}
}

// add writes a page.
func (out *output) add(ctx context.Context, p *merged) error {
	if out.listed.add(p.listed); len(out.listed.recs) >= chunk {
		if err := out.listed.flush(ctx); err != nil {
			return err
		}
	}
	if *p == (merged{listed: p.listed}) {
		return nil
	}
	out.visits.add(p.visit)
	out.contents.add(p.content)
	out.texts.add(p.text)
	out.data.add(p.data)
	out.parses.add(p.parse)
	if p.content != nil {
		out.bytes += len(p.content.Body)
	}
	if p.text != nil {
		out.bytes += len(p.text.Text)
	}
	if out.pages++; out.pages >= out.block || out.bytes >= blockBytes {
		return out.flush(ctx)
	}
	return nil
}

// flush ends the current block in all parts.
func (out *output) flush(ctx context.Context) error {
	for _, p := range out.beside() {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	out.pages, out.bytes = 0, 0
	return nil
}

// commit completes the segment, the fetch list last.
func (out *output) commit(ctx context.Context, ready func(context.Context, string) error) error {
	if out.pages > 0 {
		if err := out.flush(ctx); err != nil {
			return err
		}
	}
	if len(out.listed.recs) > 0 {
		if err := out.listed.flush(ctx); err != nil {
			return err
		}
	}
	for _, p := range out.beside() {
		if err := p.commit(ctx); err != nil {
			return err
		}
	}
	if ready != nil {
		if err := ready(ctx, out.name); err != nil {
			return err
		}
	}
	return out.listed.commit(ctx)
}

// close discards what was not committed.
func (out *output) close() {
	out.listed.close()
	for _, p := range out.beside() {
		p.close()
	}
}
