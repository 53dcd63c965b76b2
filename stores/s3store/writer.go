package s3store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/recrawl/recrawl/segment"
)

// Append implements [segment.Store].
func (s *Store) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	n := partName{seg, part}
	w, err := s.append(ctx, n, keep)
	if err != nil {
		return nil, failed("append to", n, err)
	}
	return w, nil
}

func (s *Store) append(ctx context.Context, n partName, keep int) (*writer, error) {
	if err := segment.ValidName(n.segment, n.part); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if s.readOnly {
		return nil, ErrReadOnly
	}
	w := &writer{store: s, name: n}
	s.mu.Lock()
	busy := s.writers[n] != nil || s.gone[n.segment]
	if !busy {
		s.writers[n] = w
	}
	s.mu.Unlock()
	if busy {
		return nil, segment.ErrBusy
	}
	if err := w.open(ctx, keep); err != nil {
		w.leave()
		return nil, err
	}
	return w, nil
}

// A writer writes a part. Blocks go into the tail, which becomes a piece when it is large enough and by
// Sync.
type writer struct {
	store *Store
	name  partName

	op    sync.Mutex // held by an operation, and by the Close of the store
	ended bool
	next  int // the number of the next piece of its own
	// commitHead is the head by which Commit has tried to commit the part. Whether it is in
	// the bucket is not known.
	commitHead *head
	takenOver  bool // Commit has found the head of another writer

	mu     sync.Mutex
	head   *head   // nil until the writer is open
	pieces []piece // in the bucket
	sealed buffer  // is being uploaded: its bytes do not change any more
	tail   buffer
}

// buffer has frames.
type buffer struct {
	bytes  []byte
	blocks int
}

// open makes a head that keeps some blocks.
func (w *writer) open(ctx context.Context, keep int) error {
	s := w.store
	h := &head{ID: newID(), Place: w.name.String()}
	h.Root = h.ID
	previous, err := s.last(ctx, w.name)
	switch {
	case errors.Is(err, segment.ErrNotFound):
		if keep > 0 {
			return fmt.Errorf("%d blocks of none: %w", keep, err)
		}
	case err != nil:
		return err
	case previous.Committed:
		return segment.ErrCommitted
	default:
		h.Number, h.Root = previous.Number+1, previous.Root
		if keep != 0 {
			if h.Pieces, err = w.keep(ctx, previous, keep); err != nil {
				return err
			}
		}
	}
	previousID := ""
	if previous != nil {
		previousID = previous.ID
	}
	if err := w.putHead(ctx, h, previousID); errors.Is(err, errExists) {
		return fmt.Errorf("%w, by another process", segment.ErrBusy)
	} else if err != nil {
		return err
	}
	s.see(w.name)
	s.mu.Lock()
	delete(s.removed, w.name.segment)
	s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head, w.pieces = h, h.Pieces
	return nil
}

// keep returns the pieces of the first blocks of a part.
func (w *writer) keep(ctx context.Context, h *head, keep int) ([]piece, error) {
	pieces, err := w.store.whole(ctx, w.name, h)
	if err != nil {
		return nil, err
	}
	blocks, _ := total(pieces)
	if keep > blocks {
		return nil, fmt.Errorf("%d blocks of %d: %w", keep, blocks, segment.ErrNotFound)
	}
	if keep < 0 {
		return pieces, nil
	}
	first := 0
	for i, p := range pieces {
		if first == keep {
			return pieces[:i], nil
		}
		if first+p.Blocks > keep {
			data, err := w.store.bucket.get(ctx, w.name.blockKey(p.Name), p.Bytes)
			if err != nil {
				return nil, err
			}
			f := frames{piece: data, place: w.name.String(), number: first}
			for f.number < keep {
				if _, ok, err := f.next(); !ok || err != nil {
					return nil, fmt.Errorf("%s has changed: %w", w.store.bucket.place(w.name.blockKey(p.Name)), errBlock)
				}
			}
			return append(pieces[:i:i], piece{Name: p.Name, Blocks: keep - first, Bytes: int64(f.at)}), nil
		}
		first += p.Blocks
	}
	return pieces, nil
}

func (w *writer) putHead(ctx context.Context, h *head, previous string) error {
	data, err := h.encode()
	if err != nil {
		return err
	}
	return w.store.bucket.create(ctx, w.name.headKey(h.Number, previous), data, h.ID)
}

// view returns what the part has; false if the writer is not open.
func (w *writer) view() (view, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head == nil {
		return view{}, false
	}
	v := view{head: w.head, pieces: w.pieces[:len(w.pieces):len(w.pieces)], tailBlocks: w.sealed.blocks + w.tail.blocks}
	v.tail = w.sealed.bytes
	if len(v.tail) == 0 {
		v.tail = w.tail.bytes
	} else if len(w.tail.bytes) > 0 {
		v.tail = append(v.tail[:len(v.tail):len(v.tail)], w.tail.bytes[len(pieceMagic):]...)
	}
	return v, true
}

// use runs an operation of the caller.
func (w *writer) use(ctx context.Context, op string, f func() error) error {
	w.op.Lock()
	defer w.op.Unlock()
	err := ctx.Err()
	switch {
	case err != nil:
	case w.ended:
		err = segment.ErrClosed
	default:
		err = f()
	}
	return failed(op, w.name, err)
}

