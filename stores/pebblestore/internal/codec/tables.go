// Package codec encodes what the tables of a pebblestore hold: keys, records, leases, hosts and
// inlinks. It reads and writes bytes only: it opens no files. The tables and their keys
// are in tables.go; the formats are stored, so a change of one needs a new version byte.
package codec

import "github.com/cockroachdb/pebble/v2"

// A Table is the first byte of the keys of one kind. The bytes are stored:
// never reuse or change them.
type Table byte

const (
	CrawlTable      Table = 'c' // crawldb.Key: Datum without its lease
	LeaseTable      Table = 'e' // crawldb.Key: lease
	ReadyTable      Table = 'd' // level, crawldb.Key: entry
	HostTable       Table = 'h' // name: Host without its robots.txt files
	LayerTable      Table = 'i' // layer, crawldb.Key: inlinks, to be merged
	LinkTable       Table = 'l' // crawldb.Key: inlinks, to be merged
	MarkTable       Table = 'm' // job: cursor
	HostDetailTable Table = 'r' // name: robots.txt files and statistics of a host
	StateTable      Table = 's' // the store's own state
	TallyTable      Table = 't' // host: entries of the ready table, by level
	WheelTable      Table = 'w' // bucket, crawldb.Key: entry
)

// AllTables has the bytes of all tables.
var AllTables = string([]byte{byte(CrawlTable), byte(ReadyTable), byte(LeaseTable), byte(HostTable), byte(LayerTable), byte(LinkTable), byte(MarkTable), byte(HostDetailTable), byte(StateTable), byte(TallyTable), byte(WheelTable)})

// Key returns the key of a name in the table.
func (t Table) Key(name string) []byte {
	return append(append(make([]byte, 0, 1+len(name)), byte(t)), name...)
}

// All are the options of an iterator over the table.
func (t Table) All() *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: []byte{byte(t)}, UpperBound: []byte{byte(t) + 1}}
}

// Bounds returns the bounds of the table's keys in the range.
func (t Table) Bounds(from, to string) (lower, upper []byte) {
	if to == "" {
		return t.Key(from), []byte{byte(t) + 1}
	}
	return t.Key(from), t.Key(to)
}

// IsMerged reports whether a value written under a key is added to the existing one.
func IsMerged(key []byte) bool { return Table(key[0]) == TallyTable || IsLinkKey(key) }

// RecordKeyOffset returns the length of what precedes the key of the record in a key of the
// table; zero if the table has no rows of single records.
func (t Table) RecordKeyOffset() int {
	switch t {
	case CrawlTable, LeaseTable:
		return 1
	case ReadyTable:
		return 1 + 2 // the level
	case WheelTable:
		return 1 + 4 // the hour
	}
	return 0
}
