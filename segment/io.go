package segment

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Writer writes the part for records of type T.
type Writer[T Record] struct {
	w       BlockWriter
	buffers *Buffers
	at      string
}

// NewWriter opens the part for records of type T after its first keep blocks;
// see [Store].Append.
func NewWriter[T Record](ctx context.Context, s Store, segment string, keep int) (*Writer[T], error) {
	return NewWriterTo[T](ctx, s, segment, PartOf[T](), keep)
}

// NewWriterTo is [NewWriter] for a part of another name, such as that of one list:
// see [ListPart].
func NewWriterTo[T Record](ctx context.Context, s Store, segment, part string, keep int) (*Writer[T], error) {
	at := segment + "/" + part
	w, err := s.Append(ctx, segment, part, keep)
	if err != nil {
		return nil, fmt.Errorf("segment: append to %s: %w", at, err)
	}
	return &Writer[T]{w: w, buffers: buffersOf(s), at: at}, nil
}

// Append adds one block with these records, which may be none.
func (w *Writer[T]) Append(ctx context.Context, records []T) error {
	enc, err := w.buffers.take()
	if err != nil {
		return err
	}
	defer w.buffers.give(enc)
	block, err := encodeBlock(enc, records)
	if err != nil {
		return err
	}
	if err := w.w.Append(ctx, block); err != nil {
		return fmt.Errorf("segment: append to %s: %w", w.at, err)
	}
	return nil
}

// Sync makes durable what was appended.
func (w *Writer[T]) Sync(ctx context.Context) error {
	if err := w.w.Sync(ctx); err != nil {
		return fmt.Errorf("segment: sync %s: %w", w.at, err)
	}
	return nil
}

// Commit makes the part durable and complete, and ends the writer.
func (w *Writer[T]) Commit(ctx context.Context) error {
	if err := w.w.Commit(ctx); err != nil {
		return fmt.Errorf("segment: commit %s: %w", w.at, err)
	}
	return nil
}

// Close ends the writer; unless Commit was called, the part stays open.
func (w *Writer[T]) Close() error { return w.w.Close() }

// Blocks yields the records of a committed part block by block, beginning with
// block number from. If the part was not committed, the error matches
// ErrNotFound.
func Blocks[T Record](ctx context.Context, s Store, segment string, from int) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		info, err := s.Stat(ctx, segment, PartOf[T]())
		if err == nil && !info.Committed {
			err = ErrNotFound
		}
		if err != nil {
			yield(nil, fmt.Errorf("segment: read %s/%s: %w", segment, PartOf[T](), err))
			return
		}
		for b, err := range Partial[T](ctx, s, segment, from) {
			if !yield(b, err) {
				return
			}
		}
	}
}

// Partial is [Blocks] for a part that may not be committed: it yields what is
// there.
func Partial[T Record](ctx context.Context, s Store, segment string, from int) iter.Seq2[[]T, error] {
	return PartialOf[T](ctx, s, segment, PartOf[T](), from)
}

// PartialOf is [Partial] for a part of another name.
func PartialOf[T Record](ctx context.Context, s Store, segment, part string, from int) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		dec, err := newDecoder()
		if err != nil {
			yield(nil, err)
			return
		}
		defer dec.close()
		n := max(from, 0)
		for block, err := range s.Read(ctx, segment, part, from) {
			var records []T
			if err == nil {
				if records, err = decodeBlock[T](dec, block); err != nil {
					err = &CorruptError{File: segment + "/" + part, Offset: int64(n), Err: err}
				}
			}
			if err != nil {
				yield(nil, fmt.Errorf("segment: read %s/%s: %w", segment, part, err))
				return
			}
			if !yield(records, nil) {
				return
			}
			n++
		}
	}
}

// Records yields the records of a committed part one by one.
func Records[T Record](ctx context.Context, s Store, segment string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for block, err := range Blocks[T](ctx, s, segment, 0) {
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, rec := range block {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
}

// Has reports whether a segment has the committed part for records of type T.
func Has[T Record](ctx context.Context, s Store, segment string) (bool, error) {
	return Committed(ctx, s, segment, PartOf[T]())
}

// Committed reports whether a segment has the named part, complete.
func Committed(ctx context.Context, s Store, segment, part string) (bool, error) {
	info, err := s.Stat(ctx, segment, part)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return info.Committed, err
}
