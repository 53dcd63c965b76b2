package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"

	_ "modernc.org/sqlite" // the driver; any other that has transactions will do

	"github.com/recrawl/recrawl/crawldb"
)

// Store is a crawldb.Store in a SQL database. Records are rows by crawldb.Key, whose order is
// that of bytes, so the column is a BLOB. Marks are in a table of their own, which is written
// in the same transaction.
type Store struct {
	db *sql.DB
}

// schema makes the tables. due is the fetch time in Unix seconds, for queries of one's own:
// SELECT count(*) FROM records WHERE due < unixepoch().
const schema = `
CREATE TABLE IF NOT EXISTS records (key BLOB PRIMARY KEY, record BLOB NOT NULL, due INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;`

// Open opens the store in a file, which is made if there is none.
func Open(file string) (*Store, error) {
	// Readers and one writer do not wait for each other (WAL). A writer begins as one, so that
	// no transaction fails halfway, and every commit is durable, so Sync has nothing to do.
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(60000)&_txlock=immediate")
	if err == nil {
		_, err = db.Exec(schema)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: open %s: %w", file, err)
	}
	return &Store{db}, nil
}

// wrapped names the operation in an error, and makes that of a closed database ErrClosed.
func wrapped(op string, err error) error {
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "database is closed") { // database/sql has no name for it
		err = crawldb.ErrClosed
	}
	return fmt.Errorf("sqlstore: %s: %w", op, err)
}

// decode makes a record from a row.
func decode(key, record []byte) (crawldb.Datum, error) {
	d := crawldb.Datum{URL: crawldb.URLOf(string(key))}
	return d, d.UnmarshalBinary(record)
}

func (s *Store) Get(ctx context.Context, url string) (crawldb.Datum, error) {
	key := []byte(crawldb.Key(url))
	var record []byte
	err := s.db.QueryRowContext(ctx, "SELECT record FROM records WHERE key = ?", key).Scan(&record)
	if errors.Is(err, sql.ErrNoRows) {
		err = crawldb.ErrNotFound
	}
	var d crawldb.Datum
	if err == nil {
		d, err = decode(key, record)
	}
	if err != nil {
		return crawldb.Datum{}, wrapped("get "+url, err)
	}
	return d, nil
}

// pageRows is how many rows Scan reads at once. No statement stays open while the caller has
// the records, who may take long, or write.
const pageRows = 1000

func (s *Store) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		from, after := []byte(r.From), false
		for {
			page, last, err := s.page(ctx, from, after, r.To)
			if err != nil {
				yield(crawldb.Datum{}, wrapped("scan", err))
				return
			}
			for _, d := range page {
				if err := ctx.Err(); err != nil {
					yield(crawldb.Datum{}, wrapped("scan", err))
					return
				}
				if !yield(d, nil) {
					return
				}
			}
			if len(page) < pageRows {
				return
			}
			from, after = last, true
		}
	}
}

// page reads the next rows from a key on, or after it, and returns the last key.
func (s *Store) page(ctx context.Context, from []byte, after bool, to string) (page []crawldb.Datum, last []byte, err error) {
	query := "SELECT key, record FROM records WHERE key >= ?"
	if after {
		query = "SELECT key, record FROM records WHERE key > ?"
	}
	args := []any{from}
	if to != "" {
		query, args = query+" AND key < ?", append(args, []byte(to))
	}
	rows, err := s.db.QueryContext(ctx, query+" ORDER BY key LIMIT ?", append(args, pageRows)...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var record []byte
		if err := rows.Scan(&last, &record); err != nil {
			return nil, nil, err
		}
		d, err := decode(last, record)
		if err != nil {
			return nil, nil, err
		}
		page = append(page, d)
	}
	return page, last, rows.Err()
}

// Update does the whole batch in one transaction. It reads each record inside of it, so two
// updates of a record cannot miss each other.
func (s *Store) Update(ctx context.Context, b crawldb.Batch) error {
	for i := 1; i < len(b.URLs); i++ {
		if crawldb.Compare(b.URLs[i-1], b.URLs[i]) >= 0 {
			return fmt.Errorf("sqlstore: update %s: %w", b.URLs[i], crawldb.ErrOrder)
		}
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return wrapped("update", err)
	}
	defer tx.Rollback() // does nothing after a commit
	for i, url := range b.URLs {
		if err := updateRecord(ctx, tx, url, func(old *crawldb.Datum) (*crawldb.Datum, error) { return b.Next(i, old) }); err != nil {
			return wrapped("update "+url, err)
		}
	}
	if b.Marks != nil {
		for name, value := range b.Marks() {
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO marks VALUES (?, ?)", name, value); err != nil {
				return wrapped("update", err)
			}
		}
	}
	return wrapped("update", tx.Commit())
}

func updateRecord(ctx context.Context, tx *sql.Tx, url string, next func(*crawldb.Datum) (*crawldb.Datum, error)) error {
	key := []byte(crawldb.Key(url))
	var record []byte
	var old *crawldb.Datum
	err := tx.QueryRowContext(ctx, "SELECT record FROM records WHERE key = ?", key).Scan(&record)
	if err == nil {
		var d crawldb.Datum
		d, err = decode(key, record)
		old = &d
	} else if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil {
		return err
	}
	d, err := next(old)
	switch {
	case err != nil:
		return err
	case d == old: // left as it is, or still missing
		return nil
	case d == nil:
		_, err = tx.ExecContext(ctx, "DELETE FROM records WHERE key = ?", key)
		return err
	}
	if record, err = d.AppendBinary(nil); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO records VALUES (?, ?, ?)", key, record, d.FetchTime.Unix())
	return err
}

func (s *Store) Mark(ctx context.Context, name string) (value string, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT value FROM marks WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, wrapped("mark "+name, err)
}

// Sync finds that every commit is durable already.
func (s *Store) Sync(ctx context.Context) error { return wrapped("sync", s.db.PingContext(ctx)) }

func (s *Store) Close() error { return s.db.Close() }
