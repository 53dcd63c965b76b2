package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/recrawl/recrawl/crawldb"
)

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
	if b.Marks != nil {
		maps.Copy(t.Marks, b.Marks()) // an empty value reads as none
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
