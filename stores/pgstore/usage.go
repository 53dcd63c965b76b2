package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Usage returns the size of each table of the crawl in bytes, with its indexes and as PostgreSQL counts
// it. free is negative: the server does not say how much is free on its disk.
func (db *DB) Usage(ctx context.Context) (parts map[string]int64, free int64, err error) {
	parts = map[string]int64{}
	err = db.retry(ctx, func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'm')`, db.name)
		if err != nil {
			return err
		}
		clear(parts)
		var table string
		var size int64
		_, err = pgx.ForEachRow(rows, []any{&table, &size}, func() error { parts[table] = size; return nil })
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("pgstore: size of the tables: %w", err)
	}
	return parts, -1, nil
}
