package pebblestore

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/dueindex"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// A lease is stored beside its record, in a table of its own. Records that are
// selected together lie far apart, and writing one anew means that the engine
// sooner or later reads and writes everything around it; at any time leases are
// few and lie together. The entry in the due index is not rewritten either.
//
// A record that an older version wrote may contain its lease. That lease applies as long
// as there is none in the table, and is moved there when the due index is built, before
// the first selection.

// decode sets *d to the record that the tables have under a key, given without
// the byte of the table.
func (s *crawlStore) decode(d *crawldb.Datum, keys *crawldb.Keys, key, value, lease []byte) error {
	if err := keys.Decode(d, key, value); err != nil {
		return s.db.damaged("the crawl record of", d.URL, err)
	}
	if len(lease) > 0 {
		if err := codec.DecodeLease(d, lease); err != nil {
			return s.db.damaged("the lease of", d.URL, err)
		}
	}
	return nil
}

// leasesBeside returns the leases as of the moment of an iterator over records.
func leasesBeside(it *pebble.Iterator) (rows.Joined, error) { return rows.Join(it, codec.LeaseTable) }

// putLease writes a lease to the batch that writes the record with that key of
// the crawl table; an empty lease means none.
func (s *crawlStore) putLease(batch dueindex.Writer, key, lease []byte) error {
	key[0] = byte(codec.LeaseTable)
	defer func() { key[0] = byte(codec.CrawlTable) }()
	if len(lease) == 0 {
		return batch.Delete(key, nil)
	}
	s.leasing.Store(true)
	return batch.Set(key, lease, nil)
}

// loadLeases checks whether there are any leases.
func (s *crawlStore) loadLeases() error {
	any, err := s.db.has(codec.LeaseTable)
	s.leasing.Store(any)
	return err
}
