//go:build !unix || solaris || aix

package main

import (
	"errors"
	"os"
	"path/filepath"
)

// openBeside opens the empty file that will become the named one. A killed process
// leaves it behind.
func openBeside(name string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
}

// moveBeside moves a file into its place. Not every system can move an open file.
func moveBeside(f *os.File, name string) error {
	err := errors.Join(f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
