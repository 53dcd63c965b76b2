package fetch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
)

// A segment whose lists are fetched separately has, for each list, the parts of
// a fetch under names of their own ([segment.ListPart]) and, once the list is
// complete, donePart, which says how many blocks they have. When all lists are
// complete, joinPart is written, and the blocks are copied to the parts of the
// segment, list by list, in an order that follows from the done parts alone: so
// a fetch that finds the work half done can continue it. Then the parts of the
// lists are emptied.
const (
	donePart  = "list"
	mergePart = "lists"
)

var errBegunWhole = errors.New("fetch: the segment was begun as a whole and must be finished without Lists")

// lists are the lists of a segment that is not fetched as a whole.
type lists struct {
	s          segment.Store
	name       string
	n          int
	by         hostdb.By
	requested  map[int]bool
	incomplete int // lists that are not complete
}

// listsOf returns the lists of a segment that is fetched list by list; nil if it is
// fetched as a whole.
func listsOf(ctx context.Context, s segment.Store, name string, o *Options) (*lists, error) {
	var turn segment.Placement
	for block, err := range segment.Blocks[crawldb.Datum](ctx, s, name, 0) {
		if err != nil {
			return nil, err
		}
		if len(block) > 0 {
			if turn, err = segment.TakePlacement(&block[0]); err != nil {
				return nil, err
			}
			break
		}
	}
	ls := &lists{s: s, name: name, n: max(turn.Lists, 1), by: turn.By, requested: map[int]bool{}}
	for _, i := range o.Lists {
		if i < 0 || i >= ls.n {
			return nil, fmt.Errorf("fetch: no list %d; the segment has %d, numbered from 0", i, ls.n)
		}
		ls.requested[i] = true
	}
	if ls.n == 1 {
		return nil, nil
	}
	begun, err := ls.begun(ctx)
	if err != nil || o.Lists == nil && !begun {
		return nil, err
	}
	if o.Lists == nil {
		for i := range ls.n {
			ls.requested[i] = true
		}
	}
	if len(ls.requested) < ls.n && o.Politeness.By == hostdb.ByDomain && turn.By != hostdb.ByDomain {
		return nil, fmt.Errorf("fetch: queues %v would be shared by lists made %v", o.Politeness.By, turn.By)
	}
	whole, err := s.Stat(ctx, name, segment.FetchPart)
	if err != nil && !errors.Is(err, segment.ErrNotFound) {
		return nil, err
	}
	if err == nil && whole.Blocks > 0 {
		if joining, err := segment.Committed(ctx, s, name, mergePart); err != nil {
			return nil, err
		} else if !joining {
			return nil, errBegunWhole
		}
	}
	return ls, nil
}

// begun reports whether any list was fetched separately.
func (ls *lists) begun(ctx context.Context) (bool, error) {
	for i := range ls.n {
		_, err := ls.s.Stat(ctx, ls.name, segment.ListPart(segment.ContentPart, i))
		if !errors.Is(err, segment.ErrNotFound) {
			return err == nil, err
		}
	}
	return false, nil
}

// doneList is the content of the done part of a list.
type doneList struct {
	list, blocks int
	parsed       bool
}

// done reads the done part of a list; false if it is not complete.
func (ls *lists) done(ctx context.Context, list int) (doneList, bool, error) {
	d := doneList{list: list}
	part := segment.ListPart(donePart, list)
	if ok, err := segment.Committed(ctx, ls.s, ls.name, part); err != nil || !ok {
		return d, false, err
	}
	for block, err := range ls.s.Read(ctx, ls.name, part, 0) {
		if err != nil {
			return d, false, err
		}
		blocks, n := binary.Uvarint(block)
		if n <= 0 || len(block) != n+1 || blocks > 1<<40 {
			break
		}
		d.blocks, d.parsed = int(blocks), block[n] == 1
		return d, true, nil
	}
	return d, false, &segment.CorruptError{File: ls.name + "/" + part, Err: errors.New("not the size of a list")}
}

// complete records that a list is complete.
func (ls *lists) complete(ctx context.Context, list int, parsed bool) error {
	info, err := ls.s.Stat(ctx, ls.name, segment.ListPart(segment.FetchPart, list))
	if err != nil {
		return err
	}
	block := append(binary.AppendUvarint(nil, uint64(info.Blocks)), 0)
	if parsed {
		block[len(block)-1] = 1
	}
	return ls.mark(ctx, segment.ListPart(donePart, list), block)
}

// mark writes a part of one block.
func (ls *lists) mark(ctx context.Context, part string, block []byte) error {
	w, err := ls.s.Append(ctx, ls.name, part, 0)
	if errors.Is(err, segment.ErrCommitted) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Append(ctx, block); err != nil {
		return err
	}
	return w.Commit(ctx)
}

