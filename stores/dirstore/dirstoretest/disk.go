// Package dirstoretest is a disk for tests of what a store loses when the power or
// the disk fails. A [Disk] knows what is durable and what is not, can crash at any
// operation, and can fail any operation.
//
//	disk := dirstoretest.NewDisk()
//	disk.OnOp = func(op dirstoretest.Op) error { return nil } // or fail it, or call Crash
//	store, err := dirstore.Open("segments", dirstore.Options{FS: disk})
//	...
//	after := disk.Crash(0.5, rng) // the power failed; half of the unsynced data is there
//	store, err = dirstore.Open("segments", dirstore.Options{FS: after})
package dirstoretest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/recrawl/recrawl/stores/dirstore"
)

var _ dirstore.FS = (*Disk)(nil)

// Disk is a file system in memory. Written data is durable once the file is synced,
// and a name, a rename or a removal once the directory is. POSIX promises no more;
// most file systems do.
//
// It may be used from many goroutines at once.
type Disk struct {
	// OnOp is called before each operation, from any goroutine, and may call Crash.
	// If it returns an error, the operation does nothing and returns that error in
	// a *fs.PathError; see also [ShortWrite]. If a Sync fails, data that was not synced
	// before can still be read, but no later Sync makes it durable, as on Linux.
	// OnOp must not be set while the disk is in use.
	OnOp func(Op) error

	mu    sync.Mutex
	root  *node
	total int64
}

// NewDisk returns an empty disk of unlimited size.
func NewDisk() *Disk { return &Disk{root: newDir()} }

// Op is an operation and the name it applies to. For a file that was renamed or
// removed while open, that is the name it was opened by.
type Op struct {
	Kind Kind
	Name string
	To   string // of a Rename or Link
	Size int    // of a Write, in bytes
}

// String returns kind and names.
func (op Op) String() string { return fmt.Sprintf("%s %s %s", op.Kind, op.Name, op.To) }

// Kind is a kind of operation.
type Kind string

// The kinds of operations.
const (
	Create   Kind = "create"
	Write    Kind = "write"
	Truncate Kind = "truncate"
	Sync     Kind = "sync"
	Mkdir    Kind = "mkdir"
	Rename   Kind = "rename"
	Link     Kind = "link"
	Remove   Kind = "remove"
	SyncDir  Kind = "syncdir"
	Open     Kind = "open"
	Read     Kind = "read"
	List     Kind = "list"
	Stat     Kind = "stat"
	Close    Kind = "close"
)

// Changes reports whether operations of the kind change what is on the disk, or
// how much of it is durable.
func (k Kind) Changes() bool {
	switch k {
	case Open, Read, List, Stat, Close:
		return false
	}
	return true
}

// ShortWrite wraps an error for OnOp to return for a Write: half of the bytes are written
// before the error.
func ShortWrite(err error) error { return shortError{err} }

type shortError struct{ error }

func (s shortError) Unwrap() error { return s.error }

// node is a file or a directory. The bytes in a slice never change, so disks can share
// it: new bytes are appended, or the slice is replaced.
type node struct {
	// Of a directory: all names, the durable ones, and changes since.
	names, durable map[string]*node
	moves          []move
	// Of a file: all bytes, the durable ones, and changes since.
	data, synced []byte
	writes       []write
	dropped      bool // a Sync has failed: data has changes that are in neither synced nor writes
}

type move struct {
	name string
	from string // of a rename: the old name
	node *node  // nil: removed
}

// write writes data at an offset, or truncates the file there if cut is set.
type write struct {
	at   int64
	data []byte
	cut  bool
}

func newDir() *node { return &node{names: map[string]*node{}, durable: map[string]*node{}} }

func (n *node) isDir() bool { return n.names != nil }

func (n *node) change(m move) {
	apply(n.names, m)
	n.moves = append(n.moves, m)
}

func apply(names map[string]*node, m move) {
	if m.from != "" && names[m.from] == m.node {
		delete(names, m.from)
	}
	if m.node == nil {
		delete(names, m.name)
	} else {
		names[m.name] = m.node
	}
}

func (w write) apply(b []byte) []byte {
	if w.cut {
		if int64(len(b)) >= w.at {
			return b[:w.at:w.at]
		}
		return append(b, make([]byte, w.at-int64(len(b)))...)
	}
	if int64(len(b)) < w.at {
		b = append(b, make([]byte, w.at-int64(len(b)))...)
	}
	if int64(len(b)) == w.at {
		return append(b, w.data...)
	}
	b = append([]byte(nil), b...)
	n := copy(b[w.at:], w.data)
	return append(b, w.data[n:]...)
}

