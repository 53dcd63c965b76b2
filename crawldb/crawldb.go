// Package crawldb is the memory of a crawler: one record ([Datum]) for every
// URL it has ever heard of, and the contract of the storage that keeps them
// ([Store]).
//
// The package owns the record, its encoding, the order of its keys and the
// contract of its storage. It decides nothing: package schedule decides when a
// page is due, and package update what a visit does to a record.
//
// To keep the records somewhere else, implement Store and run
// crawldbtest.Run against it. The stock engines are stores/memstore and
// stores/pebblestore.
package crawldb

import (
	"context"
	"errors"
	"iter"
)

// ErrNotFound says that the store has no record of a URL.
var ErrNotFound = errors.New("crawldb: not found")

// ErrOrder says that the URLs of a [Batch] are not strictly ascending.
var ErrOrder = errors.New("crawldb: batch is not in key order")

// ErrClosed says that the store was closed.
var ErrClosed = errors.New("crawldb: store is closed")

// A Store keeps the records, and the marks of the stages that write them ([Mark]).
//
// Concurrency: every method may be called from many goroutines at once. Updates
// that share a URL are applied one after the other, each seeing the result of
// the one before; so inject may run during a crawl. Close waits for no one: a
// call that runs concurrently with it or after it may fail with ErrClosed, but
// does no harm.
//
// Order: records are kept and scanned in the order of [Key].
//
// Atomicity: an Update is applied whole, marks included, or not at all, and a
// reader of one record never sees half of it.
//
// Durability: once Sync has returned, every Update that had returned before
// Sync was called survives any end of the process or machine. After a crash
// without Sync the store holds a prefix of the updates in the order in which
// they returned: a later one never without an earlier one. Close syncs.
//
// Ownership: the caller owns what it is given and may change it. The store
// retains nothing that it is given. Next may read the values passed to it but
// not change them.
//
// Cancellation: a method whose context is done before it starts returns an
// error that is ctx.Err(), and an Update that was cancelled has changed nothing.
//
// Errors: a missing record is an error that is ErrNotFound. Damage is an error
// that names the place. A store never panics because of its contents.
type Store interface {
	// Get returns the record of a URL, or an error that is ErrNotFound.
	Get(ctx context.Context, url string) (Datum, error)

	// Scan yields the records of the range in ascending order of their keys. It
	// is weak: a record that is written while the scan runs may be seen before
	// or after, but a record that is not written is seen exactly once. The loop
	// may write to the store and may break. An error ends the sequence and comes
	// with a zero Datum.
	Scan(ctx context.Context, r Range) iter.Seq2[Datum, error]

	// Update applies a batch. See [Batch].
	Update(ctx context.Context, b Batch) error

	// Sync makes durable every Update that returned before it.
	Sync(ctx context.Context) error

	// Mark returns the value of a mark as the last applied batch that wrote it left
	// it; empty if there is none. See [Mark] for the names in use.
	Mark(ctx context.Context, name string) (value string, err error)

	// Close syncs and ends the use of the store. A second Close does nothing.
	Close() error
}

// Batch is one read-modify-write step over some records.
type Batch struct {
	// URLs are the records to visit, strictly ascending in key order
	// ([Compare]); otherwise Update returns an error that is ErrOrder and changes
	// nothing. A batch of 5,000 to 20,000 URLs is a good size; none is fine if
	// there are marks to write.
	URLs []string

	// Next is given the index of a URL and its record, nil if there is none, and
	// returns the record to keep: old itself to leave it as it is, nil to delete
	// it. It is called in ascending order of i and must be pure: an engine may
	// call it again for the same i, or for all of them from the start, when a
	// transaction has to be repeated. To hand something out, fill slot i of a
	// slice; never append or count. It must not change *old nor use the store.
	// The URL of the record it returns is taken to be URLs[i]. An error ends
	// the Update, which returns it wrapped and changes nothing.
	Next func(i int, old *Datum) (*Datum, error)

	// Tokens, if not nil, has for each of the URLs the Token of the [Candidate] by
	// which it was found, or an empty string. It can save a store from reading a
	// record again, if the store is sure that the record has not changed. Tokens
	// never change the result of an Update.
	Tokens []string

	// Marks, if not nil, returns marks to write in the same atomic step, by their
	// names, such as how far a stage has come once this batch is applied; an empty
	// value removes a mark. It is called once Next has been called for all URLs, so
	// a mark may depend on what Next found. Like Next it must be pure and may be
	// called again. [Mark] makes one for a single mark with a fixed value.
	Marks func() map[string]string
}
