// Package memstore keeps all that a crawler stores in memory. It is the
// reference engine of each storage contract, for tests, examples and crawls
// that fit and may be lost. The zero value of each type is ready for use.
//
// All four stores fulfil their contracts except for durability: Sync and Commit
// succeed and nothing survives the process. They take as much memory as the
// encoded records (about 150 bytes for a plain record of a crawl db), and the
// blocks of segments until they are removed.
package memstore

import (
	"errors"
	"fmt"
)

// A DB holds one store of each kind. Its zero value is empty and ready. A DB
// must not be copied.
type DB struct {
	crawl    Crawl
	hosts    Hosts
	links    Links
	segments Segments
}

// Crawl returns the store of crawl records.
func (db *DB) Crawl() *Crawl { return &db.crawl }

// Hosts returns the store of hosts.
func (db *DB) Hosts() *Hosts { return &db.hosts }

// Links returns the store of inlinks.
func (db *DB) Links() *Links { return &db.links }

// Segments returns the store of segments.
func (db *DB) Segments() *Segments { return &db.segments }

// Close closes the four stores and releases what they hold. It returns nil.
func (db *DB) Close() error {
	return errors.Join(db.crawl.Close(), db.hosts.Close(), db.links.Close(), db.segments.Close())
}

// failed names the operation and what it was about.
func failed(op, about string, err error) error {
	return fmt.Errorf("memstore: %s %q: %w", op, about, err)
}
