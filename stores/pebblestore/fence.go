package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fence stands between the engine and the file system and makes the first
// failure of a write the last thing that happens to the disk.
//
// The engine does not survive such failures by itself. It reports some by
// Logger.Fatalf, which by default ends the process. It answers others by a
// panic: an error of the write-ahead log while it is rotated is one with a mutex
// released that a deferred call releases again, which no recover can catch; a
// directory that cannot be synced is one on a goroutine of its own. And it
// repeats a table that cannot be written at once and for ever.
//
// So it is never told. After the first failed write, sync, creation or renaming
// nothing is written, renamed or removed any more: the disk stays as it was at
// that moment, as after a crash, from which the engine knows how to recover.
// What the engine still writes to logs, manifests and markers is taken and
// dropped; the making of tables, which once it is open it does only on goroutines
// of its own, is held up until release, and then fails, which it does know how to take. Above,
// every call checks failure after it has used the engine and before it says
// that all is well, so nothing that was dropped is ever acknowledged.
type fence struct {
	vfs.FS
	cause    atomic.Pointer[error]
	onFail   func(error)
	down     chan struct{} // closed at the failure
	opened   atomic.Bool   // from here on only background work makes tables
	released chan struct{}
	once     sync.Once
	ghosts   vfs.FS
}

func newFence(under vfs.FS, onFail func(error)) *fence {
	return &fence{FS: under, onFail: onFail, down: make(chan struct{}), released: make(chan struct{}), ghosts: vfs.NewMem()}
}

