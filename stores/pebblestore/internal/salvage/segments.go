package salvage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

// keptSegment is what was kept of a segment.
type keptSegment struct {
	blocks []int           // of the visits, by their old numbers
	listed map[uint64]bool // hashes of the listed URLs if a part of the list was lost; otherwise nil
	seed   maphash.Seed
}

// before returns how many of the first n blocks were kept.
func (k *keptSegment) before(n int) int {
	at, _ := slices.BinarySearch(k.blocks, n)
	return at
}

// lists reports whether a lease on a URL is kept.
func (k *keptSegment) lists(url string) bool {
	return k != nil && (k.listed == nil || k.listed[maphash.String(k.seed, url)])
}

// partBlocks says which blocks of a part are whole.
type partBlocks struct {
	name      string
	committed bool
	good      map[int]bool
	damaged   bool
	missing   bool // the part does not exist, and one of empty blocks replaces it
}

// end returns the number after the last whole block.
func (p *partBlocks) end() int {
	n := 0
	for k := range p.good {
		n = max(n, k+1)
	}
	return n
}

// copySegments copies the whole blocks of every segment.
func (s *Salvage) copySegments(ctx context.Context) error {
	s.keptSegments = map[string]*keptSegment{}
	if s.segments == nil {
		return nil
	}
	var names []string
	for name, err := range s.segments.List(ctx) {
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	for _, name := range names {
		if err := s.copySegment(ctx, name); err != nil {
			return fmt.Errorf("segment %s: %w", name, err)
		}
	}
	return nil
}

func (s *Salvage) copySegment(ctx context.Context, name string) error {
	all, damaged, err := s.lookAtAll(ctx, name)
	if err != nil {
		return err
	}
	events := all[segment.EventPart]
	delete(all, segment.EventPart)
	list := all[segment.GeneratePart]
	switch {
	case list != nil && !list.committed:
		return nil // it was being made, and every opening removes such a segment
	case list != nil:
	case all[segment.FetchPart] != nil:
		// Its pages are due again unless they were visited; the visits are kept.
		s.Lost(Loss{What: "segment", Segment: name, Part: segment.GeneratePart, Offset: -1, Block: -1, Err: errNoPart})
		list, damaged = &partBlocks{name: segment.GeneratePart, committed: true, damaged: true, missing: true}, true
	default:
		delete(all, "leases")
		if len(all) > 0 {
			s.Lost(Loss{What: "segment", Segment: name, Offset: -1, Block: -1, Err: errNoList})
		}
		return nil
	}
	group := []string{segment.ContentPart, segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart, segment.FetchPart}
	apart := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(part string) bool { return part == "leases" || slices.Contains(segment.Parts(), part) })
	if damaged && len(apart) > 0 {
		// The lists belong together, in order.
		if v := all[segment.FetchPart]; v != nil && !v.committed {
			group = nil
		}
		for _, part := range apart {
			s.Lost(Loss{What: "segment", Segment: name, Part: part, Offset: -1, Block: -1, Err: errApart})
		}
		apart = nil
	}
	kept := &keptSegment{}
	visits := all[segment.FetchPart]
	if visits != nil && len(group) > 0 {
		for _, part := range group {
			// A part without a whole block, which was reported, counts as missing, so
			// that the others keep theirs.
			if p := all[part]; part != segment.FetchPart && p != nil && p.damaged && len(p.good) == 0 && len(visits.good) > 0 {
				delete(all, part)
			}
		}
		kept.blocks = s.wholeInAll(name, all, group)
	}
	if contents := all[segment.ContentPart]; visits == nil && contents != nil && contents.committed {
		s.Lost(Loss{What: "segment", Segment: name, Offset: -1, Block: -1, Err: errNoVisits})
		return nil
	}
	if len(list.good) == 0 && list.damaged && len(kept.blocks) == 0 {
		s.Lost(Loss{What: "segment", Segment: name, Offset: -1, Block: -1, Err: errNothing})
		return nil
	}
	if visits != nil && len(group) > 0 {
		s.replace(name, all, len(kept.blocks))
	}
	if visits != nil {
		if err := s.copyPages(ctx, name, all, group, kept.blocks); err != nil {
			return err
		}
		if err := s.copyEvents(ctx, name, events, kept.blocks); err != nil {
			return err
		}
	}
	for _, part := range apart {
		p := all[part]
		if err := s.copyPart(ctx, name, p, slices.Sorted(maps.Keys(p.good))); err != nil {
			return err
		}
	}
	if err := s.copyList(ctx, name, list, kept); err != nil {
		return err
	}
	s.keptSegments[name] = kept
	s.report.Segments++
	return nil
}

