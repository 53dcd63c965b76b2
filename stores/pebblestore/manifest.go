package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
)

// A manifest that has lost its end, cut off where a record ends, is a whole manifest of an
// older state: the tables that were added since would be removed as a crash's leftovers, and
// read by nobody. So the name of an empty file beside it says how far it was synced. That
// file is made after each sync for which there is room, before the engine relies on it; its
// name is not synced, so after a power failure it may be an older one, or none. A name that
// is missing says less, and never something wrong.
const (
	manifestPrefix = "MANIFEST-"
	syncedPrefix   = "SYNCED-"
)

// isManifest reports whether a file is a manifest.
func isManifest(name string) bool { return strings.HasPrefix(filepath.Base(name), manifestPrefix) }

// syncedName returns the beginning of the names that say how far a manifest was synced.
func syncedName(manifest string) string {
	return syncedPrefix + strings.TrimPrefix(manifest, manifestPrefix) + "-"
}

// syncedSize returns how far a manifest was synced at least.
func syncedSize(names []string, manifest string) (size int64) {
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, syncedName(manifest)); ok {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				size = max(size, n)
			}
		}
	}
	return size
}

// beginManifest removes what is said of manifests that are not in use, of which the one that
// is about to be made may have the number of one that a crash left unfinished. The engine
// makes its marker later, and the fence syncs the directory before.
func (f *fence) beginManifest(name string) error {
	dir := filepath.Dir(name)
	names, err := f.FS.List(dir)
	if err != nil {
		return err
	}
	current := currentManifest(names)
	for _, old := range names {
		if strings.HasPrefix(old, syncedPrefix) && (current == "" || !strings.HasPrefix(old, syncedName(current))) {
			err = errors.Join(err, f.FS.Remove(f.FS.PathJoin(dir, old)))
		}
	}
	return err
}

// nameSynced makes the file whose name says how far a manifest was synced. On a full disk
// there is none: whoever waited would keep the room that the tables have which the change of
// the manifest has replaced.
func (f *fencedFile) nameSynced() error {
	disk, dir := f.fence.FS, filepath.Dir(f.name)
	if waits, ok := disk.(spaceFS); ok {
		disk = waits.FS
	}
	name := disk.PathJoin(dir, syncedName(filepath.Base(f.name))+strconv.FormatInt(f.written, 10))
	if name == f.synced {
		return nil
	}
	switch err := makeEmpty(disk, name); {
	case isFull(err):
		return nil
	case err != nil:
		return err
	}
	if f.synced != "" {
		_ = disk.Remove(f.synced) // the largest counts
	}
	f.synced = name
	return nil
}

var errShort = errors.New("it has lost its end")

// currentManifest returns the name of the manifest in use.
func currentManifest(names []string) string {
	last, manifest := "", ""
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, "marker.manifest."); ok && text > last {
			last = text
			_, manifest, _ = strings.Cut(text, ".")
		}
	}
	return manifest
}

// checkManifest distinguishes damage of the manifest from what a crash has cut off, which the
// engine does not. names are those in its directory.
func checkManifest(under vfs.FS, path string, names []string) (records, error) {
	r, err := recordsOf(under, path, 0)
	if err != nil {
		return r, err
	}
	if r.later || r.whole || r.altered {
		err = errRecord
	} else if synced := syncedSize(names, filepath.Base(path)); r.end < synced {
		err = fmt.Errorf("%w: it was synced up to %d", errShort, synced)
	}
	if err != nil {
		return records{}, fmt.Errorf("%w: %w", ErrDamaged, &crawldb.CorruptError{File: path, Offset: r.end, Err: err})
	}
	return r, nil
}

// leastLog returns the number of the first log that the engine needs, as the manifest has
// it: older ones are in tables. Zero means that the manifest does not say, as long as a
// new store has never been flushed.
func leastLog(under vfs.FS, path string) (number uint64, err error) {
	names, err := under.List(path)
	if err != nil {
		return 0, err
	}
	name := currentManifest(names)
	if name == "" {
		return 0, nil
	}
	f, err := under.Open(under.PathJoin(path, name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	err = eachRecord(f, min(info.Size(), mostRecords), 0, func(edit []byte) {
		if n := logOf(edit); n > 0 {
			number = n
		}
	}, func(int64) {})
	return number, err
}

// logOf returns the number of the first log that is needed after a change in the
// manifest; zero if the change does not affect it.
func logOf(edit []byte) uint64 {
	const comparator, logNumber, nextFile, lastSequence, prevLog = 1, 2, 3, 4, 9
	number := func() uint64 {
		v, n := binary.Uvarint(edit)
		edit = edit[max(n, 0):]
		return v
	}
	for len(edit) > 0 { // these fields come first in every change
		switch number() {
		case comparator:
			edit = edit[min(number(), uint64(len(edit))):]
		case logNumber:
			return number()
		case nextFile, lastSequence, prevLog:
			number()
		default:
			return 0
		}
	}
	return 0
}
