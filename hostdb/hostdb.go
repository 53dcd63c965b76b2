// Package hostdb keeps what a crawler knows of each host: when the next request may be
// made, how many may be under way, what its robots.txt said, how it has behaved. Because
// this is stored, politeness survives a restart; because it is shared, all rounds and
// crawlers that use the same [Store] act as one polite client.
//
// The package owns the record ([Host]) and the contract of its storage; the
// rules of politeness are applied by package fetch, those of robots.txt by
// package robots.
//
// The stock engines are stores/memstore and stores/pebblestore; a new one must
// pass hostdbtest.Run.
package hostdb

import (
	"context"
	"errors"
	"iter"
)

// ErrNotFound says that the store has no record of a host.
var ErrNotFound = errors.New("hostdb: not found")

// ErrClosed says that the store was closed.
var ErrClosed = errors.New("hostdb: store is closed")

// A Store keeps one record per host.
//
// Concurrency: every method may be called from many goroutines at once. Updates
// of one host are applied one after the other, each seeing the result of the
// one before: of two that want the grant of a host, exactly one gets it.
//
// Atomicity: an Update is applied whole or not at all.
//
// Durability: once Sync has returned, every Update that had returned before
// Sync was called survives any end of the process or machine; without Sync it
// is written within a second. So that a crash can only make a crawler slower, a
// store that was not closed properly treats, when it is opened, each host asked
// within the last minute before the crash as if it had been asked at the moment
// of opening ([Host.AfterCrash]). Close syncs.
//
// Ownership: the caller owns what it is given; the store retains nothing that it
// is given. What is passed to next is only lent: next may read it but not change
// it, and must copy a Body of Robots that is to outlive the call.
//
// Values: any string is a name, also an empty one and one that is not UTF-8. A
// record is kept as it is given, down to the sign of a zero, infinities and the
// bytes of strings; only times are cut, see [Host]. (encoding/gob loses the sign of
// a zero; encoding/json has no infinities, and no strings that are not UTF-8.)
//
// Cancellation: a method whose context is done before it starts returns an
// error that is ctx.Err() and changes nothing.
//
// Errors: a missing host is an error that is ErrNotFound.
type Store interface {
	// Get returns the record of a host, or an error that is ErrNotFound.
	Get(ctx context.Context, name string) (Host, error)

	// Update gives next the record of a host, nil if there is none, and keeps
	// what it returns: old itself to leave it as it is, nil to delete it. It is
	// called twice for every request, so it should be cheap for a host whose
	// Robots are large and do not change. next must be pure, since an engine
	// may call it again, and must not use the store. The Name of what it
	// returns is taken to be name. An error of next ends the Update, which
	// returns it wrapped and changes nothing.
	Update(ctx context.Context, name string, next func(old *Host) (*Host, error)) error

	// Scan yields the records in ascending byte order of their names. It is
	// weak, as crawldb.Store's is. The loop may write and may break.
	Scan(ctx context.Context) iter.Seq2[Host, error]

	// Sync makes durable every Update that returned before it.
	Sync(ctx context.Context) error

	// Close syncs and ends the use of the store. A second Close does nothing.
	Close() error
}
