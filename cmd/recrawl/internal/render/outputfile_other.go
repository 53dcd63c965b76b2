//go:build !unix || solaris || aix

package render

import (
	"errors"
	"os"
	"path/filepath"
)

// openTemporary opens the empty file that will become the named one. A killed process
// leaves it behind.
func openTemporary(name string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
}

// moveIntoPlace moves a file into its place. Not every system can move an open file.
func moveIntoPlace(f *os.File, name string) error {
	err := errors.Join(f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
