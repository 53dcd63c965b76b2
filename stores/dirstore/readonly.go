package dirstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrReadOnly says that a store that was opened for reading was to be changed.
var ErrReadOnly = errors.New("dirstore: store is open for reading only")

// OpenReadOnly opens the store in a directory that is there, and changes nothing
// in it: Append and Remove return an error that is ErrReadOnly, and what a Remove
// that was interrupted has left stays.
func OpenReadOnly(dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("dirstore: open %s: %w", dir, err)
	}
	return &Store{dir: abs, fs: dirFS{root}, readOnly: true, writers: map[[2]string]*writer{}, users: 1}, nil
}
