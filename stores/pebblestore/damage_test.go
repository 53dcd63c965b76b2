package pebblestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
)

// contents reads all that a store holds.
func contents(t *testing.T, db *DB) (all []any, err error) {
	ctx := t.Context()
	for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	for h, err := range db.Hosts().Scan(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	for e, err := range db.Links().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	cursor, err := db.Crawl().Mark(ctx, "trial")
	return append(all, cursor), err
}

// fill writes something into every table; a part of it stays in the log.
func fill(t *testing.T, db *DB) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.Crawl().Update(ctx, trialBatch(1)))
	must(db.Links().Merge(ctx, []linkdb.Entry{
		{URL: "http://a.example/", Inlinks: []linkdb.Inlink{{From: "http://b.example/", Anchor: "a"}, {From: "http://b.example/2"}}},
	}, 0))
	must(db.Compact(ctx))
	must(db.Crawl().Update(ctx, trialBatch(2)))
	must(db.Hosts().Update(ctx, "a.example", func(*hostdb.Host) (*hostdb.Host, error) {
		return &hostdb.Host{Robots: []hostdb.Robots{{Origin: "http://a.example", Body: []byte("User-agent: *")}}}, nil
	}))
}

// TestDamage changes one bit of a file at a time. What can be read afterwards
// is what was written; the rest is an error that is ErrDamaged and names the
// directory.
func TestDamage(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, db)
	want, err := contents(t, db)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, databaseName, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, filepath.Join(dir, formatName)) {
		base := filepath.Base(name)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(base, "OPTIONS") || len(text) == 0 {
			continue // says nothing about the data
		}
		harmless, detected := 0, 0
		step := max(len(text)/testlevel.Pick(15, 50), 1)
		for at := 0; at < len(text); at += step {
			copied := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(dir, name)
			bad := append([]byte(nil), text...)
			bad[at] ^= 1 << (at % 8)
			if err := os.WriteFile(filepath.Join(copied, rel), bad, 0o644); err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("%s with bit %d of byte %d of %d changed", base, at%8, at, len(text))
			db, err := Open(copied, small())
			if err == nil {
				var got []any
				got, err = contents(t, db)
				if err == nil && !reflect.DeepEqual(got, want) {
					t.Errorf("%s: reads as %d things, not as the %d that were written", where, len(got), len(want))
				}
				if e := db.Close(); err == nil {
					err = e
				}
			}
			switch {
			case err == nil:
				harmless++
			case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrNotStore) || !strings.Contains(err.Error(), copied):
				t.Errorf("%s: %v", where, err)
			default:
				detected++
			}
		}
		t.Logf("%s: %d bytes, %d changes were found, %d did no harm", base, len(text), detected, harmless)
	}
}
