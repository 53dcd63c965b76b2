package dirstoretest

import (
	"io"
	"io/fs"
	"time"
)

// file is an open file.
type file struct {
	disk   *Disk
	name   string
	n      *node
	closed bool
}

func (f *file) do(op Op, do func() error) error {
	op.Name = f.name
	return f.disk.do(op, func() error {
		if f.closed {
			return fs.ErrClosed
		}
		return do()
	})
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	end := false
	err = f.do(Op{Kind: Read}, func() error {
		if off < int64(len(f.n.data)) {
			n = copy(p, f.n.data[off:])
		}
		end = n < len(p)
		return nil
	})
	if err == nil && end {
		err = io.EOF
	}
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	write := func(p []byte) error {
		if err := f.disk.room(max(off+int64(len(p))-int64(len(f.n.data)), 0)); err != nil {
			return err
		}
		f.n.write(write{at: off, data: p})
		n = len(p)
		return nil
	}
	err = f.do(Op{Kind: Write, Size: len(p)}, func() error { return write(p) })
	if short, ok := inner(err).(shortError); ok {
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		if e := write(p[:len(p)/2]); e != nil {
			return 0, e
		}
		return n, &fs.PathError{Op: string(Write), Path: f.name, Err: short.error}
	}
	return n, err
}

// inner returns the error that OnOp returned.
func inner(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

func (f *file) Truncate(size int64) error {
	return f.do(Op{Kind: Truncate}, func() error {
		if err := f.disk.room(max(size-int64(len(f.n.data)), 0)); err != nil {
			return err
		}
		f.n.write(write{at: size, cut: true})
		return nil
	})
}

func (f *file) Sync() error {
	err := f.do(Op{Kind: Sync}, func() error {
		f.n.sync()
		return nil
	})
	if err != nil {
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		f.n.writes, f.n.dropped = nil, true
	}
	return err
}

// Close closes the file even if it returns an error, as the system does.
func (f *file) Close() error {
	err := f.do(Op{Kind: Close}, func() error { return nil })
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.closed = true
	return err
}

type fileInfo struct {
	name string
	n    *node
	size int64
}

func sizeOf(n *node) int64 {
	if n == nil {
		return 0
	}
	return int64(len(n.data))
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.n.isDir() }
func (i fileInfo) Sys() any           { return nil }

func (i fileInfo) Mode() fs.FileMode {
	if i.n.isDir() {
		return fs.ModeDir | 0o777
	}
	return 0o666
}
