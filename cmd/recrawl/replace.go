package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// replaceFile writes a file beside its place and moves it there once it is whole
// and durable. What a process that was killed has left beside it is written over.
func replaceFile(name string, write func(*os.File) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // a device or a pipe is not replaced
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := openBeside(name)
	if err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = fmt.Errorf("open %s: %w", name, path.Err)
		}
		return err
	}
	// It is moved before it is closed, which ends the lock on it.
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = moveBeside(f, name)
	} else {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	if e := f.Close(); err == nil && !errors.Is(e, fs.ErrClosed) {
		err = e
	}
	return err
}
