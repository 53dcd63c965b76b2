package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CheckFile reports why a file could not be written, before the work whose result it
// will hold.
func CheckFile(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory", name)
		}
		return nil
	}
	f, err := openTemporary(name)
	if err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = fmt.Errorf("open %s: %w", name, path.Err)
		}
		return err
	}
	// It is removed before it is closed, which ends the lock on it.
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// ReplaceFile writes a file beside its place and moves it there once it is complete
// and durable. It overwrites what a killed process has left beside it.
func ReplaceFile(name string, write func(*os.File) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // a device or a pipe is not replaced
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := openTemporary(name)
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
		err = moveIntoPlace(f, name)
	} else {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	if e := f.Close(); err == nil && !errors.Is(e, fs.ErrClosed) {
		err = e
	}
	return err
}