// failure returns the error that ended the use of the disk; nil if none has.
func (f *fence) failure() error {
	if f == nil {
		return nil
	}
	if p := f.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// fail ends the use of the disk, unless it has ended before.
func (f *fence) fail(err error) {
	if f.cause.CompareAndSwap(nil, &err) {
		close(f.down)
		f.onFail(err)
	}
}

// release lets the makers of tables go. It comes with the end of the engine.
func (f *fence) release() { f.once.Do(func() { close(f.released) }) }

func (f *fence) Unwrap() vfs.FS { return f.FS }

func isTable(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".sst" || ext == ".blob"
}

// open guards what make returns, or stands in for it.
func (f *fence) open(name string, make func() (vfs.File, error)) (vfs.File, error) {
	if f.failure() == nil {
		file, err := make()
		if err == nil {
			return &fencedFile{File: file, fence: f, name: name, table: isTable(name)}, nil
		}
		f.fail(err)
	}
	if !isTable(name) {
		return f.ghosts.Create("ghost", vfs.WriteCategoryUnspecified)
	}
	if f.opened.Load() {
		<-f.released
		return nil, f.failure()
	}
	// Opening waits for the tables that it makes of the log, and repeats them for
	// ever, so they are made in memory; what was opened so is closed at once.
	return f.ghosts.Create(filepath.Base(name), vfs.WriteCategoryUnspecified)
}

// Open opens a table where open has made it.
func (f *fence) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.failure() != nil && isTable(name) {
		if file, err := f.ghosts.Open(filepath.Base(name), opts...); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

// Stat describes a table where open has made it.
func (f *fence) Stat(name string) (vfs.FileInfo, error) {
	if f.failure() != nil && isTable(name) {
		if info, err := f.ghosts.Stat(filepath.Base(name)); err == nil {
			return info, nil
		}
	}
	return f.FS.Stat(name)
}

// Create makes durable, before it makes a marker, the name of what it will point
// at, which the engine makes durable only together with the marker: of two names
// in a directory POSIX lets a crash keep the second.
func (f *fence) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(filepath.Base(name), "marker.") && f.failure() == nil {
		if err := syncDir(f.FS, filepath.Dir(name)); err != nil {
			f.fail(err)
		}
	}
	return f.open(name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *fence) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open(name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite makes a new log and not one out of an old one: in that, nobody could
// tell what is damaged from what was there before. An old one that cannot be removed
// only takes room until the next opening.
func (f *fence) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if f.failure() == nil {
		_ = f.FS.Remove(oldname)
	}
	return f.Create(newname, c)
}

func (f *fence) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &fencedFile{File: file, fence: f, name: name}, nil
}

// do runs a change of the directory and swallows its failure.
func (f *fence) do(change func() error) error {
	if f.failure() == nil {
		if err := change(); err != nil {
			f.fail(err)
		}
	}
	return nil
}

func (f *fence) Rename(oldname, newname string) error {
	return f.do(func() error { return f.FS.Rename(oldname, newname) })
}

// Link tells of a file system that has no links, since the engine makes copies
// then.
func (f *fence) Link(oldname, newname string) error {
	var unlinked error
	err := f.do(func() error {
		err := f.FS.Link(oldname, newname)
		for _, no := range [...]error{errors.ErrUnsupported, syscall.EPERM, syscall.EMLINK, syscall.EXDEV} {
			if errors.Is(err, no) {
				// EPERM by itself is what the engine takes for final.
				unlinked = fmt.Errorf("%w: %v", errors.ErrUnsupported, err)
				return nil
			}
		}
		return err
	})
	return errors.Join(err, unlinked)
}

func (f *fence) MkdirAll(dir string, perm os.FileMode) error {
	return f.do(func() error { return f.FS.MkdirAll(dir, perm) })
}

// Remove tells its errors: what cannot be removed only takes room. The engine
// removes a marker when it has made the next, and makes both durable together: POSIX
// lets a crash keep the removal alone, and no marker is no database. So the next
// is made durable before.
func (f *fence) Remove(name string) error {
	if f.failure() != nil {
		return nil
	}
	if strings.HasPrefix(filepath.Base(name), "marker.") {
		if err := syncDir(f.FS, filepath.Dir(name)); err != nil {
			f.fail(err)
			return nil
		}
	}
	return f.FS.Remove(name)
}

func (f *fence) RemoveAll(name string) error {
	if f.failure() != nil {
		return nil
	}
	return f.FS.RemoveAll(name)
}

// fencedFile is a file, or directory, behind a fence.
type fencedFile struct {
	vfs.File
	fence *fence
	name  string
	table bool
}

// after is the answer to a write that ended with err.
func (f *fencedFile) after(err error) error {
	if err != nil {
		if path := (*fs.PathError)(nil); !errors.As(err, &path) { // what some calls to the system say
			err = fmt.Errorf("%s: %w", f.name, err)
		}
		f.fence.fail(err)
	}
	if f.table {
		return f.fence.failure()
	}
	return nil
}

func (f *fencedFile) change(do func() error) error {
	if f.fence.failure() != nil {
		return f.after(nil)
	}
	return f.after(do())
}

func (f *fencedFile) Write(p []byte) (int, error) {
	err := f.change(func() error { _, err := f.File.Write(p); return err })
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *fencedFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.change(func() error { _, err := f.File.WriteAt(p, off); return err })
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *fencedFile) Sync() error     { return f.change(f.File.Sync) }
func (f *fencedFile) SyncData() error { return f.change(f.File.SyncData) }

func (f *fencedFile) SyncTo(length int64) (full bool, err error) {
	err = f.change(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Stat describes a file that is being written. The engine answers it by a panic if a
// log that it has just made cannot be described.
func (f *fencedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err == nil || f.table {
		return info, err
	}
	f.fence.fail(err)
	ghost, err := f.fence.ghosts.Create("ghost", vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	defer ghost.Close()
	return ghost.Stat()
}

// Preallocate is a wish: the write that follows tells whether there is room.
func (f *fencedFile) Preallocate(off, length int64) error {
	if f.fence.failure() != nil {
		return nil
	}
	return f.File.Preallocate(off, length)
}

// Close always closes. A file that was closed twice is the engine's business.
func (f *fencedFile) Close() error {
	err := f.File.Close()
	if errors.Is(err, fs.ErrClosed) {
		return err
	}
	return f.after(err)
}
