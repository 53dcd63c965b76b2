package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/recrawl/recrawl/crawldb"
)

// Store is a crawldb.Store in one file, good for some thousand URLs. Every
// update makes a new table, so that readers need no lock and see all of an update
// or none of it. Sync writes the file.
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

func (s *Store) Mark(ctx context.Context, job string) (string, error) {
	t, err := s.table(ctx)
	if err != nil {
		return "", err
	}
	return t.Marks[job], nil
}
