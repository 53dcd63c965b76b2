package extsort

import (
	"errors"
	"os"
)

// A temp is a temporary file without a name, which ends with the process,
// however that ends.
type temp struct {
	*os.File
	name string // of a file that the system does not remove while it is open
}

// newTemp creates a file in dir.
func newTemp(dir string) (temp, error) {
	if f, err := unnamed(dir); err == nil {
		return temp{File: f}, nil
	}
	return named(dir, os.Remove)
}

// named creates a file with a name, which it removes at once if possible: a
// process that is killed in between leaves an empty file.
func named(dir string, remove func(string) error) (temp, error) {
	f, err := os.CreateTemp(dir, "extsort-")
	if err != nil {
		return temp{}, err
	}
	t := temp{File: f}
	if remove(f.Name()) != nil {
		t.name = f.Name()
	}
	return t, nil
}

// end closes the file, which frees its space.
func (t temp) end() error {
	err := t.Close()
	if t.name != "" {
		err = errors.Join(err, os.Remove(t.name))
	}
	return err
}
