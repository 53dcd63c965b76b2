package pebblestore

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// The due index has versions of its own, which small stores such as those of TestGolden never
// come to. Each is read from a directory that has it, and made again row by row.
func TestGoldenIndexes(t *testing.T) {
	const n = 300
	fetched := func(t *testing.T, next func(int, *crawldb.Datum) *crawldb.Datum) *DB {
		db, urls := soonStore(t, n)
		db.crawl.farKeys = 100
		visitOthers(t, db, urls, next)
		return db
	}
	for version, fresh := range map[byte]func(t *testing.T) *DB{
		trimmedState: func(t *testing.T) *DB {
			db, err := Open(t.TempDir(), small())
			if err != nil {
				t.Fatal(err)
			}
			b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch, Priority: float32(i%97 + 1)}, nil
			}}
			for i := range 5 * n {
				b.URLs = append(b.URLs, fmt.Sprintf("http://h%d.example/%05d", i/n, i))
			}
			if err := errors.Join(db.Crawl().Update(t.Context(), b), db.crawl.prepare(t.Context(), dueEpoch.UnixMilli()), db.db.Flush()); err != nil {
				t.Fatal(err)
			}
			db.crawl.due.least = 10
			if err := db.crawl.tryTrim(t.Context()); err != nil {
				t.Fatal(err)
			}
			return db
		},
		longState:  func(t *testing.T) *DB { return fetched(t, later) },
		staleState: func(t *testing.T) *DB { return fetched(t, doubled) },
	} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			golden := filepath.Join("testdata", fmt.Sprintf("due%d", version))
			made := fresh(t)
			want, err := made.Rows()
			if err = errors.Join(err, made.Compact(t.Context()), made.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(golden); errors.Is(err, fs.ErrNotExist) && flag.Lookup("update").Value.String() == "true" {
				if err := os.CopyFS(golden, os.DirFS(made.dir)); err != nil {
					t.Fatal(err)
				}
			}
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
				t.Fatal(err)
			}
			// What keeps the directory may not keep one that is empty.
			if err := os.MkdirAll(filepath.Join(dir, "segments"), 0o755); err != nil {
				t.Fatal(err)
			}
			db, err := Open(dir, small())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { db.Close() }()
			if state, err := rows.Get(db.db, dueKey); err != nil || state[0] != version || db.crawl.due.late.Load() {
				t.Errorf("the state is % x, %v", state, err)
			}
			if got, err := db.Rows(); err != nil || got != want {
				t.Errorf("what is written is not what %s has, %v:\n%.2000s\n%.2000s", golden, err, want, got)
			}
			for _, q := range []crawldb.DueQuery{{Now: dueEpoch}, {Now: dueEpoch.AddDate(0, 2, 0), AheadOfClock: 20 * soonHours}, {Now: dueEpoch.AddDate(0, 3, 0)}} {
				sameAsScan(t, db, q)
				if err := db.CheckIndex(t.Context()); err != nil {
					t.Errorf("%+v: %v", q, err)
				}
			}
		})
	}
}
