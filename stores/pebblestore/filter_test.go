package pebblestore

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// TestLastLevelHasNoFilters: they are a twentieth of what a URL takes, and answer
// only for what is not there.
func TestLastLevelHasNoFilters(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// A table that is alone is moved to the last level as it is; the second is merged
	// with it.
	for score := range 2 {
		err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{"http://a.test/"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{Status: crawldb.Unfetched, Score: float32(score)}, nil
		}})
		if err == nil {
			err = db.Compact(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	levels, err := db.db.SSTables(pebble.WithProperties())
	if err != nil {
		t.Fatal(err)
	}
	last := levels[len(levels)-1]
	if len(last) == 0 {
		t.Fatal("the last level is empty")
	}
	for _, table := range last {
		if table.Properties.FilterSize > 0 {
			t.Errorf("a table of the last level has a filter of %d bytes", table.Properties.FilterSize)
		}
	}
}

// TestTablesAboveOthersHaveFilters: a table that UpdateAll puts above others has a filter, so
// that reading a few records that it does not have reads none of its blocks.
func TestTablesAboveOthersHaveFilters(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shortSteps(db, 1)
	for pass := range 2 {
		if err := crawldb.UpdateAll(t.Context(), db.Crawl(), counting(pass*countBatches, pass+1, nil)); err != nil {
			t.Fatal(err)
		}
		levels, err := db.db.SSTables(pebble.WithProperties())
		if err != nil {
			t.Fatal(err)
		}
		filtered := 0
		for _, level := range levels {
			for _, table := range level {
				if table.Properties.FilterSize == 0 {
					continue
				}
				if filtered++; table.Smallest.UserKey[0] != byte(codec.CrawlTable) {
					t.Errorf("a table from %q on has a filter that no read uses", table.Smallest.UserKey)
				}
			}
		}
		if (filtered > 0) != (pass > 0) {
			t.Errorf("pass %d: %d tables have filters", pass, filtered)
		}
	}
	// Between the others, and not there.
	b := crawldb.Batch{Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) { return old, nil }}
	for _, u := range countingBatch(1, 0, countBatches*countEach).URLs {
		if hash(u)%30 == 0 {
			b.URLs = append(b.URLs, u+"x")
		}
	}
	before := db.db.Metrics().Filter
	if err := db.Crawl().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if m := db.db.Metrics().Filter; m.Hits-before.Hits < int64(len(b.URLs)/2) {
		t.Errorf("of %d records that are not there filters found %d", len(b.URLs), m.Hits-before.Hits)
	}
}

// countedFile counts how often it is read.
type countedFile struct {
	vfs.File
	reads int
}

func (f *countedFile) ReadAt(b []byte, at int64) (int, error) {
	f.reads++
	return f.File.ReadAt(b, at)
}

// TestBlockSearchSkipsFilters: if the block behind a filter is damaged, no block is
// looked for at each byte of the filter, of which a large table has a megabyte.
func TestBlockSearchSkipsFilters(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := filepath.Join(t.TempDir(), "000001.sst")
	rows := map[string][]byte{}
	for i := range 5000 {
		rows[fmt.Sprintf("%c%d", codec.CrawlTable, i)] = []byte{1}
	}
	err = db.writeTable(name, true, false, func(w *sstable.Writer) error {
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if err := w.Set([]byte(key), rows[key]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := sstables.Open(vfs.Default, name)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := whole.Reader.Layout()
	if err := errors.Join(err, whole.Close()); err != nil || len(layout.Filter) != 1 {
		t.Fatal(layout.Filter, err)
	}
	filter := layout.Filter[0]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[filter.Offset+filter.Length+block.TrailerLen] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := sstables.Open(vfs.Default, name)
	if err == nil {
		t.Fatal("the table is not damaged")
	}
	defer damaged.Close()
	f := &countedFile{File: damaged.File}
	damaged.File = f
	if err := damaged.Carve(t.Context(), dirstore.NewZeroFillReader(f, func(_ int64, err error) { t.Error(err) })); err != nil {
		t.Fatal(err)
	}
	if f.reads >= int(filter.Length) {
		t.Errorf("%d reads of a table with a filter of %d bytes", f.reads, filter.Length)
	}
	if len(damaged.Data) != len(whole.Data) {
		t.Errorf("%d blocks were found, not %d", len(damaged.Data), len(whole.Data))
	}
}
