package pebblestore

import (
	"context"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
)

// segmentStore is the store of segments; its writers wait for room like those
// of the database.
type segmentStore struct {
	*dirstore.Store
	space *space
}

func (s *segmentStore) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	if err := s.space.wait(ctx, segment.ErrClosed); err != nil {
		return nil, err
	}
	var w segment.BlockWriter
	err := s.space.retry(ctx, false, func() (err error) {
		w, err = s.Store.Append(ctx, seg, part, keep)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &segmentWriter{w, s.space}, nil
}

// segmentWriter retries an append for which there was no room: a block that
// could not be written leaves nothing behind.
type segmentWriter struct {
	segment.BlockWriter
	space *space
}

func (w *segmentWriter) Append(ctx context.Context, block []byte) error {
	if err := w.space.wait(ctx, segment.ErrClosed); err != nil {
		return err
	}
	return w.space.retry(ctx, false, func() error { return w.BlockWriter.Append(ctx, block) })
}

// Commit is retried only if the end of the part could not be written: any later
// failure is dirstore.ErrBroken.
func (w *segmentWriter) Commit(ctx context.Context) error {
	return w.space.retry(ctx, false, func() error { return w.BlockWriter.Commit(ctx) })
}
