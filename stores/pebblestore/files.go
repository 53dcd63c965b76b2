package pebblestore

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The small files beside the database, as the engine's file system has them.

func readFile(under vfs.FS, name string) ([]byte, error) {
	f, err := under.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// writeFile makes a file durable, but not its name.
func writeFile(under vfs.FS, name string, data []byte) error {
	f, err := under.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes durable the names in a directory.
func syncDir(under vfs.FS, name string) error {
	f, err := under.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
