// Package dirstore keeps segments as plain files, one for each part:
//
//	dir/20260102030405-000/crawl_generate
//	dir/20260102030405-000/content.open
//
// A part that is not committed has ".open" appended to its name, so ls shows
// what is complete. A segment can be copied or packed by the usual tools. It
// must keep its name: a file records which part it is, and is refused in the
// place of another. Other files in the directory are left alone.
//
// Damage is found by checksums on every block and every file. Appended blocks
// reach the file at once, and the disk with Sync or Commit.
package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/recrawl/recrawl/segment"
)

const (
	openSuffix = ".open"
	// removedPrefix begins the names of segments that are being deleted. No
	// segment can have such a name.
	removedPrefix = ".recrawl-removed-"
)

// ErrReadOnly says that a change was attempted on a store opened for reading.
var ErrReadOnly = errors.New("dirstore: store is open for reading only")

var _ segment.Store = (*Store)(nil)

// Store is a [segment.Store] in a directory. Only one process may use a
// directory at a time, which the caller must ensure: the store does not lock
// it.
type Store struct {
	dir      string // for errors
	fs       FS
	readOnly bool

	// mu is held while names are looked up and changed, never while blocks are
	// read, written or synced. A writer that needs its own lock takes that first.
	mu      sync.Mutex
	writers map[[2]string]*writer // by segment and part
	closed  bool
	// settled has the segments whose names are known to be durable.
	settled map[string]bool
	// listed has the segments that are known to have a part: parts are only removed with their segment.
	listed map[string]bool
	// users counts the users of the file system, including the store itself
	// while it is open; the last one closes it.
	users int

	buffers segment.Buffers
}

// Options are the settings of a store. The zero value is for a directory of the operating
// system, to read and to write.
type Options struct {
	// ReadOnly opens a store that exists and changes nothing in it: Append and Remove
	// return an error that is ErrReadOnly, and what an interrupted Remove has left stays.
	ReadOnly bool
	// FS is the file system that has the store. The store closes it, also if it cannot
	// be opened. Nil means the directory, by way of the operating system.
	FS FS
}

// Open opens the store in a directory, which it makes if it does not exist, and
// completes a Remove that was interrupted. With Options.FS, dir is only the name of the
// directory in errors.
func Open(dir string, o Options) (*Store, error) {
	s := &Store{dir: dir, fs: o.FS, readOnly: o.ReadOnly, writers: map[[2]string]*writer{}, settled: map[string]bool{}, listed: map[string]bool{}, users: 1}
	if s.fs == nil {
		var err error
		if s.dir, err = filepath.Abs(dir); err == nil {
			s.fs, err = openDir(s.dir, o.ReadOnly)
		}
		if err != nil {
			return nil, fmt.Errorf("dirstore: open %s: %w", dir, err)
		}
	}
	if s.readOnly {
		return s, nil
	}
	entries, err := readDir(s.fs, ".")
	for _, e := range entries {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), removedPrefix) {
			err = s.delete(e.Name())
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dirstore: open %s: %w", s.dir, err), s.fs.Close())
	}
	return s, nil
}

// Close closes the store; after it every method, those of open writers
// included, returns an error that is segment.ErrClosed. Parts that were not
// committed stay, as after [segment.BlockWriter.Close]. A second Close does
// nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var open []*writer
	for _, w := range s.writers {
		open = append(open, w)
	}
	s.mu.Unlock()
	err := s.drop()
	for _, w := range open {
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return fmt.Errorf("dirstore: close %s: %w", s.dir, err)
	}
	return nil
}

// use calls f with the lock held if the store is open, the context is not done
// and the names are good.
func (s *Store) use(ctx context.Context, names []string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := segment.ValidName(names...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return segment.ErrClosed
	}
	return f()
}

// keep calls f with the lock held if the store is open, and keeps the file
// system open until drop, even if the store is closed before.
func (s *Store) keep(f func() error) error {
	return s.use(context.Background(), nil, func() error {
		err := f()
		if err == nil {
			s.users++
		}
		return err
	})
}

func (s *Store) drop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	return s.fs.Close()
}

