package pebblestore

import (
	"errors"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The small files beside the database, accessed through the engine's file
// system.

// mostText is more than any of them holds. A longer file is not ours, and is not read
// into memory.
const mostText = 1 << 20

func readFile(under vfs.FS, name string) ([]byte, error) {
	f, err := under.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, mostText))
	return data, errors.Join(err, f.Close())
}

// machine is the file system of the machine.
func machine() vfs.FS { return machineFS{vfs.Default} }

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

// absent reports whether an error means that there is no readable file.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || unreadable(err) }

// writeFile makes a file durable, but not its name.
func writeFile(under vfs.FS, name string, data []byte) error {
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

// makeEmpty makes a file of which only the name counts. That is not durable yet.
func makeEmpty(under vfs.FS, name string) error {
	f, err := under.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return f.Close()
}

// syncDir makes durable the names in a directory.
func syncDir(under vfs.FS, name string) error {
	f, err := under.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
