package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// makeDir makes a directory and those above it, and makes durable the names of
// those that it made.
func makeDir(dir string) error {
	var made []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, d := range made {
		root, err := os.OpenRoot(filepath.Dir(d))
		if err != nil {
			return err
		}
		if err := errors.Join(syncDir(root, "."), root.Close()); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes durable the names in a directory. Windows has no such call, and
// needs none: it keeps names in a journal.
func syncDir(root *os.Root, name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
