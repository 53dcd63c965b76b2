package logcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// A manifest that has lost its end, cut off where a record ends, is a whole manifest of an
// older state: the tables that were added since would be removed as a crash's leftovers, and
// read by nobody. So the name of an empty file beside it says how far it was synced. That
// file is made after each sync for which there is room, before the engine relies on it; its
// name is not synced, so after a power failure it may be an older one, or none. A name that
// is missing says less, and never something wrong.
const (
	ManifestPrefix = "MANIFEST-"
	SyncedPrefix   = "SYNCED-"
)

// IsManifest reports whether a file is a manifest.
func IsManifest(name string) bool { return strings.HasPrefix(filepath.Base(name), ManifestPrefix) }

// syncedName returns the beginning of the names that say how far a manifest was synced.
func syncedName(manifest string) string {
	return SyncedPrefix + strings.TrimPrefix(manifest, ManifestPrefix) + "-"
}

// SyncedSize returns how far a manifest was synced at least.
func SyncedSize(names []string, manifest string) (size int64) {
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, syncedName(manifest)); ok {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				size = max(size, n)
			}
		}
	}
	return size
}

// ManifestNames makes the files whose names say how far a manifest was synced. It is for one
// database, and may be used from many goroutines. FS must not wait for space on the disk: what
// waited would keep the space of the tables that the change of the manifest has replaced.
type ManifestNames struct {
	FS     vfs.FS
	IsFull func(error) bool // whether an error means that the disk is full

	mu   sync.Mutex
	last string // the last file that was made
}

// Begin is to be called before a file is created. If that is a manifest it removes the files of
// manifests that are not in use, of which the new one may have the number of one that a crash
// left unfinished. The engine makes its marker later, and syncs the directory before.
func (m *ManifestNames) Begin(name string) error {
	if !IsManifest(name) {
		return nil
	}
	dir := filepath.Dir(name)
	names, err := m.FS.List(dir)
	if err != nil {
		return err
	}
	current := CurrentManifest(names)
	for _, old := range names {
		if strings.HasPrefix(old, SyncedPrefix) && (current == "" || !strings.HasPrefix(old, syncedName(current))) {
			err = errors.Join(err, m.FS.Remove(m.FS.PathJoin(dir, old)))
		}
	}
	return err
}

// Synced is to be called after a file was synced that has so many bytes. If it is a manifest,
// it makes the file whose name says so; on a full disk there is none.
func (m *ManifestNames) Synced(file string, size int64) error {
	if !IsManifest(file) {
		return nil
	}
	prefix := m.FS.PathJoin(filepath.Dir(file), syncedName(filepath.Base(file)))
	name := prefix + strconv.FormatInt(size, 10)
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == m.last {
		return nil
	}
	switch err := storedir.MakeEmpty(m.FS, name); {
	case m.IsFull(err):
		return nil
	case err != nil:
		return err
	}
	if strings.HasPrefix(m.last, prefix) {
		_ = m.FS.Remove(m.last) // the largest counts
	}
	m.last = name
	return nil
}

var ErrShort = errors.New("it has lost its end")

// CurrentManifest returns the name of the manifest in use.
func CurrentManifest(names []string) string {
	last, manifest := "", ""
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, "marker.manifest."); ok && text > last {
			last = text
			_, manifest, _ = strings.Cut(text, ".")
		}
	}
	return manifest
}

// CheckManifest distinguishes damage of the manifest from what a crash has cut off, which the
// engine does not. names are those in its directory.
func CheckManifest(under vfs.FS, path string, names []string) (Records, error) {
	r, err := ReadFile(under, path, 0)
	if err != nil {
		return r, err
	}
	if r.later || r.whole || r.altered {
		err = ErrRecord
	} else if synced := SyncedSize(names, filepath.Base(path)); r.End < synced {
		err = fmt.Errorf("%w: it was synced up to %d", ErrShort, synced)
	}
	if err != nil {
		return Records{}, damage.At(path, r.End, err)
	}
	return r, nil
}

// LeastLog returns the number of the first log that the engine needs, as the manifest has
// it: older ones are in tables. Zero means that the manifest does not say, as long as a
// new store has never been flushed.
func LeastLog(under vfs.FS, path string) (number uint64, err error) {
	names, err := under.List(path)
	if err != nil {
		return 0, err
	}
	name := CurrentManifest(names)
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
	err = EachRecord(f, min(info.Size(), MaxSize), 0, func(edit []byte) {
		if n := logOf(edit); n > 0 {
			number = n
		}
	}, func(int64) {})
	return number, err
}

// logOf returns the number of the first log that is needed after a change in the
// manifest; zero if the change does not affect it.
func logOf(edit []byte) uint64 {
	const comparator, LogNumber, nextFile, lastSequence, prevLog = 1, 2, 3, 4, 9
	number := func() uint64 {
		v, n := binary.Uvarint(edit)
		edit = edit[max(n, 0):]
		return v
	}
	for len(edit) > 0 { // these fields come first in every change
		switch number() {
		case comparator:
			edit = edit[min(number(), uint64(len(edit))):]
		case LogNumber:
			return number()
		case nextFile, lastSequence, prevLog:
			number()
		default:
			return 0
		}
	}
	return 0
}
