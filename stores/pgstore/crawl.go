package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
)

var (
	_ crawldb.DueStore  = (*crawlStore)(nil)
	_ crawldb.BulkStore = (*crawlStore)(nil)
	_ crawldb.MarkStore = (*crawlStore)(nil)
)

// crawlStore is the crawl db. Updates take turns, so that what an update has read stays until
// it is applied: every other writer has a DB of its own, whose opening fences this one.
type crawlStore struct {
	view
	turn chan struct{}

	// These belong to the update whose turn it is.
	applied int64 // the number of applied sets of changes
	known   bool  // whether applied is that of the database
}

// Get implements [crawldb.Store].
func (s *crawlStore) Get(ctx context.Context, url string) (crawldb.Datum, error) {
	d, err := s.get(ctx, url)
	if err != nil {
		return crawldb.Datum{}, fmt.Errorf("pgstore: get %q: %w", url, err)
	}
	return d, nil
}

func (s *crawlStore) get(ctx context.Context, url string) (crawldb.Datum, error) {
	index, _ := indexed(crawldb.AppendKey(nil, url))
	var record []byte
	err := s.read(ctx, func(ctx context.Context) error {
		return s.db.pool.QueryRow(ctx, `SELECT record FROM page WHERE key = $1`, index).Scan(&record)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = crawldb.ErrNotFound
	}
	if err != nil {
		return crawldb.Datum{}, err
	}
	d := crawldb.Datum{URL: url}
	if err := d.UnmarshalBinary(record); err != nil {
		return crawldb.Datum{}, s.db.damaged("page", url, err)
	}
	return d, nil
}

// pageSource is the table of records.
var pageSource = source{table: "page", values: "record", rows: 4000}

// Scan implements [crawldb.Store].
func (s *crawlStore) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		var keys crawldb.Keys
		for x, err := range s.scan(ctx, pageSource, r) {
			var d crawldb.Datum
			if err == nil {
				if err = keys.Decode(&d, x.key, x.value); err != nil {
					err = s.db.damaged("page", d.URL, err)
				}
			}
			if err != nil {
				yield(crawldb.Datum{}, fmt.Errorf("pgstore: scan: %w", err))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Sync implements [crawldb.Store]. Every update is durable when it returns.
func (s *crawlStore) Sync(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("pgstore: sync: %w", err)
	}
	return nil
}

// Mark implements [crawldb.Store].
func (s *crawlStore) Mark(ctx context.Context, name string) (string, error) {
	var value []byte
	err := s.read(ctx, func(ctx context.Context) error {
		return s.db.pool.QueryRow(ctx, `SELECT value FROM mark WHERE name = $1`, []byte(name)).Scan(&value)
	})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("pgstore: mark %q: %w", name, err)
	}
	return string(value), nil
}

// marksRead is how many marks are read at once.
const marksRead = 200

// Marks implements [crawldb.MarkStore].
func (s *crawlStore) Marks(ctx context.Context) iter.Seq2[crawldb.NamedMark, error] {
	return func(yield func(crawldb.NamedMark, error) bool) {
		query, args := `SELECT name, value FROM mark ORDER BY name LIMIT $1`, []any{marksRead}
		for {
			var page []crawldb.NamedMark
			err := s.read(ctx, func(ctx context.Context) error {
				rows, err := s.db.pool.Query(ctx, query, args...)
				if err != nil {
					return err
				}
				page, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (crawldb.NamedMark, error) {
					var name, value []byte
					err := r.Scan(&name, &value)
					return crawldb.NamedMark{Name: string(name), Value: string(value)}, err
				})
				return err
			})
			for _, m := range page {
				if err = s.ready(ctx); err != nil {
					break
				}
				if !yield(m, nil) {
					return
				}
			}
			if err != nil {
				yield(crawldb.NamedMark{}, fmt.Errorf("pgstore: marks: %w", err))
				return
			}
			if len(page) < marksRead {
				return
			}
			query, args = `SELECT name, value FROM mark WHERE name > $2 ORDER BY name LIMIT $1`, []any{marksRead, []byte(page[len(page)-1].Name)}
		}
	}
}

// Close implements [crawldb.Store].
func (s *crawlStore) Close() error {
	s.end()
	return nil
}
