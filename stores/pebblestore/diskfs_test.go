package pebblestore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/dirstore/dirstoretest"
)

// memPath is where a store is on a file system in memory.
const memPath = "/s"

// inMemory returns options for a store at memPath on a file system in memory.
// Its segments are on a disk of their own, which nothing happens to.
func inMemory(o Options, files vfs.FS) Options {
	o.fs, o.segments = files, &diskFS{Disk: dirstoretest.NewDisk()}
	return o
}

// onDisk returns options for a store at memPath that is on a disk of tests with
// all it has.
func onDisk(o Options, d *dirstoretest.Disk) Options {
	files := &diskFS{Disk: d}
	o.fs, o.segments, o.manifest = files, files, 1 // so that the engine starts new manifests all the time
	return o
}

func (d *diskFS) below(dir string) (dirstore.FS, error) {
	err := d.MkdirAll(dir, 0o777)
	if err == nil {
		err = d.SyncDir(path.Dir(dir))
	}
	return below{d.Disk, dir}, err
}

// below is a directory of a disk, as segments have it.
type below struct {
	disk *dirstoretest.Disk
	dir  string
}

func (b below) name(n string) string                    { return path.Join(b.dir, n) }
func (b below) Lstat(n string) (fs.FileInfo, error)     { return b.disk.Lstat(b.name(n)) }
func (b below) ReadDir(n string) ([]fs.DirEntry, error) { return b.disk.ReadDir(b.name(n)) }
func (b below) Mkdir(n string) error                    { return b.disk.Mkdir(b.name(n)) }
func (b below) Rename(from, to string) error            { return b.disk.Rename(b.name(from), b.name(to)) }
func (b below) Remove(n string) error                   { return b.disk.Remove(b.name(n)) }
func (b below) SyncDir(n string) error                  { return b.disk.SyncDir(b.name(n)) }
func (b below) Close() error                            { return nil }
func (b below) OpenFile(n string, flag int) (dirstore.File, error) {
	return b.disk.OpenFile(b.name(n), flag)
}

// diskFS is a test disk as a file system of the engine.
type diskFS struct {
	*dirstoretest.Disk
	mu     sync.Mutex
	locked map[string]bool
}

var _ vfs.FS = (*diskFS)(nil)

func (d *diskFS) open(name string, flag int) (vfs.File, error) {
	f, err := d.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, fs: d, name: name}, nil
}

func (d *diskFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		if err := d.Disk.Remove(name); err != nil {
			return nil, err
		}
		f, err = d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	}
	return f, err
}

func (d *diskFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if info, err := d.Lstat(name); err == nil && info.IsDir() {
		return &diskFile{fs: d, name: name}, nil
	}
	f, err := d.open(name, os.O_RDONLY)
	if err == nil {
		for _, o := range opts {
			o.Apply(f)
		}
	}
	return f, err
}

func (d *diskFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE)
}

func (d *diskFS) OpenDir(name string) (vfs.File, error) { return &diskFile{fs: d, name: name}, nil }

func (d *diskFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return d.OpenReadWrite(newname, c)
}

func (d *diskFS) RemoveAll(name string) error {
	info, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		names, err := d.List(name)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := d.RemoveAll(path.Join(name, n)); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	return d.Disk.Remove(name)
}

func (d *diskFS) MkdirAll(dir string, _ os.FileMode) error {
	if info, err := d.Lstat(dir); err == nil && info.IsDir() {
		return nil
	}
	if above := path.Dir(dir); above != dir {
		if err := d.MkdirAll(above, 0o777); err != nil {
			return err
		}
	}
	return d.Mkdir(dir)
}

func (d *diskFS) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked[name] {
		return nil, errors.New("locked")
	}
	if d.locked == nil {
		d.locked = map[string]bool{}
	}
	f, err := d.open(name, os.O_RDWR|os.O_CREATE)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, err
	}
	d.locked[name] = true
	return diskLock{d, name}, nil
}

type diskLock struct {
	fs   *diskFS
	name string
}

func (l diskLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	delete(l.fs.locked, l.name)
	return nil
}

func (d *diskFS) List(dir string) ([]string, error) {
	entries, err := d.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, err
}

func (d *diskFS) Stat(name string) (vfs.FileInfo, error) {
	info, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	return diskInfo{info}, nil
}

type diskInfo struct{ fs.FileInfo }

func (diskInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

func (d *diskFS) PathBase(p string) string       { return path.Base(p) }
func (d *diskFS) PathJoin(elem ...string) string { return path.Join(elem...) }
func (d *diskFS) PathDir(p string) string        { return path.Dir(p) }
func (d *diskFS) Unwrap() vfs.FS                 { return nil }

func (d *diskFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	used, total := d.Usage()
	if total == 0 {
		total = 1 << 40
	}
	return vfs.DiskUsage{AvailBytes: uint64(max(total-used, 0)), TotalBytes: uint64(total), UsedBytes: uint64(used)}, nil
}

// diskFile is an open file, or a directory if there is no File.
type diskFile struct {
	dirstore.File
	fs      *diskFS
	name    string
	reading int64
	writing int64
	closed  bool
}

func (f *diskFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.reading)
	f.reading += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *diskFile) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.writing)
	f.writing += int64(n)
	return n, err
}

func (f *diskFile) Sync() error {
	if f.File == nil {
		return f.fs.SyncDir(f.name)
	}
	return f.File.Sync()
}

func (f *diskFile) Close() error {
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	if f.File == nil {
		return nil
	}
	return f.File.Close()
}

func (f *diskFile) SyncData() error                { return f.Sync() }
func (f *diskFile) SyncTo(int64) (bool, error)     { return true, f.Sync() }
func (f *diskFile) Preallocate(int64, int64) error { return nil }
func (f *diskFile) Prefetch(int64, int64) error    { return nil }
func (f *diskFile) Fd() uintptr                    { return vfs.InvalidFd }
func (f *diskFile) Stat() (vfs.FileInfo, error)    { return f.fs.Stat(strings.TrimSuffix(f.name, "/")) }
