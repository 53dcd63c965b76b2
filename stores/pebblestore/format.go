package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// The contents of a store's directory.
const (
	lockName     = "LOCK"       // locked while the store is open; holds the process number
	formatName   = "FORMAT"     // what this is, and in which version
	newName      = "FORMAT.new" // stands for FORMAT until a new store is complete
	databaseName = "db"
	segmentsName = "segments"
	configName   = "recrawl.yaml" // of the command; the store leaves it alone
)

// FORMAT holds this, a decimal version and a newline. The version changes when an older
// package could not read what a newer one has written, or would spoil it. Version 2 has
// statistics of hosts; a store of version 1 has none, and becomes version 2 when it is
// opened. Version 3 has an index of due records, which the first selection builds for a
// store of an older version. Version 4 has leases in a table of their own; those in the
// records of an older store apply until the records are written again. Version 5 has
// tallies in the index, which is built anew for an older store. Version 6 has short
// records in the index entries, and version 7 entries that leases leave alone; both
// build it anew, too. So does version 8, in which records have numbers for names in
// Meta, so that more of them are short; records of an older version stay as they are
// until they are written again. Version 9 adds up the inlinks of a page when they are
// read; those of an older version are the first of the sum. Version 10 has layers of
// inlinks; those of an older version are the oldest. Version 11 has the time alone in the index
// entries of pages that are not due, and builds the index anew.
const (
	formatMagic   = "recrawl pebblestore "
	formatVersion = 11
	oldestVersion = 1
)

// FormatVersion is the version of the format that this package writes. It opens stores of
// every earlier version, and makes them ones of this version.
const FormatVersion = formatVersion

var errFormat = errors.New("not a version number")

// home is a directory claimed by this handle.
type home struct {
	fs    vfs.FS
	dir   string // absolute and without symbolic links
	lock  io.Closer
	fresh bool // it contains no store yet
}

// claim locks dir, which is a store, empty, or does not exist. In tests another
// file system replaces the machine's.
func claim(dir string, readOnly bool, stand vfs.FS) (_ *home, err error) {
	h := &home{fs: stand, dir: dir}
	if stand == nil {
		h.fs = storedir.Machine()
	}
	switch {
	case readOnly:
	case stand != nil:
		err = h.fs.MkdirAll(dir, 0o755)
	default:
		if err = os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil && stand == nil {
		if h.dir, err = filepath.Abs(dir); err == nil {
			// The engine identifies the directories that this process has open
			// by name, so a directory must have one name.
			h.dir, err = filepath.EvalSymlinks(h.dir)
		}
	}
	if err != nil {
		return nil, err
	}
	// Look before locking: the lock is a file, and a directory that is not a
	// store is left as it is.
	if fresh, err := h.inspect(); err != nil {
		return nil, err
	} else if readOnly {
		if fresh {
			return nil, fmt.Errorf("%w: %s does not exist", ErrNotStore, formatName)
		}
		h.lock, err = storedir.LockShared(h.file(lockName))
		return h, err
	}
	if h.lock, err = h.fs.Lock(h.file(lockName)); err != nil {
		return nil, err
	}
	h.fresh, err = h.inspect()
	switch {
	case err != nil:
	case h.fresh:
		err = h.begin()
	default:
		if err = dropRunDir(h.fs, h.dir); err != nil {
			break
		}
		if err = h.fs.RemoveAll(h.file(stagingName)); err != nil { // a killed backup has left it
			break
		}
		// The process that made the store may have been killed before the name
		// of FORMAT was durable, and what follows relies on it.
		if err = storedir.SyncDir(h.fs, h.dir); err == nil {
			err = h.upgrade()
		}
	}
	if err != nil {
		return nil, errors.Join(err, h.lock.Close())
	}
	return h, nil
}

func (h *home) file(name string) string { return filepath.Join(h.dir, name) }

// inspect reports whether the directory still needs a store.
func (h *home) inspect() (fresh bool, err error) {
	text, err := storedir.ReadFile(h.fs, h.file(formatName))
	if err == nil {
		return false, checkFormat(string(text))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	names, err := h.fs.List(h.dir)
	if err != nil {
		return false, err
	}
	begun := false
	for _, name := range names {
		begun = begun || name == newName
	}
	for _, name := range names {
		switch name {
		case lockName, newName, logcheck.SealName, logcheck.NewSealName, configName:
		case databaseName, segmentsName:
			if !begun {
				return false, fmt.Errorf("%w: %s exists, but no %s", ErrNotStore, name, formatName)
			}
		default:
			return false, fmt.Errorf("%w: %s exists, but no %s", ErrNotStore, name, formatName)
		}
	}
	return true, nil
}

func checkFormat(text string) error {
	rest, ok := strings.CutPrefix(text, formatMagic)
	if !ok {
		return fmt.Errorf("%w: %s has other contents", ErrNotStore, formatName)
	}
	v, err := strconv.Atoi(strings.TrimSuffix(rest, "\n"))
	if err != nil || text != formatMagic+strconv.Itoa(v)+"\n" {
		return damage.At(formatName, int64(len(formatMagic)), errFormat)
	}
	if v < oldestVersion || v > formatVersion {
		return fmt.Errorf("%w: %s says %d; this is version %d", ErrVersion, formatName, v, formatVersion)
	}
	return nil
}

// begin marks the directory as a store being made, and removes what an earlier
// attempt left that never reached confirm.
func (h *home) begin() error {
	if err := h.writeNew(); err != nil {
		return err
	}
	if err := errors.Join(storedir.SyncDir(h.fs, h.dir), storedir.SyncDir(h.fs, filepath.Dir(h.dir))); err != nil {
		return err
	}
	// The seal of the removed files would make the new ones count as damaged.
	if err := storedir.Remove(h.fs, h.file(logcheck.SealName)); err != nil {
		return err
	}
	return h.fs.RemoveAll(h.file(databaseName))
}

// upgrade gives a store of an older version the mark of this one.
func (h *home) upgrade() error {
	text, err := storedir.ReadFile(h.fs, h.file(formatName))
	if err != nil || string(text) == formatMagic+strconv.Itoa(formatVersion)+"\n" {
		return err
	}
	if err := h.writeNew(); err != nil {
		return err
	}
	return h.confirm()
}

// writeNew writes what will become FORMAT. An existing file is overwritten:
// Create would remove it first, and for a moment nothing would say that the
// other files are ours.
func (h *home) writeNew() error {
	name, text := h.file(newName), fmt.Appendf(nil, "%s%d\n", formatMagic, formatVersion)
	info, err := h.fs.Stat(name)
	if err != nil || info.Size() > int64(len(text)) {
		return storedir.WriteFile(h.fs, name, text)
	}
	f, err := h.fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// confirm makes the directory a store.
func (h *home) confirm() error {
	if err := h.fs.Rename(h.file(newName), h.file(formatName)); err != nil {
		return err
	}
	return storedir.SyncDir(h.fs, h.dir)
}