func (n *node) write(w write) {
	w.data = append([]byte(nil), w.data...)
	n.data = w.apply(n.data)
	n.writes = append(n.writes, w)
}

func (n *node) sync() {
	if n.dropped {
		for _, w := range n.writes {
			n.synced = w.apply(n.synced)
		}
	} else {
		n.synced = n.data[:len(n.data):len(n.data)]
	}
	n.writes = nil
}

// pageSize is the unit of a write that reaches the disk whole or not at all.
const pageSize = 4096

// Crash returns the disk as a power failure at this moment may leave it: everything
// durable and, each with the probability survives, other changes of directories and
// other pages of writes. The disk itself is not affected. Crash uses rng only if
// survives is between 0 and 1.
func (d *Disk) Crash(survives float64, rng *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	lucky := func() bool { return survives >= 1 || survives > 0 && rng.Float64() < survives }
	made := map[*node]*node{}
	var crash func(n *node) *node
	crash = func(n *node) *node {
		if m := made[n]; m != nil {
			return m
		}
		m := &node{}
		made[n] = m
		if !n.isDir() {
			m.synced = n.synced[:len(n.synced):len(n.synced)]
			for _, w := range n.writes {
				for _, p := range w.pages() {
					if lucky() {
						m.synced = p.apply(m.synced)
					}
				}
			}
			m.data = m.synced
			return m
		}
		names := maps.Clone(n.durable)
		for _, v := range n.moves {
			if lucky() {
				apply(names, v)
			}
		}
		m.names, m.durable = map[string]*node{}, map[string]*node{}
		for name, child := range names {
			m.names[name] = crash(child)
			m.durable[name] = m.names[name]
		}
		return m
	}
	return &Disk{root: crash(d.root), total: d.total}
}

func (w write) pages() []write {
	var pages []write
	for !w.cut && len(w.data) > 0 {
		n := min(int64(len(w.data)), pageSize-w.at%pageSize)
		pages = append(pages, write{at: w.at, data: w.data[:n:n]})
		w.at, w.data = w.at+n, w.data[n:]
	}
	if w.cut {
		return []write{w}
	}
	return pages
}

// Resize sets the size of the disk in bytes. Writes beyond it fail with syscall.ENOSPC;
// zero means unlimited. The size may be less than what the disk holds.
func (d *Disk) Resize(total int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total = total
}

// Usage returns the number of bytes on the disk, and its size.
func (d *Disk) Usage() (used, total int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used(), d.total
}

// fileCost is the space that a file takes besides its bytes.
const fileCost = 256

func (d *Disk) used() (sum int64) {
	seen := map[*node]bool{}
	var walk func(*node)
	walk = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		sum += fileCost + int64(len(n.data))
		for _, child := range n.names {
			walk(child)
		}
	}
	walk(d.root)
	return sum
}

func (d *Disk) room(n int64) error {
	if d.total > 0 && d.used()+n > d.total {
		return syscall.ENOSPC
	}
	return nil
}

// do calls OnOp and runs an operation.
func (d *Disk) do(op Op, f func() error) error {
	var err error
	if d.OnOp != nil {
		err = d.OnOp(op)
	}
	if err == nil {
		d.mu.Lock()
		err = f()
		d.mu.Unlock()
	}
	if err != nil && !errors.As(err, new(*fs.PathError)) {
		err = &fs.PathError{Op: string(op.Kind), Path: op.Name, Err: err}
	}
	return err
}

// walk returns the directory that contains a name, and the node of that name.
func (d *Disk) walk(name string) (dir *node, base string, n *node, err error) {
	dir, n = nil, d.root
	for _, base = range strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if base == "" {
			return nil, "", d.root, nil
		}
		if n == nil {
			return nil, "", nil, fs.ErrNotExist
		}
		if !n.isDir() {
			return nil, "", nil, syscall.ENOTDIR
		}
		dir, n = n, n.names[base]
	}
	return dir, base, n, nil
}

func (d *Disk) find(name string) (*node, error) {
	_, _, n, err := d.walk(name)
	if err == nil && n == nil {
		err = fs.ErrNotExist
	}
	return n, err
}

