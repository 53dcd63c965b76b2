package failfs

import (
	"cmp"
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
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// A FailStop stands between the engine and the file system and makes the first
// failure of a write the last thing that happens to the disk.
//
// The engine does not survive such failures by itself. It reports some by
// Logger.Fatalf, which by default ends the process. It answers others with a
// panic: an error while rotating the write-ahead log releases a mutex that a
// deferred call releases again, which no recover can catch, and a directory
// that cannot be synced causes one on a goroutine of the engine's own. And it
// retries a table that cannot be written at once and forever.
//
// So the engine never learns of it. After the first failed write, sync, creation or rename
// nothing is written, renamed or removed any more: the disk stays as it was at that moment,
// as after a crash, from which the engine can recover. What the engine still writes to logs,
// manifests and markers is accepted and dropped. The creation of tables, which an open
// engine does only on its own goroutines, is held up until [FailStop.Release], and then fails, which
// the engine can handle. Above, every call checks [FailStop.Failure] after using the engine and before
// reporting success, so nothing that was dropped is ever acknowledged.
type FailStop struct {
	vfs.FS
	hooks    Hooks
	cause    atomic.Pointer[error]
	down     chan struct{} // closed at the failure
	opened   atomic.Bool   // from here on only background work makes tables
	released chan struct{}
	once     sync.Once
	ghosts   vfs.FS // the files that are made after the failure, in memory
}

// Hooks are what a store does at some operations of the engine. OnFail is required.
type Hooks struct {
	// OnFail is called with the failure, once.
	OnFail func(error)
	// BeforeCreate is called before a file is created, AfterSync after one was synced, with how
	// much was written to it. Their errors are failures of the disk.
	BeforeCreate func(name string) error
	AfterSync    func(name string, written int64) error
	// Gather reports whether what is written to a file may be collected in memory until the
	// file is synced or closed. What is written to tables always is.
	Gather func(name string) bool
}

// NewFailStop returns a file system that works on another until a write fails.
func NewFailStop(under vfs.FS, h Hooks) *FailStop {
	return &FailStop{FS: under, hooks: h, down: make(chan struct{}), released: make(chan struct{}), ghosts: vfs.NewMem()}
}

// Failure returns the error that ended the use of the disk; nil if there was none.
func (f *FailStop) Failure() error {
	if f == nil {
		return nil
	}
	if p := f.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// Fail ends the use of the disk, unless it has already ended.
func (f *FailStop) Fail(err error) {
	if f.cause.CompareAndSwap(nil, &err) {
		close(f.down)
		f.hooks.OnFail(err)
	}
}

// Down returns a channel that is closed at the failure.
func (f *FailStop) Down() <-chan struct{} { return f.down }

// Opened says that the engine is open: from then on it creates tables only on its own
// goroutines.
func (f *FailStop) Opened() { f.opened.Store(true) }

// Release lets goroutines that create tables continue. It is called when the
// engine is closed.
func (f *FailStop) Release() { f.once.Do(func() { close(f.released) }) }

func (f *FailStop) Unwrap() vfs.FS { return f.FS }

// IsTable reports whether a file is a table of the engine.
func IsTable(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".sst" || ext == ".blob"
}

// open guards the file that make returns, or replaces it.
func (f *FailStop) open(name string, make func() (vfs.File, error)) (vfs.File, error) {
	if f.Failure() == nil {
		file, err := make()
		if err == nil {
			table := IsTable(name)
			return &failStopFile{File: file, fs: f, name: name, table: table, gather: table || f.hooks.Gather != nil && f.hooks.Gather(name)}, nil
		}
		f.Fail(err)
	}
	if !IsTable(name) {
		return f.ghosts.Create("ghost", vfs.WriteCategoryUnspecified)
	}
	if f.opened.Load() {
		<-f.released
		return nil, f.Failure()
	}
	// Opening waits for the tables made from the log, and retries them forever,
	// so they are made in memory; what was opened this way is closed at once.
	return f.ghosts.Create(filepath.Base(name), vfs.WriteCategoryUnspecified)
}

// Open opens a table where open has created it.
func (f *FailStop) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.Failure() != nil && IsTable(name) {
		if file, err := f.ghosts.Open(filepath.Base(name), opts...); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

// Stat describes a table where open has created it.
func (f *FailStop) Stat(name string) (vfs.FileInfo, error) {
	if f.Failure() != nil && IsTable(name) {
		if info, err := f.ghosts.Stat(filepath.Base(name)); err == nil {
			return info, nil
		}
	}
	return f.FS.Stat(name)
}

// Create makes durable, before creating a marker, the name of the file it will
// point at, which the engine makes durable only together with the marker: of
// two names in a directory, POSIX allows a crash to keep only the second.
func (f *FailStop) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(filepath.Base(name), "marker.") && f.Failure() == nil {
		if err := storedir.SyncDir(f.FS, filepath.Dir(name)); err != nil {
			f.Fail(err)
		}
	}
	return f.open(name, func() (vfs.File, error) {
		if f.hooks.BeforeCreate != nil {
			if err := f.hooks.BeforeCreate(name); err != nil {
				return nil, err
			}
		}
		return f.FS.Create(name, c)
	})
}

func (f *FailStop) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open(name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite creates a new log instead of reusing an old one, in which damage
// could not be distinguished from what was there before. An old log that cannot be removed
// only takes space until the next opening.
func (f *FailStop) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if f.Failure() == nil {
		_ = f.FS.Remove(oldname)
	}
	return f.Create(newname, c)
}

func (f *FailStop) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &failStopFile{File: file, fs: f, name: name}, nil
}

// do runs a change of the directory, and hides its failure from the engine.
func (f *FailStop) do(change func() error) error {
	if f.Failure() == nil {
		if err := change(); err != nil {
			f.Fail(err)
		}
	}
	return nil
}

func (f *FailStop) Rename(oldname, newname string) error {
	return f.do(func() error { return f.FS.Rename(oldname, newname) })
}

// Link reports a file system without links, since the engine then makes copies.
func (f *FailStop) Link(oldname, newname string) error {
	var unlinked error
	err := f.do(func() error {
		err := f.FS.Link(oldname, newname)
		if CannotLink(err) {
			// The engine treats a plain EPERM as final.
			unlinked = fmt.Errorf("%w: %v", errors.ErrUnsupported, err)
			return nil
		}
		return err
	})
	return errors.Join(err, unlinked)
}

// CannotLink reports whether an error says that a link cannot be made, where a copy may be.
func CannotLink(err error) bool {
	for _, no := range [...]error{errors.ErrUnsupported, syscall.EPERM, syscall.EMLINK, syscall.EXDEV} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

func (f *FailStop) MkdirAll(dir string, perm os.FileMode) error {
	return f.do(func() error { return f.FS.MkdirAll(dir, perm) })
}

// Remove reports its errors: what cannot be removed only takes space. The engine
// removes a marker after creating the next, and makes both durable together: POSIX
// allows a crash to keep the removal alone, and without a marker there is no
// database. So the next one is made durable first.
func (f *FailStop) Remove(name string) error {
	if f.Failure() != nil {
		return nil
	}
	if strings.HasPrefix(filepath.Base(name), "marker.") {
		if err := storedir.SyncDir(f.FS, filepath.Dir(name)); err != nil {
			f.Fail(err)
			return nil
		}
	}
	return f.FS.Remove(name)
}

func (f *FailStop) RemoveAll(name string) error {
	if f.Failure() != nil {
		return nil
	}
	return f.FS.RemoveAll(name)
}

// failStopFile is a file, or directory, of a FailStop.
type failStopFile struct {
	vfs.File
	fs    *FailStop
	name  string
	table bool
	// The engine writes tables in pieces of 4 KiB, which cost several times as much as
	// larger ones. So what is written to a table is gathered.
	gather   bool
	gathered []byte
	written  int64 // if not gathered
}

const gatherBytes = 64 << 10

// after returns the result of a write that ended with err.
func (f *failStopFile) after(err error) error {
	if err != nil {
		if path := (*fs.PathError)(nil); !errors.As(err, &path) { // an error of a system call without the path
			err = fmt.Errorf("%s: %w", f.name, err)
		}
		f.fs.Fail(err)
	}
	if f.table {
		return f.fs.Failure()
	}
	return nil
}

func (f *failStopFile) change(do func() error) error {
	if f.fs.Failure() != nil {
		return f.after(nil)
	}
	return f.after(do())
}

// flush writes what was gathered.
func (f *failStopFile) flush() error {
	if len(f.gathered) == 0 {
		return nil
	}
	_, err := f.File.Write(f.gathered)
	f.gathered = f.gathered[:0]
	return err
}

func (f *failStopFile) Write(p []byte) (int, error) {
	if f.gather {
		if f.gathered == nil {
			f.gathered = make([]byte, 0, gatherBytes)
		}
		n := len(p)
		for len(f.gathered)+len(p) >= gatherBytes {
			part := p[:gatherBytes-len(f.gathered)]
			f.gathered, p = append(f.gathered, part...), p[len(part):]
			if err := f.change(f.flush); err != nil {
				return 0, err
			}
		}
		f.gathered = append(f.gathered, p...)
		return n, nil
	}
	err := f.change(func() error { _, err := f.File.Write(p); return err })
	if err != nil {
		return 0, err
	}
	f.written += int64(len(p))
	return len(p), nil
}

func (f *failStopFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.change(func() error { _, err := f.File.WriteAt(p, off); return err })
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// changeAll is change after what was gathered.
func (f *failStopFile) changeAll(do func() error) error {
	return f.change(func() error {
		if err := f.flush(); err != nil {
			return err
		}
		return do()
	})
}

func (f *failStopFile) Sync() error {
	return f.changeAll(func() error {
		err := f.File.Sync()
		if err == nil && f.fs.hooks.AfterSync != nil {
			err = f.fs.hooks.AfterSync(f.name, f.written)
		}
		return err
	})
}

func (f *failStopFile) SyncData() error { return f.changeAll(f.File.SyncData) }

func (f *failStopFile) SyncTo(length int64) (full bool, err error) {
	err = f.changeAll(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Stat describes a file that is being written. The engine panics if a log that it
// has just created cannot be described.
func (f *failStopFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err == nil || f.table {
		return info, err
	}
	f.fs.Fail(err)
	ghost, err := f.fs.ghosts.Create("ghost", vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	defer ghost.Close()
	return ghost.Stat()
}

// Preallocate is a hint: the following write shows whether there is room.
func (f *failStopFile) Preallocate(off, length int64) error {
	if f.fs.Failure() != nil {
		return nil
	}
	return f.File.Preallocate(off, length)
}

// Close always closes the file. A second Close is not a failure of the disk.
func (f *failStopFile) Close() error {
	var flushed error
	if len(f.gathered) > 0 {
		flushed = f.change(f.flush)
	}
	err := f.File.Close()
	if errors.Is(err, fs.ErrClosed) {
		return err
	}
	return cmp.Or(flushed, f.after(err))
}
