//go:build !unix || solaris || aix

package main

import "os"

// temporaryDemo makes a directory for a demo. It is left behind if the demo is killed.
func temporaryDemo() (dir string, done func() error, err error) {
	if dir, err = os.MkdirTemp("", demoPattern); err != nil {
		return "", nil, err
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
