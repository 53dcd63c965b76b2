//go:build unix && !solaris && !aix

package render

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// openTemporary opens the empty file that will become the named one. It has the same
// name every time, so that there is never more than one; its writer holds a lock on
// it, which ends with the process.
func openTemporary(name string) (*os.File, error) {
	beside := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".new")
	for {
		f, err := os.OpenFile(beside, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%s is being written by another process", name)
		}
		if err == nil {
			var mine, there os.FileInfo
			if mine, err = f.Stat(); err == nil {
				if there, err = os.Stat(beside); errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(mine, there) {
					f.Close() // the previous holder of the lock has moved it away
					continue
				}
			}
		}
		if err == nil {
			err = f.Truncate(0)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
}

// moveIntoPlace moves a file into its place, durably.
func moveIntoPlace(f *os.File, name string) error {
	if err := os.Rename(f.Name(), name); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
