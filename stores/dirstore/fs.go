package dirstore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// FS is the file system below a [Store]. Implement it to store segments
// elsewhere than in the operating system's file system, or to test what a
// failing disk does to a store (see stores/dirstore/dirstoretest). Names are
// relative to the directory of the store, with slashes, and "." is that
// directory, which exists.
//
// Errors are those of the operating system, or like them: if a name does not
// exist, the error is fs.ErrNotExist, and if it already does, fs.ErrExist. The
// contents of a File and a directory need not be durable before Sync and
// SyncDir return. Methods may be called from many goroutines at once.
type FS interface {
	// Lstat describes a file or directory; it does not follow symbolic links.
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir returns the entries of a directory in any order.
	ReadDir(name string) ([]fs.DirEntry, error)
	// OpenFile opens a file with os.O_RDONLY, os.O_RDWR, or os.O_RDWR, os.O_CREATE
	// and os.O_EXCL together.
	OpenFile(name string, flag int) (File, error)
	// Mkdir makes a directory.
	Mkdir(name string) error
	// Rename atomically gives a file or directory another name, which is not
	// taken.
	Rename(from, to string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// SyncDir makes durable the names in a directory, and what they refer to.
	SyncDir(name string) error
	// Close closes the file system. Open files stay open.
	Close() error
}

// File is an open file of an [FS].
type File interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	// Sync makes the contents of the file durable. After an error it is unknown
	// which part of them is.
	Sync() error
	Close() error
}

// dirFS is a directory of the operating system; names cannot lead out of it.
type dirFS struct{ root *os.Root }

// openDir opens a directory, and makes it if it does not exist and may be made.
func openDir(dir string, readOnly bool) (FS, error) {
	if !readOnly {
		if err := makeDir(dir); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return dirFS{root}, nil
}

func (d dirFS) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(filepath.FromSlash(name)) }
func (d dirFS) Mkdir(name string) error                { return d.root.Mkdir(filepath.FromSlash(name), 0o777) }
func (d dirFS) Remove(name string) error               { return d.root.Remove(filepath.FromSlash(name)) }
func (d dirFS) Close() error                           { return d.root.Close() }

func (d dirFS) Rename(from, to string) error {
	return d.root.Rename(filepath.FromSlash(from), filepath.FromSlash(to))
}

func (d dirFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (d dirFS) OpenFile(name string, flag int) (File, error) {
	f, err := d.root.OpenFile(filepath.FromSlash(name), flag, 0o666)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// SyncDir does nothing on Windows, which has no such call and needs none: it
// keeps names in a journal.
func (d dirFS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := d.root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeDir makes a directory and its missing parents, and makes durable the
// names of those it made. An empty one may have been made by a process that was
// killed right after.
func makeDir(dir string) error {
	var made []string
	if entries, err := os.ReadDir(dir); err == nil && len(entries) == 0 {
		made = append(made, dir)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, d := range made {
		root, err := os.OpenRoot(filepath.Dir(d))
		if err != nil {
			return err
		}
		above := dirFS{root}
		if err := errors.Join(above.SyncDir("."), above.Close()); err != nil {
			return err
		}
	}
	return nil
}

// readDir returns the entries of a directory, sorted by name.
func readDir(f FS, name string) ([]fs.DirEntry, error) {
	entries, err := f.ReadDir(name)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}