// Append adds a block of up to 1 GiB.
func (w *writer) Append(ctx context.Context, block []byte) error {
	return w.use(ctx, "append to", func() error {
		if len(block) > mostBlock {
			return fmt.Errorf("a block of %d bytes is too large", len(block))
		}
		if w.takenOver {
			return ErrTakenOver
		}
		if w.commitHead != nil {
			return errors.New("it is not known whether the part was committed; commit it again")
		}
		if len(w.tail.bytes) > 0 && len(w.tail.bytes)+len(block) > w.store.pieceSize {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		blocks, _ := total(w.pieces)
		w.tail.bytes = appendFrame(w.tail.bytes, w.name.String(), blocks+w.sealed.blocks+w.tail.blocks, block)
		w.tail.blocks++
		return nil
	})
}

// flush uploads what is not in the bucket yet. An upload that failed may still arrive, so the bytes
// of the object stay the same when it is repeated.
func (w *writer) flush(ctx context.Context) error {
	for {
		w.mu.Lock()
		if w.sealed.blocks == 0 {
			w.sealed, w.tail = w.tail, buffer{}
		}
		b := w.sealed
		w.mu.Unlock()
		if b.blocks == 0 {
			return nil
		}
		p := piece{Name: ownPiece(w.head.ID, w.next), Blocks: b.blocks, Bytes: int64(len(b.bytes))}
		if err := w.store.bucket.put(ctx, w.name.blockKey(p.Name), b.bytes); err != nil {
			return err
		}
		w.next++
		w.mu.Lock()
		w.pieces, w.sealed = append(w.pieces, p), buffer{}
		w.mu.Unlock()
	}
}

// Sync implements [segment.BlockWriter].
func (w *writer) Sync(ctx context.Context) error {
	return w.use(ctx, "sync", func() error { return w.flush(ctx) })
}

// Commit implements [segment.BlockWriter]. It joins the small pieces that Sync has uploaded, one each
// time.
func (w *writer) Commit(ctx context.Context) error {
	return w.use(ctx, "commit", func() error {
		if w.takenOver {
			return ErrTakenOver
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
		if w.commitHead == nil {
			h := &head{ID: newID(), Root: w.head.Root, Place: w.head.Place, Number: w.head.Number + 1, Committed: true}
			var err error
			if h.Pieces, err = w.join(ctx, h.ID); err != nil {
				return err
			}
			w.commitHead = h
		}
		err := w.putHead(ctx, w.commitHead, w.head.ID)
		if errors.Is(err, errExists) {
			w.takenOver = true
			err = ErrTakenOver
		}
		if err != nil {
			return err
		}
		w.store.noteCommitted(w.name, w.commitHead)
		w.leave()
		w.deleteJoined(ctx)
		return nil
	})
}

// join uploads the small pieces that follow each other as larger ones, and returns the pieces of
// the part.
func (w *writer) join(ctx context.Context, id string) ([]piece, error) {
	var pieces, run []piece
	var size int64
	first := 0
	end := func() error {
		if len(run) < 2 {
			pieces = append(pieces, run...)
		} else {
			p := piece{Name: fmt.Sprintf("%s-pack-%06d", id, len(pieces))}
			blocks, err := w.joinRun(ctx, run, first, &p)
			if err != nil {
				return err
			}
			if err := w.store.bucket.put(ctx, w.name.blockKey(p.Name), blocks); err != nil {
				return err
			}
			pieces = append(pieces, p)
		}
		n, _ := total(run)
		first, run, size = first+n, nil, 0
		return nil
	}
	for _, p := range w.pieces {
		if len(run) > 0 && size+p.Bytes > int64(w.store.pieceSize) {
			if err := end(); err != nil {
				return nil, err
			}
		}
		run, size = append(run, p), size+p.Bytes
	}
	return pieces, end()
}

// joinRun returns the bytes of pieces as one, and describes it.
func (w *writer) joinRun(ctx context.Context, run []piece, first int, joined *piece) ([]byte, error) {
	var data []byte
	for i, a := range w.store.ahead(ctx, w.name, run) {
		if a.err != nil {
			return nil, a.err
		}
		found := foundPiece{data: a.bytes, first: first + joined.Blocks}
		if !found.count(w.name.String()) || found.Blocks != run[i].Blocks {
			return nil, &segment.CorruptError{File: w.store.bucket.place(w.name.blockKey(run[i].Name)), Offset: found.Bytes, Err: errBlock}
		}
		if i > 0 {
			a.bytes = a.bytes[len(pieceMagic):]
		}
		data = append(data, a.bytes...)
		joined.Blocks += found.Blocks
	}
	joined.Bytes = int64(len(data))
	return data, nil
}

// deleteJoined deletes the pieces that were joined. If that fails, they go with their segment.
func (w *writer) deleteJoined(ctx context.Context) {
	var keys []string
	for _, p := range w.pieces {
		if !slices.ContainsFunc(w.commitHead.Pieces, func(q piece) bool { return q.Name == p.Name }) {
			keys = append(keys, w.name.blockKey(p.Name))
		}
	}
	if err := w.store.deleteAll(ctx, keys); err != nil {
		w.store.bucket.log.Warn("s3store: pieces that were joined are left", "part", w.name.String(), "error", err)
	}
}

// Close implements [segment.BlockWriter]. It uploads what was not synced.
func (w *writer) Close() error {
	w.op.Lock()
	defer w.op.Unlock()
	if w.ended {
		return nil
	}
	var err error
	if w.commitHead == nil {
		err = w.flush(context.Background())
	}
	w.leave()
	return failed("close", w.name, err)
}

// leave ends the writer.
func (w *writer) leave() {
	w.ended = true
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.store.writers[w.name] == w {
		delete(w.store.writers, w.name)
	}
}
