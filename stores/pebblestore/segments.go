package pebblestore

import (
	"context"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
)

// segmentStore is the store of segments. Like those of the database, its changes wait for
// room on the disk and for a backup.
type segmentStore struct {
	*dirstore.Store
	db *DB
}

// change makes a change when changes may be made.
func (d *DB) change(ctx context.Context, closed error, do func() error) error {
	if err := d.changes.enter(ctx, d.closing, closed); err != nil {
		return err
	}
	defer d.changes.leave()
	return do()
}

func (s *segmentStore) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	if err := s.db.space.Wait(ctx, segment.ErrClosed); err != nil {
		return nil, err
	}
	var w segment.BlockWriter
	err := s.db.space.Retry(ctx, false, func() error {
		if err := s.db.starts.enter(ctx, s.db.closing, segment.ErrClosed); err != nil {
			return err
		}
		defer s.db.starts.leave()
		return s.db.change(ctx, segment.ErrClosed, func() (err error) {
			w, err = s.Store.Append(ctx, seg, part, keep)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return &segmentWriter{w, s.db}, nil
}

// Remove implements [segment.Store].
func (s *segmentStore) Remove(ctx context.Context, seg string) error {
	return s.db.change(ctx, segment.ErrClosed, func() error { return s.Store.Remove(ctx, seg) })
}

// segmentWriter retries an append for which there was no room: a block that
// could not be written leaves nothing behind.
type segmentWriter struct {
	segment.BlockWriter
	db *DB
}

func (w *segmentWriter) Append(ctx context.Context, block []byte) error {
	if err := w.db.space.Wait(ctx, segment.ErrClosed); err != nil {
		return err
	}
	return w.retry(ctx, func() error { return w.BlockWriter.Append(ctx, block) })
}

// Commit is retried only if the end of the part could not be written: any later
// failure is dirstore.ErrBroken.
func (w *segmentWriter) Commit(ctx context.Context) error {
	return w.retry(ctx, func() error { return w.BlockWriter.Commit(ctx) })
}

func (w *segmentWriter) retry(ctx context.Context, do func() error) error {
	return w.db.space.Retry(ctx, false, func() error { return w.db.change(ctx, segment.ErrClosed, do) })
}
