//go:build unix && !solaris && !aix

package demo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// temporaryDirectory makes a directory for a demo, locked for the life of the process, and
// removes those of demos that were killed.
func temporaryDirectory() (dir string, done func() error, err error) {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryPattern))
	for _, left := range all {
		removeAbandoned(left)
	}
	for {
		if dir, err = os.MkdirTemp("", temporaryPattern); err != nil {
			return "", nil, err
		}
		f, err := lockDir(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EWOULDBLOCK) {
			continue // another demo took it for that of a killed one
		}
		if err != nil {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
		return dir, func() error { return errors.Join(os.RemoveAll(dir), f.Close()) }, nil
	}
}

// removeAbandoned removes the directory of a demo, unless the demo is alive or another
// user's. What cannot be removed stays.
func removeAbandoned(dir string) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return
	}
	f, err := lockDir(dir)
	if err != nil {
		return
	}
	defer f.Close()
	_ = os.RemoveAll(dir)
}

// lockDir takes the lock of a directory. The error is fs.ErrNotExist if the directory is
// gone, and syscall.EWOULDBLOCK if another process has the lock.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		var mine, there os.FileInfo
		if mine, err = f.Stat(); err == nil {
			if there, err = os.Stat(dir); err == nil && !os.SameFile(mine, there) {
				err = fs.ErrNotExist
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
