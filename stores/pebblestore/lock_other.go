//go:build !unix || solaris || aix

package pebblestore

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockFile takes the lock that a file stands for, which ends with the process.
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

// lockShared is lockFile for a file that is there: these systems have no lock to
// share.
func lockShared(name string) (io.Closer, error) {
	if _, err := os.Stat(name); err != nil {
		return notLocked(err)
	}
	return lockFile(name)
}
