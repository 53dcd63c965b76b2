package pebblestore

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/stores/dirstore"
)

// Room says that changes begin to wait for room on the disk, or resume.
type Room struct {
	// Dir is the directory of the store.
	Dir string
	// Paused says that changes wait.
	Paused bool
	// Free is the free space on the disk, and Need what is required before
	// changes resume, in bytes.
	Free, Need int64
	// Err is the error of the system, if it has refused a write: syscall.ENOSPC
	// or syscall.EDQUOT. In that case a write is attempted about every second,
	// however much is free.
	Err error
}

const (
	// Opening after a crash, with up to four default memtables in the log, needs less.
	defaultMinFree = 64 << 20
	// On a small file system this share is kept free.
	minFreeShare = 20
	lookFree     = 50 * time.Millisecond
	pollFree     = 200 * time.Millisecond
	askAgain     = time.Second
)

// space keeps some of the disk free, and makes writes wait, not fail, when it is full
// anyway.
//
// Changes wait before they begin while there is less room than should be left
// free: at the gate, in wait, where their context ends the wait and nothing has
// happened yet. If the disk is full anyway, because of others or of the
// engine's background work, a refused write is retried until it succeeds, in
// retry. A sync is never retried: after one that failed nobody knows what is on
// the disk.
type space struct {
	fs      vfs.FS
	dir     string
	min     int64 // zero: the default; negative: nothing waits
	tell    func(Room)
	closing <-chan struct{}
	opened  atomic.Bool // until then nothing waits
	looked  atomic.Int64
	paused  atomic.Bool // written with mu held
	hurried atomic.Int64

	mu     sync.Mutex
	struck int // calls that were refused by the system and wait
	cause  error
}

// isFull reports whether an error means only that there is no room now.
func isFull(err error) bool {
	if errors.Is(err, dirstore.ErrBroken) {
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// look updates paused. More must be free for changes to resume than for them
// not to wait.
func (s *space) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked.Store(time.Now().UnixNano())
	free, least := s.usage()
	need := needed(least)
	paused := s.struck > 0 || free < least || s.paused.Load() && free < need
	if paused == s.paused.Load() {
		return
	}
	s.paused.Store(paused)
	r := Room{Dir: s.dir, Paused: paused, Free: free, Need: need}
	if s.struck > 0 {
		r.Err = s.cause
	}
	s.tell(r)
}

// needed returns how much must be free for changes to resume.
func needed(least int64) int64 { return least + least/2 }

// usage returns the free space, and what has to be free. If the disk does not say, there
// is room.
func (s *space) usage() (free, least int64) {
	u, err := s.fs.GetDiskUsage(s.dir)
	if err != nil {
		return 0, 0
	}
	least = s.min
	if least == 0 {
		least = min(defaultMinFree, int64(u.TotalBytes/minFreeShare))
	}
	return int64(min(u.AvailBytes, 1<<62)), least
}

// wait waits for room. It is the gate for all changes.
func (s *space) wait(ctx context.Context, closed error) error {
	if s.min < 0 {
		return nil
	}
	// If the clock went back, the last look lies in the future.
	if age := time.Now().UnixNano() - s.looked.Load(); age > int64(lookFree) || age < 0 {
		s.look()
	}
	for s.paused.Load() {
		if err := s.pause(ctx); err != nil {
			return err
		}
		select {
		case <-s.closing:
			return closed
		default:
		}
		s.look()
	}
	return nil
}

// pause waits a little, or less if the context is done or the store is being
// closed.
func (s *space) pause(ctx context.Context) error {
	t := time.NewTimer(pollFree)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.closing:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// retry repeats something while the disk is full. It gives up, after a last attempt, when
// the context is done, when the store is being closed or, inside the engine, when
// somebody cannot wait.
func (s *space) retry(ctx context.Context, inside bool, do func() error) error {
	err := do()
	if !isFull(err) || s.min < 0 || !s.opened.Load() {
		return err
	}
	s.mu.Lock()
	s.struck++
	s.cause = err
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.struck--
		s.mu.Unlock()
		s.look()
	}()
	for isFull(err) {
		s.look()
		for began := time.Now(); time.Since(began) < askAgain; {
			if e := s.pause(ctx); e != nil {
				return e
			}
			select {
			case <-s.closing:
				return do() // there may be room by now
			default:
			}
			if inside && s.hurried.Load() > 0 {
				return do()
			}
		}
		err = do()
	}
	return err
}

// hurry makes the engine's patience with a full disk end with a context, until
// stop is called. The store has then failed: what the engine has begun cannot
// be undone.
func (s *space) hurry(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	end := context.AfterFunc(ctx, func() { s.hurried.Add(1) })
	return func() {
		if !end() {
			s.hurried.Add(-1)
		}
	}
}

// spaceFS waits for room on behalf of the engine.
type spaceFS struct {
	vfs.FS
	space *space
}

func (f spaceFS) Unwrap() vfs.FS { return f.FS }

func (f spaceFS) again(do func() error) error { return f.space.retry(context.Background(), true, do) }

func (f spaceFS) open(do func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	err := f.again(func() (err error) { file, err = do(); return err })
	if err != nil {
		return nil, err
	}
	return spaceFile{file, f}, nil
}

func (f spaceFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f spaceFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f spaceFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

func (f spaceFS) Link(oldname, newname string) error {
	return f.again(func() error { return f.FS.Link(oldname, newname) })
}

func (f spaceFS) Rename(oldname, newname string) error {
	return f.again(func() error { return f.FS.Rename(oldname, newname) })
}

func (f spaceFS) MkdirAll(dir string, perm os.FileMode) error {
	return f.again(func() error { return f.FS.MkdirAll(dir, perm) })
}

type spaceFile struct {
	vfs.File
	fs spaceFS
}

func (f spaceFile) Write(p []byte) (n int, err error) {
	err = f.fs.again(func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	return n, err
}

func (f spaceFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fs.again(func() error {
		m, err := f.File.WriteAt(p[n:], off+int64(n))
		n += m
		return err
	})
	return n, err
}
