package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// vacant checks that a new store can be made.
func vacant(disk vfs.FS, dir, newDir string) error {
	entries, err := disk.List(newDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty", newDir)
	}
	abs, err := filepath.Abs(newDir)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(real, filepath.Base(abs))
	}
	if rel, err := filepath.Rel(dir, abs); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return fmt.Errorf("%s is inside the store %s", newDir, dir)
	}
	return nil
}

// A work makes a new store in a working directory beside its place, and moves it there when
// it is complete. A mark in the working directory says that it may be removed; a process that works
// there holds the lock of the mark.
type work struct {
	disk      vfs.FS
	dir, mark string
	lock      io.Closer
}

// store is the new store in the working directory.
func (w *work) store() string { return filepath.Join(w.dir, "store") }

var (
	errNotLeft = errors.New("it exists, and is not left by an interrupted run")
	errAtWork  = errors.New("another run is working there")
)

// beginWork makes the working directory, or empties one that an interrupted run has left.
func beginWork(disk vfs.FS, dir, mark string) (*work, error) {
	w := &work{disk: disk, dir: dir, mark: filepath.Join(dir, mark)}
	entries, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = disk.MkdirAll(dir, 0o755)
	}
	if len(entries) > 0 {
		if _, err := disk.Stat(w.mark); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, errNotLeft)
		}
	}
	if err != nil {
		return nil, err
	}
	if w.lock, err = disk.Lock(w.mark); errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("%s: %w: %v", dir, errAtWork, err) // and not on the source, for whose end callers wait
	} else if err != nil {
		return nil, err
	}
	if err := errors.Join(disk.RemoveAll(w.store()), storedir.SyncDir(disk, dir)); err != nil {
		return nil, errors.Join(err, w.lock.Close())
	}
	return w, nil
}

// dropWork removes a working directory that an interrupted run has left.
func dropWork(disk vfs.FS, dir, mark string) error {
	if _, err := disk.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	w, err := beginWork(disk, dir, mark)
	if err != nil {
		return err
	}
	return w.drop()
}

// move gives the new store its place.
func (w *work) move(newDir string) error {
	err := w.disk.Remove(newDir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = w.disk.Rename(w.store(), newDir)
	}
	if err != nil {
		return errors.Join(err, w.lock.Close())
	}
	return errors.Join(w.drop(), storedir.SyncDir(w.disk, filepath.Dir(w.dir)))
}

// drop removes the working directory. The mark goes last, and a file that is open is not
// removed by every system, so another run may begin here meanwhile: what it makes stays.
func (w *work) drop() error {
	if err := errors.Join(w.disk.RemoveAll(w.store()), w.lock.Close()); err != nil {
		return err
	}
	if err := storedir.Remove(w.disk, w.mark); err != nil {
		return err
	}
	_ = w.disk.Remove(w.dir)
	return nil
}
