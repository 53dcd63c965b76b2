package pebblestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// runName is the directory for files of the process that has the store open.
const runName = "run"

// formerRunNames are the files that earlier versions had for the same purpose. They are
// removed when the store is opened.
func formerRunNames() []string { return []string{"NOTE", "NOTE.new", "ASK", "ANSWER", "ANSWER.new"} }

// RunDir returns the path of a directory in the store in dir for files by which a process that
// has the store open communicates with others: a status, a request, a socket. The process makes
// the directory when it needs it. Open removes one that a killed process has left, and
// Close removes it with all that is in it. It is not part of the store: Verify, Backup and
// Salvage ignore it.
func RunDir(dir string) string { return filepath.Join(dir, runName) }

// InUse reports whether a process, this or another, has the store in dir open for writing.
// It changes nothing. A directory without a store is not in use.
func InUse(dir string) (bool, error) {
	lock, err := storedir.LockShared(filepath.Join(dir, lockName))
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}

// LastOpened returns a time that changes whenever a process opens the store in dir for writing; zero if
// there is no store. It changes nothing.
func LastOpened(dir string) (time.Time, error) {
	info, err := os.Stat(filepath.Join(dir, databaseName)) // the engine begins a log in it
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Dir returns the directory of the store, as an absolute path without symbolic links.
func (d *DB) Dir() string { return d.dir }

// dropRunDir removes what a process left that had the store open.
func dropRunDir(under vfs.FS, dir string) error {
	errs := []error{removeRunDir(under, dir)}
	for _, name := range formerRunNames() {
		errs = append(errs, storedir.Remove(under, filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}

// removeRunDir removes the directory of RunDir. Another process may put a file there at that moment:
// then it tries again.
func removeRunDir(under vfs.FS, dir string) error {
	err := under.RemoveAll(RunDir(dir))
	for n := 0; n < 100 && errors.Is(err, fs.ErrExist); n++ { // "directory not empty" is one, too
		err = under.RemoveAll(RunDir(dir))
	}
	return err
}
