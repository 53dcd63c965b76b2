package storedir

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MaxText is more than any of the small files beside the database holds. A longer file is not ours, and is not read
// into memory.
const MaxText = 1 << 20

// ReadFile returns the first MaxText bytes of a file.
func ReadFile(under vfs.FS, name string) ([]byte, error) {
	f, err := under.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxText))
	return data, errors.Join(err, f.Close())
}

// Machine returns the file system of the machine, with locks of this package.
func Machine() vfs.FS { return machineFS{vfs.Default} }

// machineFS has locks that no other handle of this process can lose, and does not block
// when a pipe is in the place of a file: a pipe cannot be read, and is reported like a
// failing disk.
type machineFS struct{ vfs.FS }

func (f machineFS) Unwrap() vfs.FS { return f.FS }

func (machineFS) Lock(name string) (io.Closer, error) { return lockFile(name) }

var errIrregular = errors.New("not a regular file")

func (f machineFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if info, err := f.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIrregular}
	}
	return f.FS.Open(name, o...)
}

// Absent reports whether an error means that there is no readable file.
func Absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || Unreadable(err) }

// WriteFile makes a file durable, but not its name.
func WriteFile(under vfs.FS, name string, data []byte) error {
	f, err := under.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// MakeEmpty makes an empty file; only its name counts. That is not durable yet.
func MakeEmpty(under vfs.FS, name string) error {
	f, err := under.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return f.Close()
}

// SyncDir makes durable the names in a directory.
func SyncDir(under vfs.FS, name string) error {
	f, err := under.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Unreadable reports whether a file exists and cannot be read, because the disk fails
// or a link leads to itself, for example; not whether opening it is forbidden.
func Unreadable(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && (failed.Op == "read" || errors.Is(err, syscall.ELOOP))
}

// Remove removes a file, if it exists.
func Remove(under vfs.FS, name string) error {
	if err := under.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
