package pebblestore

import (
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readOnlyFS is a file system in which nothing can be changed.
type readOnlyFS struct{ vfs.FS }

func (f readOnlyFS) Unwrap() vfs.FS { return f.FS }

func (readOnlyFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, ErrReadOnly }
func (readOnlyFS) Link(string, string) error                              { return ErrReadOnly }
func (readOnlyFS) Remove(string) error                                    { return ErrReadOnly }
func (readOnlyFS) RemoveAll(string) error                                 { return ErrReadOnly }
func (readOnlyFS) Rename(string, string) error                            { return ErrReadOnly }
func (readOnlyFS) MkdirAll(string, os.FileMode) error                     { return ErrReadOnly }

func (readOnlyFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, ErrReadOnly
}

func (readOnlyFS) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, ErrReadOnly
}

// Lock locks nothing: the lock of the store is enough, and this one would
// create a file.
func (readOnlyFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

type noLock struct{}

func (noLock) Close() error { return nil }

// notLocked handles a missing lock file: a copy of a store may have none.
func notLocked(err error) (io.Closer, error) {
	if absent(err) {
		return noLock{}, nil
	}
	return nil, err
}
