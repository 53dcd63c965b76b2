package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v3"
)

// placeFor reports why a file could not be written, before the work whose result it
// will hold.
func placeFor(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory", name)
		}
		return nil
	}
	f, err := openBeside(name)
	if err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = fmt.Errorf("open %s: %w", name, path.Err)
		}
		return err
	}
	// It is removed before it is closed, which ends the lock on it.
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// pictureAt is placeFor for the files of -svg, whose names have these endings.
func pictureAt(c *cli.Command, endings ...string) error {
	name := c.String("svg")
	if name == "" {
		return nil
	}
	for _, ending := range endings {
		if err := placeFor(name + ending); err != nil {
			return fmt.Errorf("-svg: %w", err)
		}
	}
	return nil
}

// replaceFile writes a file beside its place and moves it there once it is complete
// and durable. It overwrites what a killed process has left beside it.
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
