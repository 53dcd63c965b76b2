package extsort

import (
	"errors"
	"os"
)

// A temp is a temporary file that ends with the process, however that ends: it has
// no name.
type temp struct {
	*os.File
	name string // of a file that the system lets nobody remove while it is open
}

// newTemp makes a file in dir.
func newTemp(dir string) (temp, error) {
	if f, err := unnamed(dir); err == nil {
		return temp{File: f}, nil
	}
	return named(dir, os.Remove)
}

// named makes a file with a name, which it loses at once where that can be: a
// process that is killed just then leaves an empty file.
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

// end closes the file, and with that gives back its room.
func (t temp) end() error {
	err := t.Close()
	if t.name != "" {
		err = errors.Join(err, os.Remove(t.name))
	}
	return err
}
