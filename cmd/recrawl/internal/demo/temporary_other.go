//go:build !unix || solaris || aix

package demo

import "os"

// temporaryDirectory makes a directory for a demo. It is left behind if the demo is killed.
func temporaryDirectory() (dir string, done func() error, err error) {
	if dir, err = os.MkdirTemp("", temporaryPattern); err != nil {
		return "", nil, err
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
