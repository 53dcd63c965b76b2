//go:build !unix || solaris || aix

package storedir

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockFile acquires the lock of a file, which ends with the process.
func lockFile(name string) (io.Closer, error) {
	l, err := vfs.Default.Lock(name)
	if err == nil {
		return l, nil
	}
	if _, statErr := os.Stat(name); statErr != nil || errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	return nil, errors.Join(ErrLocked, err)
}

// LockShared is lockFile for an existing file: these systems have no shared
// lock.
func LockShared(name string) (io.Closer, error) {
	if _, err := os.Stat(name); err != nil {
		return notLocked(err)
	}
	return lockFile(name)
}