// Lstat implements [dirstore.FS].
func (d *Disk) Lstat(name string) (info fs.FileInfo, err error) {
	err = d.do(Op{Kind: Stat, Name: name}, func() error {
		n, err := d.find(name)
		info = fileInfo{name: path.Base(name), n: n, size: sizeOf(n)}
		return err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// ReadDir implements [dirstore.FS].
func (d *Disk) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = d.do(Op{Kind: List, Name: name}, func() error {
		n, err := d.find(name)
		if err == nil && !n.isDir() {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return err
		}
		for base, child := range n.names {
			entries = append(entries, fs.FileInfoToDirEntry(fileInfo{name: base, n: child, size: sizeOf(child)}))
		}
		return nil
	})
	return entries, err
}

// OpenFile implements [dirstore.FS]. Of the flags it knows os.O_CREATE and
// os.O_EXCL.
func (d *Disk) OpenFile(name string, flag int) (dirstore.File, error) {
	op := Op{Kind: Open, Name: name}
	if flag&os.O_CREATE != 0 {
		op.Kind = Create
	}
	f := &file{disk: d, name: name}
	err := d.do(op, func() error {
		dir, base, n, err := d.walk(name)
		switch {
		case err != nil:
			return err
		case n != nil && flag&os.O_EXCL != 0:
			return fs.ErrExist
		case n != nil && n.isDir():
			return syscall.EISDIR
		case n == nil && flag&os.O_CREATE == 0:
			return fs.ErrNotExist
		case n == nil:
			if err := d.room(fileCost); err != nil {
				return err
			}
			n = &node{}
			dir.change(move{name: base, node: n})
		}
		f.n = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Mkdir implements [dirstore.FS].
func (d *Disk) Mkdir(name string) error {
	return d.do(Op{Kind: Mkdir, Name: name}, func() error {
		dir, base, n, err := d.walk(name)
		switch {
		case err != nil:
			return err
		case n != nil:
			return fs.ErrExist
		}
		if err := d.room(fileCost); err != nil {
			return err
		}
		dir.change(move{name: base, node: newDir()})
		return nil
	})
}

// Rename implements [dirstore.FS]. It replaces an existing file. After a rename between
// two directories, a crash may keep the change of only one of them.
func (d *Disk) Rename(from, to string) error {
	return d.do(Op{Kind: Rename, Name: from, To: to}, func() error {
		dir, base, n, err := d.walk(from)
		if err != nil || n == nil {
			return errors.Join(err, fs.ErrNotExist)
		}
		toDir, toBase, there, err := d.walk(to)
		switch {
		case err != nil:
			return err
		case there != nil && there.isDir():
			return fs.ErrExist
		case there == n:
			return nil
		case toDir != dir:
			dir.change(move{name: base})
			toDir.change(move{name: toBase, node: n})
			return nil
		}
		dir.change(move{name: toBase, from: base, node: n})
		return nil
	})
}

// Link gives a file a second name.
func (d *Disk) Link(name, to string) error {
	return d.do(Op{Kind: Link, Name: name, To: to}, func() error {
		n, err := d.find(name)
		if err != nil {
			return err
		}
		dir, base, there, err := d.walk(to)
		if err == nil && there != nil {
			err = fs.ErrExist
		}
		if err == nil {
			dir.change(move{name: base, node: n})
		}
		return err
	})
}

// Remove implements [dirstore.FS].
func (d *Disk) Remove(name string) error {
	return d.do(Op{Kind: Remove, Name: name}, func() error {
		dir, base, n, err := d.walk(name)
		switch {
		case err != nil:
			return err
		case n == nil:
			return fs.ErrNotExist
		case n.isDir() && len(n.names) > 0 || dir == nil:
			return syscall.ENOTEMPTY
		}
		dir.change(move{name: base})
		return nil
	})
}

// SyncDir implements [dirstore.FS].
func (d *Disk) SyncDir(name string) error {
	return d.do(Op{Kind: SyncDir, Name: name}, func() error {
		n, err := d.find(name)
		if err == nil && !n.isDir() {
			err = syscall.ENOTDIR
		}
		if err == nil {
			n.durable, n.moves = maps.Clone(n.names), nil
		}
		return err
	})
}

// Close implements [dirstore.FS]; the disk can still be used.
func (d *Disk) Close() error { return nil }
