package pgstore

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/segment"
)

var _ segment.Store = (*segmentStore)(nil)

// segmentStore is the store of segments: a row for each part, and one for each block.
type segmentStore struct {
	view

	mu       sync.Mutex
	writers  map[partName]*blockWriter
	removing map[string]bool // segments
	// sound has, by the id of a part that is not committed, how many of its first blocks
	// are known to be whole.
	sound map[int64]int
}

// partName names a part of a segment.
type partName struct{ segment, part string }

func (n partName) String() string { return n.segment + "/" + n.part }

// failed names the operation and the part in an error.
func failed(op string, about fmt.Stringer, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: %s %v: %w", op, about, err)
}

// List implements [segment.Store].
func (s *segmentStore) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		err := s.read(ctx, func(ctx context.Context) error {
			rows, err := s.db.pool.Query(ctx, `SELECT DISTINCT segment FROM part ORDER BY segment`)
			if err != nil {
				return err
			}
			names, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (string, error) {
				var b []byte
				err := r.Scan(&b)
				return string(b), err
			})
			return err
		})
		for _, name := range names {
			if err = s.ready(ctx); err != nil {
				break
			}
			if !yield(name, nil) {
				return
			}
		}
		if err != nil {
			yield("", fmt.Errorf("pgstore: list segments: %w", err))
		}
	}
}

// partRow is a row of the table of parts.
type partRow struct {
	id     int64
	blocks int   // of a committed part
	bytes  int64 // of a committed part
	done   bool  // committed
}

// find returns the row of a part.
func (s *segmentStore) find(ctx context.Context, n partName) (p partRow, err error) {
	if err := segment.ValidName(n.segment, n.part); err != nil {
		return p, err
	}
	err = s.read(ctx, func(ctx context.Context) error {
		return s.db.pool.QueryRow(ctx, `SELECT id, committed, blocks, bytes FROM part WHERE segment = $1 AND name = $2`, []byte(n.segment), []byte(n.part)).
			Scan(&p.id, &p.done, &p.blocks, &p.bytes)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = segment.ErrNotFound
	}
	return p, err
}

// Stat implements [segment.Store].
func (s *segmentStore) Stat(ctx context.Context, seg, part string) (segment.Info, error) {
	n := partName{seg, part}
	p, err := s.find(ctx, n)
	if err == nil && !p.done {
		if p.blocks, err = s.wholeBlocks(ctx, n, p); err == nil {
			err = s.read(ctx, func(ctx context.Context) error {
				return s.db.pool.QueryRow(ctx, `SELECT count(*), coalesce(sum(length(data)), 0) FROM block WHERE part = $1 AND number < $2`, p.id, p.blocks).Scan(&p.blocks, &p.bytes)
			})
		}
	}
	if err != nil {
		return segment.Info{}, failed("stat", n, err)
	}
	return segment.Info{Blocks: p.blocks, Bytes: p.bytes, Committed: p.done}, nil
}

// wholeBlocks counts the blocks of a part that is not committed, up to the first that is
// missing or not whole. Each block is read once for that.
func (s *segmentStore) wholeBlocks(ctx context.Context, n partName, p partRow) (int, error) {
	s.mu.Lock()
	sound := s.sound[p.id]
	s.mu.Unlock()
	for _, err := range s.blocks(ctx, n, p, sound) {
		if err != nil {
			return 0, err
		}
		sound++
	}
	s.noteSound(p.id, sound)
	return sound, nil
}

func (s *segmentStore) noteSound(id int64, blocks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sound[id] = max(s.sound[id], blocks)
}

// forgetSound forgets a part that is committed.
func (s *segmentStore) forgetSound(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sound, id)
}

// Read implements [segment.Store].
func (s *segmentStore) Read(ctx context.Context, seg, part string, from int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := partName{seg, part}
		p, err := s.find(ctx, n)
		if err != nil {
			yield(nil, failed("read", n, err))
			return
		}
		for b, err := range s.blocks(ctx, n, p, max(from, 0)) {
			if !yield(b, failed("read", n, err)) || err != nil {
				return
			}
		}
	}
}

// blocksRead is how many blocks are read at once. A block has up to some megabytes.
const blocksRead = 4

// blocks yields the blocks of a part from one on. In a part that is not committed, a block that
// is missing or not whole is the end; in a committed part it is damage.
func (s *segmentStore) blocks(ctx context.Context, n partName, p partRow, from int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		type block struct {
			number, sum int64
			data        []byte
		}
		for next := from; ; {
			var page []block
			err := s.read(ctx, func(ctx context.Context) error {
				rows, err := s.db.pool.Query(ctx, `SELECT number, sum, data FROM block WHERE part = $1 AND number >= $2 ORDER BY number LIMIT $3`, p.id, next, blocksRead)
				if err != nil {
					return err
				}
				page, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (b block, err error) {
					return b, r.Scan(&b.number, &b.sum, &b.data)
				})
				return err
			})
			for _, b := range page {
				if err = s.ready(ctx); err != nil {
					break
				}
				if b.number != int64(next) || b.sum != sumOf(b.data) {
					if p.done {
						err = s.damagedBlock(ctx, n, p, next)
						break
					}
					return
				}
				if !yield(b.data, nil) {
					return
				}
				next++
			}
			if err == nil && len(page) < blocksRead {
				if !p.done || next >= p.blocks {
					return
				}
				err = s.damagedBlock(ctx, n, p, next)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

var errBlock = errors.New("block is missing or not the one that was written")

// damagedBlock returns the error of a block that is missing or wrong: the part may have been
// removed while it was read.
func (s *segmentStore) damagedBlock(ctx context.Context, n partName, p partRow, block int) error {
	now, err := s.find(ctx, n)
	switch {
	case err != nil:
		return err
	case now.id != p.id:
		return segment.ErrNotFound
	}
	return &segment.CorruptError{File: "part " + n.String() + " of " + s.db.place, Offset: int64(block), Err: errBlock}
}

// sumOf returns the checksum that is stored beside a block.
func sumOf(data []byte) int64 { return int64(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))) }

