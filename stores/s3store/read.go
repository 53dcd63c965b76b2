package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/recrawl/recrawl/segment"
)

// A view is what a part had at one time.
type view struct {
	head   *head
	pieces []piece
	// tail has frames that are not in the bucket yet; it is that of the writer.
	tail       []byte
	tailBlocks int
	// unknown says that the part is not committed and has no writer here: the pieces are those of the
	// head, and the others must be looked for.
	unknown bool
}

// view returns what a part has.
func (s *Store) view(ctx context.Context, n partName) (view, error) {
	if err := segment.ValidName(n.segment, n.part); err != nil {
		return view{}, err
	}
	if err := s.ready(ctx); err != nil {
		return view{}, err
	}
	s.mu.Lock()
	w := s.writers[n]
	s.mu.Unlock()
	if w != nil {
		if v, ok := w.view(); ok {
			return v, nil
		}
	}
	h, err := s.last(ctx, n)
	if err != nil {
		return view{}, err
	}
	return view{head: h, pieces: h.Pieces, unknown: !h.Committed}, nil
}

// Read implements [segment.Store]. Of a part that is being written it yields the blocks present
// when the loop begins.
func (s *Store) Read(ctx context.Context, seg, part string, from int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := partName{seg, part}
		r := reader{store: s, name: n, next: max(from, 0), yield: yield}
		if err := r.run(ctx); err != nil {
			yield(nil, failed("read", n, err))
		}
	}
}

// reader is one run of Read.
type reader struct {
	store *Store
	name  partName
	next  int // the number of the next block to yield
	yield func([]byte, error) bool
}

// run yields blocks. The pieces of a part are replaced by others when it is committed, possibly by
// another process, and go away when it is removed: then it begins again with the new head.
func (r *reader) run(ctx context.Context) error {
	v, err := r.store.view(ctx, r.name)
	for err == nil {
		walked := r.walk(ctx, v)
		if !errors.Is(walked, errNoObject) {
			return walked
		}
		r.store.forgetCommitted(r.name)
		old := v
		if v, err = r.store.view(ctx, r.name); err != nil {
			break
		}
		switch {
		case v.head.Root != old.head.Root:
			return segment.ErrNotFound
		case v.head.ID != old.head.ID:
		case old.unknown: // what is missing was never written
			return nil
		default:
			return &segment.CorruptError{File: r.store.bucket.place(blocksDir + r.name.String()), Offset: int64(r.next), Err: walked}
		}
	}
	return err
}

// errStop says that the loop has ended.
var errStop = errors.New("stop")

// walk yields the blocks of a view. If a piece is not there, its error is errNoObject.
func (r *reader) walk(ctx context.Context, v view) error {
	err := r.walkPieces(ctx, v)
	if err == nil && v.tailBlocks > 0 {
		blocks, _ := total(v.pieces)
		_, err = r.walkPiece(ctx, bytes.Clone(v.tail), blocks)
	}
	if err == errStop {
		return nil
	}
	return err
}