// lookAtAll looks at the parts of a segment, and reports whether one is damaged.
func (s *Salvage) lookAtAll(ctx context.Context, name string) (all map[string]*partBlocks, damaged bool, err error) {
	found, err := s.segments.Parts(ctx, name)
	if err != nil {
		return nil, false, err
	}
	all = map[string]*partBlocks{}
	for _, part := range slices.Sorted(maps.Keys(found)) {
		p, err := s.lookAt(ctx, name, part, found[part])
		if err != nil {
			return nil, false, err
		}
		all[part] = p
		damaged = damaged || p.damaged
	}
	return all, damaged, nil
}

// copyPages copies those blocks of the visits and of the parts beside them that all have.
func (s *Salvage) copyPages(ctx context.Context, name string, all map[string]*partBlocks, group []string, blocks []int) error {
	for _, part := range group {
		p := all[part]
		if p == nil {
			continue
		}
		// Parsing continues after the last existing block.
		take := blocks
		for i, k := range take {
			if !p.missing && !p.good[k] {
				take = take[:i]
				break
			}
		}
		if err := s.copyPart(ctx, name, p, take); err != nil {
			return err
		}
	}
	return nil
}

// copyEvents copies the events of those blocks. If some of them are lost, the part is left out:
// pages are worth more than their events, and their readers begin again with a snapshot.
func (s *Salvage) copyEvents(ctx context.Context, name string, events *partBlocks, blocks []int) error {
	if events == nil || !events.committed {
		return nil
	}
	for _, k := range blocks {
		if !events.good[k] {
			s.Lost(Loss{What: "segment", Segment: name, Part: segment.EventPart, Block: k, Offset: -1, Err: errLostEvents})
			return nil
		}
	}
	return s.copyPart(ctx, name, events, blocks)
}

var errLostEvents = errors.New("the part is left out, since the block is not whole")

// copyList copies the fetch list, after all else; if some of it is lost, kept notes which
// pages are still on it.
func (s *Salvage) copyList(ctx context.Context, name string, list *partBlocks, kept *keptSegment) error {
	if err := s.copyPart(ctx, name, list, slices.Sorted(maps.Keys(list.good))); err != nil || !list.damaged {
		return err
	}
	kept.listed, kept.seed = map[uint64]bool{}, maphash.MakeSeed()
	for d, err := range segment.Records[crawldb.Datum](ctx, s.target.Segments, name) {
		if err != nil {
			return err
		}
		kept.listed[maphash.String(kept.seed, d.URL)] = true
	}
	return nil
}

var (
	errNoList   = errors.New("its fetch list is missing")
	errNoVisits = errors.New("its visits are missing")
	errNoPart   = errors.New("it is missing, and replaced by an empty one")
	errNothing  = errors.New("no block of it is whole")
	errApart    = errors.New("its lists were being fetched separately, and are fetched again")
	errPart     = errors.New("the block does not hold records of this part")
)

// replace substitutes parts of n empty blocks for missing parts that must have existed:
// without them, the whole blocks of other parts could not be read.
func (s *Salvage) replace(name string, all map[string]*partBlocks, n int) {
	instead := func(part string, committed bool) {
		if all[part] == nil {
			s.Lost(Loss{What: "segment", Segment: name, Part: part, Offset: -1, Block: -1, Err: errNoPart})
			all[part] = &partBlocks{name: part, committed: committed, missing: true}
		}
	}
	if v := all[segment.FetchPart]; v.committed || n > 0 {
		instead(segment.ContentPart, v.committed)
	}
	parsed := []string{segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart}
	committed := slices.ContainsFunc(parsed, func(part string) bool { return all[part] != nil && all[part].committed })
	if last := all[segment.ParsePart]; committed || last != nil && len(last.good) > 0 {
		for _, part := range parsed {
			instead(part, committed)
		}
	}
}

