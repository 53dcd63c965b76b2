package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/recrawl/recrawl/crawldb"
)

// Store is a crawldb.Store in one file, good for some thousand URLs. Every
// update makes a new table, so that readers need no lock and see an update whole
// or not at all. Sync writes the file.
type Store struct {
	file    string
	writing sync.Mutex            // held by Update, Sync and Close
	current atomic.Pointer[table] // nil once closed
}

// table is never changed once it is current.
type table struct {
	Records map[string][]byte // encoded, by crawldb.Key of their URL
	Marks   map[string]string
}

// Open opens the store in a file; none is an empty store.
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

func (s *Store) table(ctx context.Context) (*table, error) {
	t := s.current.Load()
	if t == nil {
		return nil, crawldb.ErrClosed
	}
	return t, ctx.Err()
}

// get returns the record of a key, nil if there is none. What it returns shares
// no memory with the table.
func (t *table) get(key string) (*crawldb.Datum, error) {
	data, ok := t.Records[key]
	if !ok {
		return nil, nil
	}
	d := &crawldb.Datum{URL: crawldb.URLOf(key)}
	return d, d.UnmarshalBinary(data)
}

func (s *Store) Get(ctx context.Context, url string) (crawldb.Datum, error) {
	t, err := s.table(ctx)
	if err != nil {
		return crawldb.Datum{}, err
	}
	d, err := t.get(crawldb.Key(url))
	if err == nil && d == nil {
		err = crawldb.ErrNotFound
	}
	if err != nil {
		return crawldb.Datum{}, fmt.Errorf("customstore: get %s: %w", url, err)
	}
	return *d, nil
}

func (s *Store) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		t, err := s.table(ctx)
		if err != nil {
			yield(crawldb.Datum{}, err)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(t.Records)) {
			if !r.Contains(key) {
				continue
			}
			d, err := t.get(key)
			if err != nil || ctx.Err() != nil {
				yield(crawldb.Datum{}, errors.Join(err, ctx.Err()))
				return
			}
			if !yield(*d, nil) {
				return
			}
		}
	}
}

func (s *Store) Update(ctx context.Context, b crawldb.Batch) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	old, err := s.table(ctx)
	if err != nil {
		return err
	}
	t := &table{maps.Clone(old.Records), maps.Clone(old.Marks)}
	for i, url := range b.URLs {
		if i > 0 && crawldb.Compare(b.URLs[i-1], url) >= 0 {
			return fmt.Errorf("customstore: update %s: %w", url, crawldb.ErrOrder)
		}
		if err := t.apply(crawldb.Key(url), func(old *crawldb.Datum) (*crawldb.Datum, error) { return b.Next(i, old) }); err != nil {
			return fmt.Errorf("customstore: update %s: %w", url, err)
		}
	}
	if b.Job != "" {
		t.Marks[b.Job] = b.Cursor // an empty one reads as none
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.current.Store(t)
	return nil
}

func (t *table) apply(key string, next func(*crawldb.Datum) (*crawldb.Datum, error)) error {
	old, err := t.get(key)
	if err != nil {
		return err
	}
	d, err := next(old)
	switch {
	case err != nil:
		return err
	case d == nil:
		delete(t.Records, key)
		return nil
	}
	t.Records[key], err = d.AppendBinary(nil)
	return err
}

func (s *Store) Progress(ctx context.Context, job string) (string, error) {
	t, err := s.table(ctx)
	if err != nil {
		return "", err
	}
	return t.Marks[job], nil
}

// Sync writes a new file beside the old one and puts it in its place, so that
// at any moment there is a whole one.
func (s *Store) Sync(ctx context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	t, err := s.table(ctx)
	if err != nil {
		return err
	}
	return s.write(t)
}

// Close syncs. A store whose file cannot be written is closed all the same.
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
