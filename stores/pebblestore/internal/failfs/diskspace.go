package failfs

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

const (
	// Opening after a crash, with up to four default memtables in the log, needs less.
	defaultMinFree = 64 << 20
	// On a small file system this share is kept free.
	minFreeShare  = 20
	checkInterval = 50 * time.Millisecond
	pollInterval  = 200 * time.Millisecond
	retryInterval = time.Second
)

// A DiskSpace keeps some of the disk free, and makes writes wait, not fail, when it is full
// anyway.
//
// Changes wait before they begin while less is free than should be: in [DiskSpace.Wait],
// where their context ends the wait and nothing has happened yet. If the disk is full
// anyway, because of other programs or of the engine's background work, a refused write is
// retried until it succeeds, in [DiskSpace.Retry]. A sync is never retried: after one that
// failed, the contents of the disk are unknown.
type DiskSpace struct {
	o       SpaceOptions
	opened  atomic.Bool  // until then nothing waits
	checked atomic.Int64 // when, in nanoseconds
	paused  atomic.Bool  // written with mu held
	hurried atomic.Int64

	mu      sync.Mutex
	refused int // calls that were refused by the system and wait
	cause   error
}

// SpaceOptions say what a DiskSpace watches. FS, Dir, OnChange and Closing are required.
type SpaceOptions struct {
	FS  vfs.FS
	Dir string
	// MinFree is how many bytes to leave free. Zero means a default; negative means that nothing
	// waits.
	MinFree int64
	// OnChange is called when changes begin to wait and when they resume, by one goroutine at
	// a time.
	OnChange func(SpaceState)
	// Closing is closed when the store is being closed, which ends all waiting.
	Closing <-chan struct{}
}

// A SpaceState says whether changes wait, with how much is free, how much must be for them to
// resume, and the error of the system if it has refused a write.
type SpaceState struct {
	Paused     bool
	Free, Need int64
	Err        error
}

// NewDiskSpace returns a DiskSpace for which nothing waits before [DiskSpace.Opened].
func NewDiskSpace(o SpaceOptions) *DiskSpace { return &DiskSpace{o: o} }

// Opened says that the store is open: from then on refused writes are retried.
func (s *DiskSpace) Opened() { s.opened.Store(true) }

// IsFull reports whether an error means only that there is no room now.
func IsFull(err error) bool {
	if errors.Is(err, dirstore.ErrBroken) {
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// check updates paused. More must be free for changes to resume than for them
// not to wait.
func (s *DiskSpace) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked.Store(time.Now().UnixNano())
	free, least := s.Usage()
	need := Needed(least)
	paused := s.refused > 0 || free < least || s.paused.Load() && free < need
	if paused == s.paused.Load() {
		return
	}
	s.paused.Store(paused)
	r := SpaceState{Paused: paused, Free: free, Need: need}
	if s.refused > 0 {
		r.Err = s.cause
	}
	s.o.OnChange(r)
}

// Needed returns how much must be free for changes to resume.
func Needed(least int64) int64 { return least + least/2 }

// Usage returns the free space, and what has to be free. If the disk does not say, there
// is room.
func (s *DiskSpace) Usage() (free, least int64) {
	u, err := s.o.FS.GetDiskUsage(s.o.Dir)
	if err != nil {
		return 0, 0
	}
	least = s.o.MinFree
	if least == 0 {
		least = min(defaultMinFree, int64(u.TotalBytes/minFreeShare))
	}
	return int64(min(u.AvailBytes, 1<<62)), least
}

// Wait waits for room; all changes call it before they begin. It returns closed if the store
// is being closed.
func (s *DiskSpace) Wait(ctx context.Context, closed error) error {
	if s.o.MinFree < 0 {
		return nil
	}
	// If the clock went back, the last look lies in the future.
	if age := time.Now().UnixNano() - s.checked.Load(); age > int64(checkInterval) || age < 0 {
		s.check()
	}
	for s.paused.Load() {
		if err := s.pause(ctx); err != nil {
			return err
		}
		select {
		case <-s.o.Closing:
			return closed
		default:
		}
		s.check()
	}
	return nil
}

// pause waits a little, or less if the context is done or the store is being
// closed.
func (s *DiskSpace) pause(ctx context.Context) error {
	t := time.NewTimer(pollInterval)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.o.Closing:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Retry repeats something while the disk is full. It gives up, after a last attempt, when
// the context is done, when the store is being closed or, inside the engine, when
// a caller of the engine cannot wait; see [DiskSpace.Hurry].
func (s *DiskSpace) Retry(ctx context.Context, inside bool, do func() error) error {
	err := do()
	if !IsFull(err) || s.o.MinFree < 0 || !s.opened.Load() {
		return err
	}
	s.mu.Lock()
	s.refused++
	s.cause = err
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.refused--
		s.mu.Unlock()
		s.check()
	}()
	for IsFull(err) {
		s.check()
		for began := time.Now(); time.Since(began) < retryInterval; {
			if e := s.pause(ctx); e != nil {
				return e
			}
			select {
			case <-s.o.Closing:
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

// Hurry makes the engine's patience with a full disk end with a context, until
// stop is called. The store has then failed: what the engine has begun cannot
// be undone.
func (s *DiskSpace) Hurry(ctx context.Context) (stop func()) {
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

// FS returns a file system whose writes wait for room on behalf of the engine.
func (s *DiskSpace) FS(under vfs.FS) vfs.FS { return waitingFS{under, s} }

// waitingFS is that file system.
type waitingFS struct {
	vfs.FS
	space *DiskSpace
}

func (f waitingFS) Unwrap() vfs.FS { return f.FS }

func (f waitingFS) again(do func() error) error { return f.space.Retry(context.Background(), true, do) }

func (f waitingFS) open(do func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	err := f.again(func() (err error) { file, err = do(); return err })
	if err != nil {
		return nil, err
	}
	return waitingFile{file, f}, nil
}

func (f waitingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f waitingFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f waitingFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

func (f waitingFS) Link(oldname, newname string) error {
	return f.again(func() error { return f.FS.Link(oldname, newname) })
}

func (f waitingFS) Rename(oldname, newname string) error {
	return f.again(func() error { return f.FS.Rename(oldname, newname) })
}

func (f waitingFS) MkdirAll(dir string, perm os.FileMode) error {
	return f.again(func() error { return f.FS.MkdirAll(dir, perm) })
}

type waitingFile struct {
	vfs.File
	fs waitingFS
}

func (f waitingFile) Write(p []byte) (n int, err error) {
	err = f.fs.again(func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	return n, err
}

func (f waitingFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fs.again(func() error {
		m, err := f.File.WriteAt(p[n:], off+int64(n))
		n += m
		return err
	})
	return n, err
}