// merge merges the lists if all are complete, and reports whether the segment is
// then fetched. If another fetch is doing so, it is left to that one.
func (ls *lists) merge(ctx context.Context) (whole bool, err error) {
	var parsed, unparsed []doneList
	ls.incomplete = 0
	for i := range ls.n {
		switch d, ok, err := ls.done(ctx, i); {
		case err != nil:
			return false, err
		case !ok:
			ls.incomplete++
		case d.parsed:
			parsed = append(parsed, d)
		default:
			unparsed = append(unparsed, d)
		}
	}
	if ls.incomplete > 0 {
		return false, nil
	}
	// Those that were parsed come first: parsing continues after them.
	all := slices.Concat(parsed, unparsed)
	if err = ls.mark(ctx, mergePart, nil); err == nil {
		err = ls.copyAll(ctx, all, parsed)
	}
	if errors.Is(err, segment.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, ls.empty(ctx)
}

// copyAll fills and completes the parts of the segment, the visits last. All
// are opened before any is written, so that only one of two fetches does this.
func (ls *lists) copyAll(ctx context.Context, all, parsed []doneList) error {
	type target struct {
		part   string
		from   []doneList
		commit bool
		w      segment.BlockWriter
	}
	targets := []*target{{part: segment.ContentPart, from: all, commit: true}}
	for _, p := range parsedNames() {
		targets = append(targets, &target{part: p, from: parsed, commit: len(parsed) == len(all)})
	}
	targets = append(targets, &target{part: segment.FetchPart, from: all, commit: true})
	defer func() {
		for _, t := range targets {
			if t.w != nil {
				t.w.Close()
			}
		}
	}()
	for _, t := range targets {
		if !t.commit && len(t.from) == 0 {
			continue // left to the parse stage
		}
		w, err := ls.s.Append(ctx, ls.name, t.part, -1)
		if errors.Is(err, segment.ErrCommitted) {
			continue
		}
		if err != nil {
			return err
		}
		t.w = w
	}
	for _, t := range targets {
		if t.w == nil {
			continue
		}
		if err := ls.copyPart(ctx, t.w, t.part, t.from); err != nil {
			return err
		}
		end := t.w.Sync
		if t.commit {
			end = t.w.Commit
		}
		if err := end(ctx); err != nil {
			return err
		}
	}
	return nil
}

// copyPart appends those blocks of the lists that a part does not have yet.
func (ls *lists) copyPart(ctx context.Context, w segment.BlockWriter, part string, from []doneList) error {
	info, err := ls.s.Stat(ctx, ls.name, part)
	if err != nil {
		return err
	}
	skip := info.Blocks
	for _, d := range from {
		if skip >= d.blocks {
			skip -= d.blocks
			continue
		}
		n := skip
		for block, err := range ls.s.Read(ctx, ls.name, segment.ListPart(part, d.list), skip) {
			if err != nil {
				return err
			}
			if n == d.blocks {
				break
			}
			if err := w.Append(ctx, block); err != nil {
				return err
			}
			n++
		}
		if n < d.blocks {
			return &segment.CorruptError{File: ls.name + "/" + segment.ListPart(part, d.list), Offset: int64(n), Err: fmt.Errorf("%d blocks of %d", n, d.blocks)}
		}
		skip = 0
	}
	return nil
}

// empty frees the parts of the lists once the segment has their contents.
func (ls *lists) empty(ctx context.Context) error {
	for i := range ls.n {
		for _, part := range fetchNames() {
			name := segment.ListPart(part, i)
			info, err := ls.s.Stat(ctx, ls.name, name)
			if errors.Is(err, segment.ErrNotFound) || err == nil && info.Blocks == 0 {
				continue
			}
			if err != nil {
				return err
			}
			w, err := ls.s.Append(ctx, ls.name, name, 0)
			if errors.Is(err, segment.ErrBusy) {
				continue // another fetch is doing it
			}
			if err != nil {
				return err
			}
			if err := errors.Join(w.Sync(ctx), w.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptyRest frees what a fetch that died after the join has left.
func emptyRest(ctx context.Context, s segment.Store, name string) error {
	ls := &lists{s: s, name: name}
	if ok, err := segment.Committed(ctx, s, name, mergePart); err != nil || !ok {
		return err
	}
	for {
		if ok, err := segment.Committed(ctx, s, name, segment.ListPart(donePart, ls.n)); err != nil {
			return err
		} else if !ok {
			return ls.empty(ctx)
		}
		ls.n++
	}
}

// fetchNames are the parts that a fetch writes.
func fetchNames() []string {
	return append(parsedNames(), segment.ContentPart, segment.FetchPart)
}