// lookAt determines which blocks of a part are whole and hold records of the part.
func (s *Salvage) lookAt(ctx context.Context, name, part string, committed bool) (*partBlocks, error) {
	p := &partBlocks{name: part, committed: committed, good: map[int]bool{}}
	var tail error
	for b, err := range s.segments.Whole(ctx, name, part) {
		var damage *crawldb.CorruptError
		switch {
		case errors.As(err, &damage):
			if tail != nil || committed {
				p.damaged = true
			}
			if committed {
				s.LostBy(Loss{What: "segment", Segment: name, Part: part, Block: len(p.good)}, err)
			}
			tail = err
			continue
		case err != nil:
			return nil, err
		}
		if tail != nil {
			p.damaged = true // the damage is not at the end
		}
		if err := decodes(part, b.Block); err != nil {
			p.damaged = true
			s.Lost(Loss{What: "segment", Segment: name, Part: part, Block: b.Number, Offset: b.Offset, Err: err})
			continue
		}
		p.good[b.Number] = true
		if err := s.step(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// decodes reports whether a block holds records of its part.
func decodes(part string, block []byte) error {
	base := part
	if i := strings.LastIndexByte(part, '-'); i > 0 {
		if _, err := strconv.Atoi(part[i+1:]); err == nil {
			base = part[:i]
		}
	}
	err := segment.CheckBlock(base, block)
	if base == "list" && err == nil {
		if _, n := binary.Uvarint(block); n <= 0 {
			err = errPart
		}
	}
	return err
}

// wholeInAll returns the numbers of the blocks that are whole in every part
// that has them, and reports which of the visits are lost.
func (s *Salvage) wholeInAll(name string, all map[string]*partBlocks, group []string) []int {
	visits := all[segment.FetchPart]
	needed := func(part string) bool {
		p := all[part]
		// Parsing may not have got that far.
		return p != nil && (p.committed || part == segment.ContentPart)
	}
	end := 0
	for _, part := range group {
		if p := all[part]; p != nil {
			end = max(end, p.end())
		}
	}
	var blocks []int
	for k := range end {
		lost := ""
		for _, part := range group {
			if needed(part) && !all[part].good[k] {
				lost = part
			}
		}
		switch {
		case lost == "":
			blocks = append(blocks, k)
		case visits.good[k] || visits.committed:
			s.Lost(Loss{What: "segment", Segment: name, Part: lost, Block: k, Offset: -1, Err: errLostBlock})
		}
	}
	return blocks
}

var errLostBlock = errors.New("the block is lost in all parts, since it is not whole in this one")

// copyPart copies blocks of a part.
func (s *Salvage) copyPart(ctx context.Context, name string, p *partBlocks, take []int) error {
	if p.missing {
		return s.emptyPart(ctx, name, p, len(take))
	}
	w, err := s.target.Segments.Append(ctx, name, p.name, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	for b, err := range s.segments.Whole(ctx, name, p.name) {
		var damage *crawldb.CorruptError
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return err
		}
		if _, ok := slices.BinarySearch(take, b.Number); !ok {
			continue
		}
		if err := w.Append(ctx, b.Block); err != nil {
			return err
		}
		s.report.SegmentBlocks++
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	if !p.committed {
		return w.Sync(ctx)
	}
	return w.Commit(ctx)
}

// emptyPart makes a part of blocks without records.
func (s *Salvage) emptyPart(ctx context.Context, name string, p *partBlocks, blocks int) error {
	// A block without records is the same in every part.
	w, err := segment.NewWriterTo[segment.Visit](ctx, s.target.Segments, name, p.name, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	for range blocks {
		if err := w.Append(ctx, nil); err != nil {
			return err
		}
	}
	if !p.committed {
		return w.Sync(ctx)
	}
	return w.Commit(ctx)
}
