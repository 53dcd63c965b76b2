package sstables

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// Live is what the manifest says about a table in use: its first and last key and the
// sequence numbers in it.
type Live struct {
	First, Last       []byte // nil of a table that is in use in part
	Smallest, Largest uint64
}

// Has reports whether a table with these keys and sequence numbers may be the one. The
// manifest counts deletions of ranges, too, and numbers of entries that were left out. A
// table of one number may have been ingested, and has its own then.
func (l Live) Has(is Live) bool {
	if l.First == nil || is.First == nil {
		return true
	}
	return bytes.Compare(l.First, is.First) <= 0 && bytes.Compare(is.Last, l.Last) <= 0 &&
		(l.Smallest == l.Largest || l.Smallest <= is.Smallest && is.Largest <= l.Largest)
}

// LiveTables asks the engine which tables are in use; nil if it cannot say. A file
// that may not be opened is an error: a user who may would find more.
func LiveTables(under vfs.FS, path string) (tables map[uint64]Live, err error) {
	defer func() {
		if recover() != nil {
			tables, err = nil, nil
		} else if !errors.Is(err, fs.ErrPermission) {
			err = nil
		}
	}()
	if err := logcheck.CheckFiles(under, path, nil); err != nil {
		return nil, err
	}
	db, err := OpenEngine(path, &pebble.Options{FS: storedir.ReadOnlyFS{FS: under}, ReadOnly: true, ErrorIfNotExists: true, DisableConsistencyCheck: true, FormatMajorVersion: EngineFormat, Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	defer CloseEngine(db)
	files, err := Files(db)
	if err != nil {
		return nil, err
	}
	tables = map[uint64]Live{}
	for i := range files {
		t := &files[i]
		l := Live{Smallest: uint64(t.SmallestSeqNum), Largest: uint64(t.LargestSeqNum)}
		if !t.Virtual {
			l.First, l.Last = bytes.Clone(t.Smallest.UserKey), bytes.Clone(t.Largest.UserKey)
		}
		tables[uint64(t.BackingSSTNum)] = l
	}
	return tables, nil
}

type quiet struct{}

func (quiet) Infof(string, ...any) {}

func (quiet) Errorf(string, ...any) {}

func (quiet) Fatalf(string, ...any) {}

// EngineFormat pins what the engine writes; it is raised together with
// formatVersion if older packages could not read the result. This one has
// checksums in the footer of tables and distinguishes a damaged log from one
// that ends early.
const EngineFormat = pebble.FormatTableFormatV6

// OpenEngine is pebble.Open for files of unknown origin: it answers some kinds
// of damage with a panic.
func OpenEngine(path string, po *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, fmt.Errorf("%w: %v", damage.Err, r)
		}
	}()
	return pebble.Open(path, po)
}

// CloseEngine is db.Close, which may panic after a failure, in audits of its
// own bookkeeping.
func CloseEngine(db *pebble.DB) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return db.Close()
}

// Files returns the tables of all levels.
func Files(db *pebble.DB) ([]pebble.SSTableInfo, error) {
	levels, err := db.SSTables()
	return slices.Concat(levels...), err
}

// FileName is the name of a table of the engine.
func FileName(number uint64) string { return fmt.Sprintf("%06d.sst", number) }