func failed(op string, err error, names ...string) error {
	return fmt.Errorf("dirstore: %s %s: %w", op, strings.Join(names, "/"), err)
}

// List implements [segment.Store].
func (s *Store) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		err := s.use(ctx, nil, func() error {
			entries, err := readDir(s.fs, ".")
			for _, e := range entries {
				if e.IsDir() && segment.ValidName(e.Name()) == nil {
					names = append(names, e.Name())
				}
			}
			return err
		})
		for _, name := range names {
			if err != nil {
				break
			}
			has := false
			err = s.use(ctx, nil, func() error {
				if has = s.listed[name]; has {
					return nil
				}
				entries, err := readDir(s.fs, name)
				if errors.Is(err, fs.ErrNotExist) {
					return nil // removed in the meantime
				}
				if has = slices.ContainsFunc(entries, isPart); has {
					s.listed[name] = true
				}
				return err
			})
			if err == nil && has && !yield(name, nil) {
				return
			}
		}
		if err != nil {
			yield("", failed("list", err, s.dir))
		}
	}
}

// isPart reports whether a file of a segment is a part, committed or not.
func isPart(e fs.DirEntry) bool {
	return e.Type().IsRegular() && segment.ValidName(strings.TrimSuffix(e.Name(), openSuffix)) == nil
}

// Buffers implements [segment.BufferStore].
func (s *Store) Buffers() *segment.Buffers { return &s.buffers }

// Stat implements [segment.Store]. Info.Bytes is the size of the file, without
// a torn end. A part that is neither committed nor being written is read in
// full.
func (s *Store) Stat(ctx context.Context, seg, part string) (segment.Info, error) {
	info, err := s.stat(ctx, seg, part)
	if err != nil {
		return segment.Info{}, failed("stat", err, seg, part)
	}
	return info, nil
}

func (s *Store) stat(ctx context.Context, seg, part string) (segment.Info, error) {
	var info segment.Info
	f, b, err := s.open(ctx, seg, part, &info)
	if err != nil || f == nil {
		return info, err
	}
	defer f.Close()
	if b.committed {
		if err := s.settle(seg); err != nil {
			return segment.Info{}, err
		}
		return segment.Info{Blocks: b.blocks, Bytes: b.end + footSize, Committed: true}, nil
	}
	for {
		if err := ctx.Err(); err != nil {
			return segment.Info{}, err
		}
		_, err := b.next(true)
		if err == io.EOF {
			return segment.Info{Blocks: b.number, Bytes: b.at}, nil
		}
		if err != nil {
			return segment.Info{}, err
		}
	}
}

// settle makes durable the names of a segment that this store did not write: if
// a part was committed at the very end of a process, its name may be in memory
// only, and callers rely on a part that is reported as committed.
func (s *Store) settle(seg string) error {
	done := false
	err := s.keep(func() error { done = s.settled[seg]; return nil })
	if err != nil {
		return err
	}
	if !done && !s.readOnly {
		// Nothing needs to be made durable where nothing can be changed.
		if err = s.syncNames(seg); errors.Is(err, syscall.EROFS) {
			err = nil
		}
	}
	return errors.Join(err, s.drop())
}

// syncNames makes durable the names of a segment and its parts. The caller
// keeps the file system open.
func (s *Store) syncNames(seg string) error {
	err := errors.Join(s.fs.SyncDir(seg), s.fs.SyncDir("."))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled[seg] = true
	return nil
}

// open opens the file of a part for reading. If the part is being written and
// info is not nil, it opens nothing and sets *info.
func (s *Store) open(ctx context.Context, seg, part string, info *segment.Info) (File, *blockFile, error) {
	var f File
	var name string
	var size int64
	committed := false
	err := s.use(ctx, []string{seg, part}, func() (err error) {
		end := int64(-1)
		if w := s.writers[[2]string{seg, part}]; w != nil && w.ready {
			if info != nil {
				*info = segment.Info{Blocks: w.blocks, Bytes: w.end}
				return nil
			}
			end = w.end
		}
		name = path.Join(seg, part)
		f, size, err = openFile(s.fs, name, os.O_RDONLY)
		if committed = err == nil; errors.Is(err, fs.ErrNotExist) {
			name += openSuffix
			f, size, err = openFile(s.fs, name, os.O_RDONLY)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return segment.ErrNotFound
		}
		if !committed && end >= 0 {
			size = min(size, end)
		}
		return err
	})
	if err != nil || f == nil {
		return nil, nil, err
	}
	b, err := openBlocks(f, size, filepath.Join(s.dir, name), committed)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, b, nil
}

