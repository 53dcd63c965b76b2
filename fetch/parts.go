package fetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
)

// errComplete says that there is nothing left to do in a segment.
var errComplete = errors.New("fetch: segment is complete")

// part writes one part. A part that an earlier run has completed ignores
// writes.
type part[T segment.Record] struct {
	w *segment.Writer[T] // nil if complete
}

// wholeName names the parts of a segment that is fetched as a whole.
func wholeName(part string) string { return part }

func openPart[T segment.Record](ctx context.Context, s segment.Store, name string, named func(string) string, keep int) (part[T], error) {
	w, err := segment.NewWriterTo[T](ctx, s, name, named(segment.PartOf[T]()), keep)
	if errors.Is(err, segment.ErrCommitted) {
		return part[T]{}, nil
	}
	return part[T]{w}, err
}

// write appends a block with what get returns for the visits of a group, and
// makes it durable.
func (p part[T]) write(ctx context.Context, group []*visitResult, get func(*visitResult) *T) error {
	if p.w == nil {
		return fmt.Errorf("%w: %s", segment.ErrCommitted, segment.PartOf[T]())
	}
	records := make([]T, 0, len(group))
	for _, v := range group {
		if r := get(v); r != nil {
			records = append(records, *r)
		}
	}
	if err := p.w.Append(ctx, records); err != nil {
		return err
	}
	return p.w.Sync(ctx)
}

func (p part[T]) commit(ctx context.Context) error {
	if p.w == nil {
		return nil
	}
	return p.w.Commit(ctx)
}

func (p part[T]) close() {
	if p.w != nil {
		p.w.Close()
	}
}

// parsedParts are the parts that a parser fills.
type parsedParts struct {
	texts  part[segment.Text]
	data   part[segment.Data]
	parses part[segment.Parse]
}

func parsedNames() []string {
	return []string{segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart}
}

func openParsed(ctx context.Context, s segment.Store, name string, named func(string) string, keep int) (p parsedParts, err error) {
	if p.texts, err = openPart[segment.Text](ctx, s, name, named, keep); err != nil {
		return p, err
	}
	if p.data, err = openPart[segment.Data](ctx, s, name, named, keep); err != nil {
		p.close()
		return p, err
	}
	if p.parses, err = openPart[segment.Parse](ctx, s, name, named, keep); err != nil {
		p.close()
	}
	return p, err
}

func (p *parsedParts) write(ctx context.Context, group []*visitResult) error {
	if err := p.texts.write(ctx, group, func(v *visitResult) *segment.Text { return v.text }); err != nil {
		return err
	}
	if err := p.data.write(ctx, group, func(v *visitResult) *segment.Data { return v.data }); err != nil {
		return err
	}
	return p.parses.write(ctx, group, func(v *visitResult) *segment.Parse { return v.parse })
}

func (p *parsedParts) commit(ctx context.Context) error {
	if err := p.texts.commit(ctx); err != nil {
		return err
	}
	if err := p.data.commit(ctx); err != nil {
		return err
	}
	return p.parses.commit(ctx)
}

func (p *parsedParts) close() {
	p.texts.close()
	p.data.close()
	p.parses.close()
}

// parts writes the parts of a fetch in parallel: block k of each belongs to the
// same visits.
type parts struct {
	visits   part[segment.Visit]
	contents part[page.Content]
	parsed   parsedParts
	parsing  bool
}

// commonBlocks returns how many blocks all of the named parts have. A complete
// part takes no more blocks, so if it has more than that, another has lost
// some, and nothing can be appended.
func commonBlocks(ctx context.Context, s segment.Store, name string, names []string) (int, error) {
	common, least := -1, ""
	complete := map[string]int{}
	for _, p := range names {
		info, err := s.Stat(ctx, name, p)
		if err != nil && !errors.Is(err, segment.ErrNotFound) {
			return 0, err
		}
		if err != nil {
			info.Blocks = 0
		}
		if common < 0 || info.Blocks < common {
			common, least = info.Blocks, p
		}
		if info.Committed {
			complete[p] = info.Blocks
		}
	}
	for _, p := range names {
		if n := complete[p]; n > common {
			return 0, &segment.CorruptError{File: name + "/" + least, Offset: int64(common), Err: fmt.Errorf("it has %d blocks, and %s is complete with %d", common, p, n)}
		}
	}
	return common, nil
}

// openParts opens the parts, whose names are given by named, after the last
// block that all of them have, and adds the URLs of earlier visits to seen. A
// fetch that began without a parser continues without one: what it has is kept.
func openParts(ctx context.Context, s segment.Store, name string, named func(string) string, parsing bool, seen urlSet) (*parts, error) {
	keep, err := commonBlocks(ctx, s, name, []string{named(segment.ContentPart), named(segment.FetchPart)})
	if err != nil {
		return nil, err
	}
	if parsing {
		// The visits are written last, so if no part is ahead of them a parser
		// was at work.
		var names []string
		for _, p := range parsedNames() {
			names = append(names, named(p))
		}
		n, err := commonBlocks(ctx, s, name, names)
		if err != nil {
			return nil, err
		}
		parsing = n >= keep
	}
	if n := 0; keep > 0 {
		for block, err := range segment.PartialOf[segment.Visit](ctx, s, name, named(segment.FetchPart), 0) {
			if err != nil {
				return nil, err
			}
			for _, v := range block {
				seen.add(v.URL)
			}
			if n++; n == keep {
				break
			}
		}
	}
	w := &parts{parsing: parsing}
	if w.contents, err = openPart[page.Content](ctx, s, name, named, keep); err == nil && parsing {
		w.parsed, err = openParsed(ctx, s, name, named, keep)
	}
	if err == nil {
		w.visits, err = openPart[segment.Visit](ctx, s, name, named, keep)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// write appends a group to all parts and makes it durable, the visits last: a
// visit that is kept has all of its parts.
func (w *parts) write(ctx context.Context, group []*visitResult) error {
	if err := w.contents.write(ctx, group, func(v *visitResult) *page.Content { return v.content }); err != nil {
		return err
	}
	if w.parsing {
		if err := w.parsed.write(ctx, group); err != nil {
			return err
		}
	}
	return w.visits.write(ctx, group, func(v *visitResult) *segment.Visit { return &v.visit })
}

// commit completes the parts, the visits last.
func (w *parts) commit(ctx context.Context) error {
	if err := w.contents.commit(ctx); err != nil {
		return err
	}
	if w.parsing {
		if err := w.parsed.commit(ctx); err != nil {
			return err
		}
	}
	return w.visits.commit(ctx)
}

func (w *parts) close() {
	w.contents.close()
	w.parsed.close()
	w.visits.close()
}
