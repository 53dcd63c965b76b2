package pebblestore

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// Rows returns the contents of the tables of a store, byte by byte, except for what depends on
// when it was written.
func (d *DB) Rows() (string, error) {
	it, err := d.db.NewIter(&pebble.IterOptions{})
	if err != nil {
		return "", err
	}
	defer it.Close()
	var b strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		if codec.Table(it.Key()[0]) != codec.StateTable {
			fmt.Fprintf(&b, "%q %x\n", it.Key(), it.Value())
		}
	}
	return b.String(), it.Error()
}

// LinksAsTables lets each Merge of the link db make a table, however little it adds.
func (d *DB) LinksAsTables() { d.links.leastTable = 0 }

// CopyKilled copies the directory of a store that is open, and not in use, as it would be
// behind a kill at one instant: the engine may change files of its own accord, and then it is
// copied again.
func (d *DB) CopyKilled(to string) error {
	for {
		d.db.TestOnlyWaitForCleaning()
		before, err := d.under.List(d.path)
		if err != nil {
			return err
		}
		copied := os.CopyFS(to, os.DirFS(d.dir))
		after, err := d.under.List(d.path)
		if err != nil {
			return err
		}
		slices.Sort(before)
		slices.Sort(after)
		if slices.Equal(before, after) { // each change of the manifest changes the name that says how long it is
			return copied
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
	}
}

// EndsWithRecord reports whether a log ends where a record of it does.
func EndsWithRecord(log string) bool {
	r, err := logcheck.ReadFile(vfs.Default, log, logcheck.LogNumber(log))
	return err == nil && r.Tail == 0
}

// SalvageFrom is Salvage of a store whose database lies on a disk.
func SalvageFrom(ctx context.Context, disk vfs.FS, dir, newDir string, o SalvageOptions) (SalvageReport, error) {
	return salvageFrom(ctx, disk, dir, newDir, o)
}

// Kinds counts what the tables of a store have, and the bytes of it, by table; of marks by
// what their names begin with.
func (d *DB) Kinds() (rows, size map[string]int, err error) {
	it, err := d.db.NewIter(&pebble.IterOptions{})
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	rows, size = map[string]int{}, map[string]int{}
	for ok := it.First(); ok; ok = it.Next() {
		kind := string(it.Key()[:1])
		if codec.Table(it.Key()[0]) == codec.MarkTable {
			name, _, _ := strings.Cut(string(it.Key()[1:]), "/")
			kind = "mark " + name
		}
		rows[kind]++
		size[kind] += len(it.Key()) + len(it.Value())
	}
	return rows, size, it.Error()
}

// SetRow writes a row into the database, of whatever table.
func (d *DB) SetRow(key, value string) error {
	return d.db.Set([]byte(key), []byte(value), pebble.Sync)
}

// Row returns the value of a row.
func (d *DB) Row(key string) (string, error) {
	value, err := rows.Get(d.db, []byte(key))
	return string(value), err
}

// BeginsAt returns where the part of a table that has some byte begins: a block, or what the table ends with.
func BeginsAt(path string, at int64) (int64, error) {
	t, err := sstables.Open(vfs.Default, path)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	begins := int64(0)
	for _, b := range append(t.Data, t.Other...) {
		if b.At <= at {
			begins = max(begins, b.At)
		}
	}
	if end := t.Size - sstables.FooterSize; end <= at {
		begins = end
	}
	return begins, nil
}
