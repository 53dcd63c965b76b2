package storedir

import (
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReadOnlyFS is a file system in which nothing can be changed.
type ReadOnlyFS struct{ vfs.FS }

func (f ReadOnlyFS) Unwrap() vfs.FS { return f.FS }

func (ReadOnlyFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, ErrReadOnly }
func (ReadOnlyFS) Link(string, string) error                              { return ErrReadOnly }
func (ReadOnlyFS) Remove(string) error                                    { return ErrReadOnly }
func (ReadOnlyFS) RemoveAll(string) error                                 { return ErrReadOnly }
func (ReadOnlyFS) Rename(string, string) error                            { return ErrReadOnly }
func (ReadOnlyFS) MkdirAll(string, os.FileMode) error                     { return ErrReadOnly }

func (ReadOnlyFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, ErrReadOnly
}

func (ReadOnlyFS) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, ErrReadOnly
}

// Lock locks nothing: the lock of the store is enough, and this one would
// create a file.
func (ReadOnlyFS) Lock(string) (io.Closer, error) { return NoLock{}, nil }

type NoLock struct{}

func (NoLock) Close() error { return nil }

// notLocked handles a missing lock file: a copy of a store may have none.
func notLocked(err error) (io.Closer, error) {
	if Absent(err) {
		return NoLock{}, nil
	}
	return nil, err
}
