package dirstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrReadOnly says that a change was attempted on a store opened for reading.
var ErrReadOnly = errors.New("dirstore: store is open for reading only")

// OpenReadOnly opens the store in an existing directory, and changes nothing in
// it: Append and Remove return an error that is ErrReadOnly, and what an
// interrupted Remove has left stays.
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
