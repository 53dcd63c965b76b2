package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Open opens the store in a file; if there is no file, the store is empty.
func Open(file string) (*Store, error) {
	s, t := &Store{file: file}, &table{}
	f, err := os.Open(file)
	if err == nil {
		defer f.Close()
		err = gob.NewDecoder(f).Decode(t)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("customstore: %s: %w", file, err)
	}
	if t.Records == nil {
		t.Records = map[string][]byte{}
	}
	if t.Marks == nil {
		t.Marks = map[string]string{}
	}
	s.current.Store(t)
	return s, nil
}

// Sync writes a new file beside the old one and renames it, so that there is a complete
// file at any moment.
func (s *Store) Sync(ctx context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	t, err := s.table(ctx)
	if err != nil {
		return err
	}
	return s.write(t)
}

// Close syncs. A store whose file cannot be written is closed anyway.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if t := s.current.Swap(nil); t != nil {
		return s.write(t)
	}
	return nil
}

func (s *Store) write(t *table) error {
	f, err := os.Create(s.file + ".new")
	if err == nil {
		err = errors.Join(gob.NewEncoder(f).Encode(t), f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), s.file)
	}
	if err == nil {
		err = syncDir(filepath.Dir(s.file)) // the new name, too
	}
	if err != nil {
		return fmt.Errorf("customstore: %w", err)
	}
	return nil
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
