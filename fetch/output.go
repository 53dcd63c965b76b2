package fetch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

// output is what a fetch writes to: the parts of the segment under key 0, or
// those of each list that it fetches.
type output struct {
	parts map[int]*parts
	lists *lists
}

// named returns the function that names the parts of a list.
func (o *output) named(list int) func(part string) string {
	if o.lists == nil {
		return wholeName
	}
	return func(part string) string { return segment.ListPart(part, list) }
}

func (o *output) parsing() bool {
	for _, p := range o.parts {
		return p.parsing // the same for all lists
	}
	return false
}

// eachParsed calls f with what was parsed of the pages visited before, in the order
// of the visits.
func (o *output) eachParsed(ctx context.Context, s segment.Store, name string, f func(list int, p *segment.Parse)) error {
	for _, i := range slices.Sorted(maps.Keys(o.parts)) {
		for block, err := range segment.PartialOf[segment.Parse](ctx, s, name, o.named(i)(segment.ParsePart), 0) {
			if err != nil {
				return err
			}
			for k := range block {
				f(i, &block[k])
			}
		}
	}
	return nil
}

// write appends a group to the parts it belongs to.
func (o *output) write(ctx context.Context, group []*visitResult) error {
	if o.lists == nil {
		return o.parts[0].write(ctx, group)
	}
	byList := map[int][]*visitResult{}
	for _, v := range group {
		byList[v.list] = append(byList[v.list], v)
	}
	for _, i := range slices.Sorted(maps.Keys(byList)) {
		if err := o.parts[i].write(ctx, byList[i]); err != nil {
			return err
		}
	}
	return nil
}

// commit completes the parts, or the lists.
func (o *output) commit(ctx context.Context) error {
	if o.lists == nil {
		return o.parts[0].commit(ctx)
	}
	for _, i := range slices.Sorted(maps.Keys(o.parts)) {
		if err := o.lists.complete(ctx, i, o.parts[i].parsing); err != nil {
			return err
		}
	}
	return nil
}

func (o *output) close() {
	for _, p := range o.parts {
		p.close()
	}
}

// open opens the parts to append to them, and records which URLs were visited.
func (l *loop) open(ctx context.Context) (*output, error) {
	s := l.segments
	if ok, err := segment.Has[segment.Visit](ctx, s, l.name); err != nil {
		return nil, err
	} else if ok {
		if err := emptyRest(ctx, s, l.name); err != nil {
			return nil, err
		}
		return nil, errComplete
	}
	if ok, err := segment.Has[crawldb.Datum](ctx, s, l.name); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("no fetch list: %w", segment.ErrNotFound)
	}
	var err error
	if l.lists, err = listsOf(ctx, s, l.name, &l.opts); err != nil {
		return nil, err
	}
	out := &output{parts: map[int]*parts{}, lists: l.lists}
	if err := l.openAll(ctx, out); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

// openAll opens the parts of the segment, or of each list that is not complete.
func (l *loop) openAll(ctx context.Context, out *output) error {
	l.visitedBefore = urlSet{}
	parsing := l.opts.Parser != nil
	if l.lists == nil {
		p, err := openParts(ctx, l.segments, l.name, wholeName, parsing, l.visitedBefore)
		if err != nil {
			return err
		}
		out.parts[0] = p
		return l.recallAllRedirects(ctx, out)
	}
	for _, i := range slices.Sorted(maps.Keys(l.lists.requested)) {
		if _, done, err := l.lists.done(ctx, i); err != nil {
			return err
		} else if done {
			l.lists.requested[i] = false
			continue
		}
		p, err := openParts(ctx, l.segments, l.name, out.named(i), parsing, l.visitedBefore)
		if err != nil {
			return fmt.Errorf("list %d: %w", i, err)
		}
		out.parts[i] = p
		parsing = parsing && p.parsing
	}
	for _, p := range out.parts {
		p.parsing = parsing
	}
	return l.recallAllRedirects(ctx, out)
}

// recallAllRedirects records where earlier visits lead.
func (l *loop) recallAllRedirects(ctx context.Context, out *output) error {
	if l.redirects == nil || len(l.visitedBefore) == 0 {
		return nil
	}
	for i := range out.parts {
		if err := l.recallRedirects(ctx, out.named(i), i, out.parsing()); err != nil {
			return err
		}
	}
	return nil
}
