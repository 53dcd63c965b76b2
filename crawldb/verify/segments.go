package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
)

var (
	errNote     = errors.New("not a list of URLs")
	errContents = errors.New("the visits are complete, but this part is not")
	errParses   = errors.New("it is complete, but the texts or properties of the pages are not")
	errShort    = errors.New("it has fewer blocks than the visits")
	errLong     = errors.New("it has more blocks than the visits, which are complete")
	errPages    = errors.New("it has a page that the same block of the visits lacks, or has in another place")
	errNoVisits = errors.New("it has a mark of an update, but its visits are not complete")
	errNotDone  = errors.New("its round is done, but its update is not")
	errMark     = errors.New("invalid mark")
	errMissing  = errors.New("it is missing")
)

// segments checks all segments and returns their names; nil if there is no segment
// store.
func (c *Check) segments(ctx context.Context, s Stores) (map[string]bool, error) {
	if s.Segments == nil {
		return nil, nil
	}
	names := map[string]bool{}
	for name, err := range s.Segments.List(ctx) {
		if err != nil {
			if stopped(ctx, err) {
				return nil, err
			}
			c.Damage(err)
			break
		}
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.Report.Segments++
		if err := c.segment(ctx, s, name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// part is what read has found out about a part.
type part struct {
	info    segment.Info
	there   bool
	damaged bool
}

func (c *Check) segment(ctx context.Context, s Stores, name string) error {
	list, lists, listed, err := c.list(ctx, s.Segments, name)
	if err != nil {
		return err
	}
	whole, err := c.parts(ctx, s.Segments, name, func(part string) string { return part })
	if err != nil {
		return err
	}
	c.missing(name, list, whole)
	for i := range lists {
		if _, err := c.parts(ctx, s.Segments, name, func(part string) string { return segment.ListPart(part, i) }); err != nil {
			return err
		}
		if err := c.plain(ctx, s.Segments, name, segment.ListPart("list", i), anyBlock); err != nil {
			return err
		}
	}
	if err := c.plain(ctx, s.Segments, name, "lists", anyBlock); err != nil {
		return err
	}
	if err := c.plain(ctx, s.Segments, name, "leases", urlBlock); err != nil {
		return err
	}
	if s.Crawl == nil {
		return nil
	}
	if err := c.marks(ctx, s.Crawl, name, whole[segment.FetchPart]); err != nil {
		return err
	}
	if list.info.Committed && !list.damaged && !c.folded[name] {
		slices.Sort(listed)
		c.listed[name] = listed
	}
	return nil
}

// list reads the fetch list, and returns the number of lists in it if that is more
// than one, and hashes of its URLs.
func (c *Check) list(ctx context.Context, s segment.Store, name string) (part, int, []uint64, error) {
	lists := 0
	var listed []uint64
	p, err := read(ctx, c, s, name, segment.GeneratePart, func(_ int, block []crawldb.Datum) error {
		for i := range block {
			listed = append(listed, maphash.String(c.seed, block[i].URL))
			t, err := segment.TakePlacement(&block[i])
			if err != nil {
				return err
			}
			if t.Lists > 1 {
				lists = max(lists, t.Lists)
			}
		}
		return nil
	})
	return p, min(lists, 1<<16), listed, err
}

// missing reports parts that must exist because others do: a fetch or a parser opens
// all its parts before it syncs or completes the first, which makes all their names
// durable. A damaged part counts as complete: only a complete part is refused as a
// whole.
func (c *Check) missing(name string, list part, all map[string]part) {
	if list.there && !list.damaged && !list.info.Committed {
		return // an unfinished merge, which the next opening of the crawl removes
	}
	complete := func(p part) bool { return p.there && (p.damaged || p.info.Committed) }
	needs := func(kind string, since bool, other string) {
		there := all[kind].there
		if kind == segment.GeneratePart {
			there = list.there
		}
		if since && !there {
			c.Add(Finding{Offset: -1, Block: -1, Segment: name, Part: kind, Err: fmt.Errorf("%w, but %s exists", errMissing, other)})
		}
	}
	visits, contents, parses := all[segment.FetchPart], all[segment.ContentPart], all[segment.ParsePart]
	// A fetch writes its visits last, and a parser its parses.
	visited, parsed := complete(visits) || visits.info.Blocks > 0, complete(parses) || parses.info.Blocks > 0
	other := segment.FetchPart
	if !visited {
		other = segment.ContentPart
	}
	needs(segment.GeneratePart, visited || complete(contents), other)
	needs(segment.ContentPart, visited, segment.FetchPart)
	needs(segment.FetchPart, complete(contents), segment.ContentPart)
	other = segment.ParsePart
	for _, kind := range []string{segment.ParseDataPart, segment.ParseTextPart} {
		if !parsed && complete(all[kind]) {
			parsed, other = true, kind
		}
	}
	for _, kind := range []string{segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart} {
		needs(kind, parsed, other)
	}
}

// parts checks the parts of a fetch and of a parser against the visits.
func (c *Check) parts(ctx context.Context, s segment.Store, name string, named func(string) string) (map[string]part, error) {
	all := map[string]part{}
	pages := pages{seed: c.seed}
	visits, err := read(ctx, c, s, name, named(segment.FetchPart), func(_ int, block []segment.Visit) error {
		pages.add(block)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all[segment.FetchPart] = visits
	if !visits.there || visits.damaged {
		pages.blocks = nil
	}
	for _, read := range []func() (string, part, error){
		beside(ctx, c, s, name, named, &pages, segment.ContentPart, func(r *page.Content) string { return r.URL }),
		beside(ctx, c, s, name, named, &pages, segment.ParseTextPart, func(r *segment.Text) string { return r.URL }),
		beside(ctx, c, s, name, named, &pages, segment.ParseDataPart, func(r *segment.Data) string { return r.URL }),
		beside(ctx, c, s, name, named, &pages, segment.ParsePart, func(r *segment.Parse) string { return r.URL }),
		beside(ctx, c, s, name, named, &pages, segment.EventPart, func(r *segment.Event) string { return r.URL }),
	} {
		kind, p, err := read()
		if err != nil {
			return nil, err
		}
		all[kind] = p
	}
	wrong := func(kind string, err error) {
		c.Add(Finding{Offset: -1, Block: -1, Segment: name, Part: named(kind), Err: err})
	}
	parses := all[segment.ParsePart]
	complete := func(kind string) bool { return all[kind].info.Committed }
	if visits.there && !visits.damaged {
		for _, kind := range []string{segment.ContentPart, segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart, segment.EventPart} {
			p := all[kind]
			if kind == segment.ContentPart && visits.info.Committed && p.there && !p.damaged && !p.info.Committed {
				wrong(kind, errContents)
			}
			if !p.there || p.damaged {
				continue
			}
			// Parsing may come later, and then starts from the beginning.
			if p.info.Blocks < visits.info.Blocks && (kind == segment.ContentPart || p.info.Committed) {
				wrong(kind, fmt.Errorf("%w: %d of %d", errShort, p.info.Blocks, visits.info.Blocks))
			}
			if p.info.Blocks > visits.info.Blocks && visits.info.Committed {
				wrong(kind, fmt.Errorf("%w: %d of %d", errLong, p.info.Blocks, visits.info.Blocks))
			}
		}
	}
	if parses.there && parses.info.Committed {
		for _, kind := range []string{segment.ParseTextPart, segment.ParseDataPart} {
			if all[kind].there && !all[kind].damaged && !complete(kind) {
				wrong(segment.ParsePart, errParses)
			}
		}
	}
	return all, nil
}

// beside returns a function that reads a part and demands that each block has only
// pages of the same block of the visits.
func beside[T segment.Record](ctx context.Context, c *Check, s segment.Store, name string, named func(string) string, pages *pages, kind string, url func(*T) string) func() (string, part, error) {
	return func() (string, part, error) {
		p, err := read(ctx, c, s, name, named(kind), func(k int, block []T) error {
			return pages.has(k, len(block), func(i int) string { return url(&block[i]) })
		})
		return kind, p, err
	}
}

// pages holds hashes of the URLs in each block of the visits.
type pages struct {
	seed   maphash.Seed
	blocks [][]uint64
}

func (p *pages) add(block []segment.Visit) {
	h := make([]uint64, len(block))
	for i := range block {
		h[i] = maphash.String(p.seed, block[i].URL)
	}
	p.blocks = append(p.blocks, h)
}

// has checks that a block has only pages of the same block of the visits, in the same
// order.
func (p *pages) has(k, n int, url func(int) string) error {
	if k >= len(p.blocks) {
		return nil
	}
	rest := p.blocks[k]
	for i := range n {
		at := slices.Index(rest, maphash.String(p.seed, url(i)))
		if at < 0 {
			return fmt.Errorf("%w: %q", errPages, url(i))
		}
		rest = rest[at+1:]
	}
	return nil
}

// read reads a part and calls f with each block. After a damaged block it continues, if
// the store can.
func read[T segment.Record](ctx context.Context, c *Check, s segment.Store, name, kind string, f func(k int, block []T) error) (part, error) {
	var p part
	info, err := s.Stat(ctx, name, kind)
	if errors.Is(err, segment.ErrNotFound) {
		return p, nil
	}
	p.there = true
	if p.info = info; err != nil {
		if stopped(ctx, err) {
			return p, err
		}
		p.damaged = true
		c.at(name, kind, -1, err)
		return p, nil
	}
	c.Report.Parts++
	told := map[string]bool{}
	for k := 0; ; {
		var failed error
		for block, err := range segment.PartialOf[T](ctx, s, name, kind, k) {
			if failed = err; err != nil {
				break
			}
			if err := f(k, block); err != nil {
				c.at(name, kind, k, err)
			}
			k++
			c.Report.SegmentBlocks++
			c.Report.SegmentRecords += int64(len(block))
			if err := c.Step(ctx); err != nil {
				return p, err
			}
		}
		if failed == nil {
			if k < info.Blocks && !p.damaged {
				c.at(name, kind, k, fmt.Errorf("only %d of %d blocks can be read", k, info.Blocks))
			}
			return p, nil
		}
		if stopped(ctx, failed) {
			return p, failed
		}
		p.damaged = true
		text := failed.Error()
		if told[text] { // the store cannot continue
			return p, nil
		}
		told[text] = true
		c.at(name, kind, k, failed)
		if k++; k >= info.Blocks {
			return p, nil
		}
	}
}

// at reports a finding in a block of a part.
func (c *Check) at(name, kind string, block int, err error) {
	f := finding(err)
	f.Segment, f.Part, f.Block = name, kind, block
	c.Add(f)
}

func anyBlock([]byte) error { return nil }

// urlBlock checks a block of a note of leases.
func urlBlock(block []byte) error {
	for len(block) > 0 {
		n, size := binary.Uvarint(block)
		if size <= 0 || n > uint64(len(block)-size) {
			return errNote
		}
		block = block[size+int(n):]
	}
	return nil
}

// plain reads a part that holds no records.
func (c *Check) plain(ctx context.Context, s segment.Store, name, kind string, f func([]byte) error) error {
	if _, err := s.Stat(ctx, name, kind); errors.Is(err, segment.ErrNotFound) {
		return nil
	}
	c.Report.Parts++
	k := 0
	for block, err := range s.Read(ctx, name, kind, 0) {
		if err == nil {
			err = f(block)
		}
		if err != nil {
			if stopped(ctx, err) {
				return err
			}
			c.at(name, kind, k, err)
			return nil
		}
		k++
		c.Report.SegmentBlocks++
	}
	return c.Step(ctx)
}

// marks checks the progress marks of a segment.
func (c *Check) marks(ctx context.Context, s crawldb.Store, name string, visits part) error {
	var mark [2]string
	for i, job := range []string{"update/" + name, segment.RoundMark(name)} {
		var err error
		if mark[i], err = s.Mark(ctx, job); err != nil {
			if stopped(ctx, err) {
				return err
			}
			c.at(name, "", -1, err)
			return nil
		}
	}
	wrong := func(err error) { c.Add(Finding{Offset: -1, Block: -1, Segment: name, Err: err}) }
	updated, round := mark[0], mark[1]
	c.folded[name] = updated == "done"
	switch {
	case updated == "" || updated == "done" || updated == "folded" || strings.HasPrefix(updated, "at "):
	default:
		wrong(fmt.Errorf("%w: update: %q", errMark, updated))
	}
	if updated != "" && !visits.damaged && !visits.info.Committed {
		wrong(errNoVisits)
	}
	if r, err := segment.ParseRound(round); err != nil || !visits.damaged && r.Delivered > visits.info.Blocks {
		wrong(fmt.Errorf("%w: round: %q", errMark, round))
	}
	if round != "" && updated != "done" {
		wrong(errNotDone)
	}
	return nil
}