func (r *reader) walkPieces(ctx context.Context, v view) error {
	if v.unknown {
		for p, err := range r.store.unknownPieces(ctx, r.name, v.head) {
			if err == nil && p.Blocks > 0 {
				_, err = r.walkPiece(ctx, p.data[:p.Bytes], p.first)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	first, skip := 0, 0
	for skip < len(v.pieces) && first+v.pieces[skip].Blocks <= r.next {
		first += v.pieces[skip].Blocks
		skip++
	}
	list := v.pieces[skip:]
	for i, data := range r.store.ahead(ctx, r.name, list) {
		if data.err != nil {
			return data.err
		}
		at, err := r.walkPiece(ctx, data.bytes, first)
		if err == nil && int64(len(data.bytes)) != list[i].Bytes {
			err = errBlock
		}
		if errors.Is(err, errBlock) || errors.Is(err, errPiece) {
			return &segment.CorruptError{File: r.store.bucket.place(r.name.blockKey(list[i].Name)), Offset: int64(at), Err: err}
		}
		if err != nil {
			return err
		}
		first += list[i].Blocks
	}
	return nil
}

// walkPiece yields the blocks of a piece from the next one on, and returns how many bytes of it were
// whole. first is the number of the first block in the piece.
func (r *reader) walkPiece(ctx context.Context, data []byte, first int) (int, error) {
	f := frames{piece: data, place: r.name.String(), number: first}
	for {
		block, ok, err := f.next()
		if !ok || err != nil {
			return f.at, err
		}
		if f.number <= r.next {
			continue
		}
		if err := r.store.ready(ctx); err != nil {
			return f.at, err
		}
		if r.next++; !r.yield(block, nil) {
			return f.at, errStop
		}
	}
}

type answer struct {
	bytes []byte
	err   error
}

// ahead yields the bytes of pieces in order, and asks for some before they are wanted.
func (s *Store) ahead(ctx context.Context, n partName, list []piece) iter.Seq2[int, answer] {
	const mostRequests = 16
	return func(yield func(int, answer) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		answers := make([]chan answer, len(list))
		begun, pending := 0, int64(0)
		for i := range list {
			for begun < len(list) && begun < i+mostRequests && (begun <= i || pending+list[begun].Bytes <= 2*int64(s.pieceSize)) {
				p, to := list[begun], make(chan answer, 1)
				answers[begun] = to
				pending += p.Bytes
				begun++
				group.Go(func() {
					b, err := s.bucket.get(ctx, n.blockKey(p.Name), p.Bytes)
					to <- answer{b, err}
				})
			}
			a := <-answers[i]
			pending -= list[i].Bytes
			answers[i] = nil
			if !yield(i, a) || a.err != nil {
				return
			}
		}
	}
}

// A foundPiece has the whole blocks of an object.
type foundPiece struct {
	piece
	data  []byte
	first int // the number of its first block
}

func ownPiece(id string, k int) string { return fmt.Sprintf("%s-%06d", id, k) }

// unknownPieces yields the pieces of a part that is not committed: those that its head lists, and
// those that the writer of the head has appended. It ends with the first block that is missing or not whole.
func (s *Store) unknownPieces(ctx context.Context, n partName, h *head) iter.Seq2[foundPiece, error] {
	return func(yield func(foundPiece, error) bool) {
		list := h.Pieces
		listed := len(list)
		own, err := s.listOwn(ctx, n, h.ID)
		if err != nil {
			yield(foundPiece{}, err)
			return
		}
		list = append(list[:listed:listed], own...)
		first := 0
		find := func(p piece, data []byte) bool {
			found := foundPiece{piece: p, data: data, first: first}
			whole := found.count(n.String())
			first += found.Blocks
			return yield(found, nil) && whole && (p.Blocks < 0 || p.Blocks == found.Blocks)
		}
		for i, a := range s.ahead(ctx, n, list) {
			if a.err != nil {
				yield(foundPiece{}, a.err)
				return
			}
			p := list[i]
			if i >= listed {
				p.Blocks = -1
			}
			if !find(p, a.bytes) {
				return
			}
		}
		for k := len(own); ; k++ { // the list may be stale
			name := ownPiece(h.ID, k)
			data, err := s.bucket.get(ctx, n.blockKey(name), -1)
			if errors.Is(err, errNoObject) {
				return
			}
			if err != nil {
				yield(foundPiece{}, err)
				return
			}
			if !find(piece{Name: name, Blocks: -1}, data) {
				return
			}
		}
	}
}

// listOwn returns the pieces of the writer of a head, as far as they are in a row in the list of
// objects.
func (s *Store) listOwn(ctx context.Context, n partName, id string) ([]piece, error) {
	prefix := n.blockKey(id + "-")
	keys, sizes, err := s.bucket.list(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var own []piece
	for i, key := range keys {
		if k, err := strconv.Atoi(strings.TrimPrefix(key, prefix)); err != nil || k != len(own) {
			break
		}
		own = append(own, piece{Name: ownPiece(id, len(own)), Bytes: sizes[i]})
	}
	return own, nil
}

// count counts the whole blocks of a piece, and reports whether there is nothing else.
func (p *foundPiece) count(place string) bool {
	p.Blocks, p.Bytes = 0, 0
	f := frames{piece: p.data, place: place, number: p.first}
	for {
		_, ok, err := f.next()
		p.Bytes = int64(f.at)
		if err != nil || !ok {
			return err == nil
		}
		p.Blocks++
	}
}

// whole returns the pieces of a part that is not committed.
func (s *Store) whole(ctx context.Context, n partName, h *head) ([]piece, error) {
	var pieces []piece
	for p, err := range s.unknownPieces(ctx, n, h) {
		if errors.Is(err, errNoObject) {
			break
		}
		if err != nil {
			return nil, err
		}
		if p.Blocks > 0 {
			pieces = append(pieces, p.piece)
		}
	}
	return pieces, nil
}