// openFile opens a regular file. Anything else, such as a link or a pipe, is
// refused and not opened.
func openFile(files FS, name string, flag int) (File, int64, error) {
	info, err := files.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := files.OpenFile(name, flag)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// Read implements [segment.Store]. Of a part that is being written it yields
// the blocks present when the loop begins.
func (s *Store) Read(ctx context.Context, seg, part string, from int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, b, err := s.open(ctx, seg, part, nil)
		if err != nil {
			yield(nil, failed("read", err, seg, part))
			return
		}
		defer f.Close()
		for {
			err := ctx.Err()
			var block []byte
			skip := b.number < from
			if err == nil {
				block, err = b.next(skip)
			}
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(nil, failed("read", err, seg, part))
				return
			case !skip && !yield(block, nil):
				return
			}
		}
	}
}

// Append implements [segment.Store].
func (s *Store) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	w := &writer{store: s, names: [2]string{seg, part}}
	err := s.use(ctx, w.names[:], func() error {
		if s.readOnly {
			return ErrReadOnly
		}
		if s.writers[w.names] != nil {
			return segment.ErrBusy
		}
		// The files are examined without the lock, so the place is taken first.
		s.writers[w.names] = w
		return nil
	})
	if err != nil {
		return nil, failed("append to", err, seg, part)
	}
	if err := w.start(ctx, keep); err != nil {
		return nil, failed("append to", err, seg, part)
	}
	return w, nil
}

// Remove implements [segment.Store]. If there is a file that is no part, it
// fails and deletes nothing.
func (s *Store) Remove(ctx context.Context, seg string) error {
	if err := s.remove(ctx, seg); err != nil {
		return failed("remove", err, seg)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, seg string) (err error) {
	if err := s.use(ctx, []string{seg}, func() error { return nil }); err != nil {
		return err
	}
	found := false
	err = s.keep(func() error {
		if s.readOnly {
			return ErrReadOnly
		}
		for names := range s.writers {
			if names[0] == seg {
				return segment.ErrBusy
			}
		}
		entries, err := readDir(s.fs, seg)
		if found = !errors.Is(err, fs.ErrNotExist); !found {
			return nil
		}
		for _, e := range entries {
			if !isPart(e) {
				return fmt.Errorf("%s is no part of a segment", filepath.Join(s.dir, seg, e.Name()))
			}
		}
		if err != nil {
			return err
		}
		// What is renamed is gone; if deleting it is interrupted, the next Open
		// completes it. So half a segment is never visible.
		name := removedPrefix + seg
		for i := 1; ; i++ {
			if _, err := s.fs.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				break
			} else if err != nil {
				return err
			}
			name = fmt.Sprintf("%s%s.%d", removedPrefix, seg, i)
		}
		if err := s.fs.Rename(seg, name); err != nil {
			return err
		}
		delete(s.settled, seg)
		delete(s.listed, seg)
		seg = name
		return nil
	})
	if err != nil {
		return err
	}
	// The store may be closed while the files are deleted.
	defer func() { err = errors.Join(err, s.drop()) }()
	if !found {
		return nil
	}
	if err := s.fs.SyncDir("."); err != nil {
		return err
	}
	return s.delete(seg)
}

// delete deletes a renamed segment, except files that are not ours.
func (s *Store) delete(name string) error {
	entries, err := readDir(s.fs, name)
	if err != nil {
		return err
	}
	foreign := false
	for _, e := range entries {
		if !isPart(e) {
			foreign = true
			continue
		}
		if err := s.fs.Remove(path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	if foreign {
		return nil
	}
	return s.fs.Remove(name)
}