// Append implements [segment.Store].
func (s *segmentStore) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	n := partName{seg, part}
	w, err := s.append(ctx, n, keep)
	if err != nil {
		return nil, failed("append to", n, err)
	}
	return w, nil
}

func (s *segmentStore) append(ctx context.Context, n partName, keep int) (_ *blockWriter, err error) {
	if err := segment.ValidName(n.segment, n.part); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	w := &blockWriter{store: s, name: n}
	s.mu.Lock()
	busy := s.writers[n] != nil || s.removing[n.segment]
	if !busy {
		s.writers[n] = w
	}
	s.mu.Unlock()
	if busy {
		return nil, segment.ErrBusy
	}
	defer func() {
		if err != nil {
			w.leave()
		}
	}()
	sound := 0 // of a new part
	p, err := s.find(ctx, n)
	switch {
	case err == nil && p.done:
		return nil, segment.ErrCommitted
	case err == nil:
		if sound, err = s.wholeBlocks(ctx, n, p); err != nil {
			return nil, err
		}
	case !errors.Is(err, segment.ErrNotFound):
		return nil, err
	}
	if keep > sound {
		return nil, fmt.Errorf("%d blocks of %d: %w", keep, sound, segment.ErrNotFound)
	}
	if keep < 0 {
		keep = sound
	}
	w.next = keep
	err = s.write(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
			if err := s.db.fence(ctx, tx); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, `INSERT INTO part (segment, name, committed, blocks, bytes) VALUES ($1, $2, false, 0, 0)
				ON CONFLICT (segment, name) DO UPDATE SET committed = part.committed RETURNING id`, []byte(n.segment), []byte(n.part)).Scan(&w.part); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `DELETE FROM block WHERE part = $1 AND number >= $2`, w.part, keep)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.sound[w.part] = keep
	s.mu.Unlock()
	return w, nil
}

// Remove implements [segment.Store].
func (s *segmentStore) Remove(ctx context.Context, seg string) error {
	return failed("remove", partName{segment: seg}, s.remove(ctx, seg))
}

func (s *segmentStore) remove(ctx context.Context, seg string) error {
	if err := segment.ValidName(seg); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if !s.startRemoving(seg) {
		return segment.ErrBusy
	}
	defer func() {
		s.mu.Lock()
		delete(s.removing, seg)
		s.mu.Unlock()
	}()
	return s.write(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
			if err := s.db.fence(ctx, tx); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `DELETE FROM block WHERE part IN (SELECT id FROM part WHERE segment = $1)`, []byte(seg)); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `DELETE FROM part WHERE segment = $1`, []byte(seg))
			return err
		})
	})
}

// startRemoving keeps writers away from a segment, unless there is one already.
func (s *segmentStore) startRemoving(seg string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.writers {
		if n.segment == seg {
			return false
		}
	}
	if s.removing[seg] {
		return false
	}
	s.removing[seg] = true
	return true
}

// A blockWriter writes a part. A block is durable once it is appended.
type blockWriter struct {
	store *segmentStore
	name  partName
	part  int64
	next  int
	ended bool
}

// ready returns why the writer cannot go on, nil if it can.
func (w *blockWriter) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.ended {
		return segment.ErrClosed
	}
	return w.store.ready(ctx)
}

// Append implements [segment.BlockWriter].
func (w *blockWriter) Append(ctx context.Context, block []byte) error {
	return failed("append to", w.name, w.append(ctx, block))
}

func (w *blockWriter) append(ctx context.Context, block []byte) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	// The number makes it harmless to repeat a statement whose answer was lost.
	err := w.store.write(ctx, func(ctx context.Context) error {
		tag, err := w.store.db.pool.Exec(ctx, `INSERT INTO block (part, number, sum, data)
			SELECT $2, $3, $4, $5 FROM (SELECT 1 FROM crawl_group WHERE id = 0 AND opening = $1 FOR SHARE) AS own ON CONFLICT (part, number) DO UPDATE SET sum = excluded.sum`,
			w.store.db.opening, w.part, w.next, sumOf(block), notNil(block))
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrFenced
		}
		return err
	})
	if err != nil {
		return err
	}
	w.next++
	w.store.noteSound(w.part, w.next)
	return nil
}

// Sync implements [segment.BlockWriter].
func (w *blockWriter) Sync(ctx context.Context) error { return failed("sync", w.name, w.ready(ctx)) }

// Commit implements [segment.BlockWriter].
func (w *blockWriter) Commit(ctx context.Context) error {
	err := w.commit(ctx)
	if err == nil {
		w.leave()
		w.store.forgetSound(w.part)
	}
	return failed("commit", w.name, err)
}

func (w *blockWriter) commit(ctx context.Context) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	return w.store.write(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, w.store.db.pool, func(tx pgx.Tx) error {
			if err := w.store.db.fence(ctx, tx); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `UPDATE part SET committed = true, blocks = f.blocks, bytes = f.bytes
				FROM (SELECT count(*) AS blocks, coalesce(sum(length(data)), 0) AS bytes FROM block WHERE part = $1) AS f WHERE part.id = $1`, w.part)
			return err
		})
	})
}

// Close implements [segment.BlockWriter].
func (w *blockWriter) Close() error {
	w.leave()
	return nil
}

// leave ends the writer.
func (w *blockWriter) leave() {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	w.ended = true
	if s.writers[w.name] == w {
		delete(s.writers, w.name)
	}
}
