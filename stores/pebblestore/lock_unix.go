//go:build unix && !solaris && !aix

package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// lockFile takes the lock that a file stands for. It is one of flock(2), which
// belongs to the open file: a second handle in the same process is refused as
// well, nothing else that opens and closes the file can lose it, and it ends
// with the process.
func lockFile(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		owner := make([]byte, 32)
		n, _ := f.ReadAt(owner, 0)
		err = ErrLocked
		if pid := strings.TrimSpace(string(owner[:n])); pid != "" {
			err = fmt.Errorf("%w by process %s", ErrLocked, pid)
		}
		return nil, errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: name, Err: err}, f.Close())
	}
	// Who has it is for people to read; a disk too full for it is no obstacle.
	if f.Truncate(0) == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return f, nil
}

// syncDir makes the names in a directory durable.
func syncDir(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
