package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// corrupt returns the place of damage that the engine has found while some tables were read. A
// file may have rows of several tables: damage in the rows of another one hides nothing from
// the reader.
func (d *DB) corrupt(err error, tables string) *crawldb.CorruptError {
	c := &crawldb.CorruptError{File: d.path, Offset: -1, Err: err}
	if at, ok := sstables.BlockIn(err); ok {
		c.Offset = at
	}
	info := pebble.ExtractDataCorruptionInfo(err)
	if info == nil {
		return c
	}
	c.File = info.Path
	// The engine attaches the place to the error, with a text of its own.
	if both, ok := err.(interface{ Unwrap() []error }); ok && len(both.Unwrap()) > 0 {
		c.Err = both.Unwrap()[0]
	}
	var key []byte
	if c.Offset >= 0 {
		key = sstables.KeyAfter(d.under, c.File, c.Offset)
	} else {
		c.Offset = indexDamage(d.under, c.File)
	}
	if key == nil && c.Offset >= 0 && d.db != nil {
		key = behindFile(d.db, c.File)
	}
	if len(key) == 0 || !strings.ContainsRune(tables, rune(key[0])) {
		return c
	}
	if codec.IsLinkKey(key) {
		if _, page, ok := codec.SplitLinkKey(key); ok { // and not in short for the end of a layer
			c.ResumeKey = string(page)
		}
	} else {
		c.ResumeKey = string(key[1:])
	}
	return c
}

// indexDamage returns where the index of a table, or what leads to it, is damaged; -1 if
// it is not.
func indexDamage(under vfs.FS, path string) int64 {
	if !failfs.IsTable(path) {
		return -1
	}
	t, err := sstables.Open(under, path)
	if t != nil {
		defer t.Close()
	}
	var damage *crawldb.CorruptError
	if !errors.As(err, &damage) {
		return -1
	}
	return damage.Offset
}

// behindFile returns a key after all of a table; nil if unknown.
func behindFile(db *pebble.DB, path string) []byte {
	files, err := sstables.Files(db)
	if err != nil {
		return nil
	}
	for _, file := range files {
		if sstables.FileName(uint64(file.FileNum)) == filepath.Base(path) {
			return append(bytes.Clone(file.Largest.UserKey), 0)
		}
	}
	return nil
}

// damaged returns the error for an invalid stored value.
func (d *DB) damaged(what, name string, err error) error {
	c := &crawldb.CorruptError{File: filepath.Join(d.dir, databaseName), Offset: -1, URL: name, Err: err}
	return fmt.Errorf("%w: %s: %w", ErrDamaged, what, c)
}
