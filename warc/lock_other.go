//go:build !unix || solaris || aix

package warc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// lockFolder acquires the right to write into a folder by a file that must not exist. A
// killed process leaves it: then it is to be removed by hand.
func lockFolder(dir string) (io.Closer, error) {
	name := filepath.Join(dir, ".warc.lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s, or %s was left by a killed process", ErrLocked, dir, name)
	}
	if err != nil {
		return nil, err
	}
	return removedOnClose{f}, nil
}

type removedOnClose struct{ *os.File }

func (f removedOnClose) Close() error { return errors.Join(f.File.Close(), os.Remove(f.Name())) }
