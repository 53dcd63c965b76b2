package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/recrawl/recrawl/segment"
)

// ErrBroken says that a writer can no longer be used: after the failure, it is
// not known what is on the disk. Close it and append again. A writer is
// unchanged by other write failures.
var ErrBroken = errors.New("writer is broken")

// writer is a [segment.BlockWriter].
type writer struct {
	store *Store
	names [2]string // segment and part

	mu     sync.Mutex // for the Close of the store, which may come at any time
	f      File       // nil once the writer has ended
	broken error      // why the file can no longer be trusted
	frame  []byte
	sum    int64 // of the sizes of the blocks
	linked bool  // the names of the file and its directory are durable

	// Guarded by the lock of the store, and written with both held.
	ready  bool
	blocks int
	end    int64 // where the next block goes
}

func (w *writer) path() string { return path.Join(w.names[0], w.names[1]) + openSuffix }

// start makes the writer ready, or releases the part.
func (w *writer) start(ctx context.Context, keep int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.open(ctx, keep)
	if err != nil {
		if w.f != nil {
			w.f.Close()
			w.f = nil
		}
		w.release()
	}
	return err
}

// open opens the file after its first keep blocks, and makes it if it does not
// exist.
func (w *writer) open(ctx context.Context, keep int) error {
	s := w.store
	var size int64
	found := false
	err := s.use(ctx, nil, func() error {
		if _, err := s.fs.Lstat(path.Join(w.names[0], w.names[1])); err == nil {
			return segment.ErrCommitted
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		var err error
		w.f, size, err = openFile(s.fs, w.path(), os.O_RDWR)
		found = err == nil
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if keep > 0 {
			return fmt.Errorf("%d blocks of none: %w", keep, segment.ErrNotFound)
		}
		if err := s.fs.Mkdir(w.names[0]); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		w.f, err = s.fs.OpenFile(w.path(), os.O_RDWR|os.O_CREATE|os.O_EXCL)
		return err
	})
	if err != nil {
		return err
	}
	blocks, end := 0, int64(0)
	if found {
		b, err := openBlocks(w.f, size, filepath.Join(s.dir, w.path()), false)
		if err != nil {
			return err
		}
		for keep < 0 || b.number < keep {
			if err := ctx.Err(); err != nil {
				return err
			}
			number, at := b.number, b.at
			block, err := b.next(false)
			if err == io.EOF {
				break
			}
			// The blocks that are kept are written once more: if the last sync
			// failed, they may be in memory only and pass for written, so that
			// the next sync would promise what is not on the disk.
			if err == nil {
				err = w.put(number, block, at)
			}
			if err != nil {
				return err
			}
		}
		if b.number < keep {
			return fmt.Errorf("%d blocks of %d: %w", keep, b.number, segment.ErrNotFound)
		}
		blocks, end = b.number, b.at
	}
	if size > end {
		// What is dropped must not reappear after what is written now, whatever
		// the machine does.
		if err := w.f.Truncate(end); err != nil {
			return err
		}
		if err := w.f.Sync(); err != nil {
			return err
		}
	}
	if _, err := w.f.WriteAt(appendHead(nil, w.path()), 0); err != nil {
		return err
	}
	end = max(end, headSize)
	w.sum = end - headSize - frameSize*int64(blocks)
	return s.use(ctx, nil, func() error {
		w.ready, w.blocks, w.end = true, blocks, end
		return nil
	})
}

// put writes a block.
func (w *writer) put(number int, block []byte, at int64) error {
	w.frame = appendFrame(w.frame[:0], number, block)
	_, err := w.f.WriteAt(w.frame, at)
	if err == nil {
		_, err = w.f.WriteAt(block, at+frameSize)
	}
	return err
}

// release releases the part.
func (w *writer) release() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.store.writers[w.names] == w {
		delete(w.store.writers, w.names)
	}
}

// use calls f if the writer has not ended. A writer that f breaks stays broken:
// after a failed write or sync it is unknown what is on the disk.
func (w *writer) use(ctx context.Context, op string, f func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := ctx.Err()
	switch {
	case w.f == nil:
		err = segment.ErrClosed
	case err != nil:
	case w.broken != nil:
		err = fmt.Errorf("%w: %w", ErrBroken, w.broken)
	default:
		if err = f(); err != nil && w.broken != nil {
			err = fmt.Errorf("%w: %w", ErrBroken, err)
		}
	}
	if err != nil {
		return failed(op, err, w.names[:]...)
	}
	return nil
}

// Append adds a block of up to 1 GiB.
func (w *writer) Append(ctx context.Context, block []byte) error {
	return w.use(ctx, "append to", func() error {
		if len(block) > maxBlock {
			return fmt.Errorf("a block of %d bytes is too large", len(block))
		}
		if err := w.put(w.blocks, block, w.end); err != nil {
			// The disk may be full for a moment only.
			w.broken = w.f.Truncate(w.end)
			return err
		}
		w.sum += int64(len(block))
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.blocks++
		w.end += frameSize + int64(len(block))
		return nil
	})
}

// Sync makes durable what was appended.
func (w *writer) Sync(ctx context.Context) error {
	return w.use(ctx, "sync", w.sync)
}

func (w *writer) sync() error {
	if w.broken = w.f.Sync(); w.broken != nil || w.linked {
		return w.broken
	}
	if w.broken = w.syncNames(); w.broken == nil {
		w.linked = true
	}
	return w.broken
}

// syncNames makes durable the names of the file and of its directory.
func (w *writer) syncNames() error {
	s := w.store
	if err := s.keep(func() error { return nil }); err != nil {
		return err
	}
	return errors.Join(s.syncNames(w.names[0]), s.drop())
}

// Commit makes the part durable and complete.
func (w *writer) Commit(ctx context.Context) error {
	return w.use(ctx, "commit", func() error {
		if _, err := w.f.WriteAt(appendFoot(nil, w.blocks, w.sum), w.end); err != nil {
			w.broken = w.f.Truncate(w.end) // as in Append
			return err
		}
		err := w.f.Sync()
		if err != nil {
			w.broken = err
			return err
		}
		// Some systems do not rename a file that is open.
		if err = w.f.Close(); err == nil {
			err = w.store.use(context.Background(), nil, func() error {
				delete(w.store.settled, w.names[0])
				return w.store.fs.Rename(w.path(), path.Join(w.names[0], w.names[1]))
			})
		}
		if err == nil {
			err = w.syncNames()
		}
		w.broken = err
		w.f = nil
		w.release()
		return err
	})
}

// Close ends the writer.
func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	w.release()
	if err != nil {
		return failed("close", err, w.names[:]...)
	}
	return nil
}
