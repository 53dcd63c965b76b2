// Package hostdb keeps what a crawler knows of each host: when it may be asked
// again, what its robots.txt said, how it has behaved. Because it is kept,
// politeness survives a restart; because it is shared, all rounds and all
// crawlers that are given the same [Store] are one polite client.
//
// The package owns the record ([Host]) and the contract of its storage; the
// rules of politeness are applied by package fetch, those of robots.txt by
// package robots.
//
// Stock engines are stores/memstore and stores/pebblestore; a new one must pass
// hostdbtest.Run.
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

// A Store keeps one record a host.
//
// Concurrency: every method may be called from many goroutines at once. Updates
// of one host are applied one after the other, each seeing the result of the
// one before: a turn to ask a host is taken by exactly one of two that want it.
//
// Atomicity: an Update is applied whole or not at all.
//
// Durability: what Update returned from before Sync was called survives any end
// of the process or machine once Sync has returned; without Sync it is written
// at most a second later. So that a crash can only make a crawler slower, a
// store that was not closed treats, when it is opened, each host asked within
// the last minute before the crash as if it had been asked at the moment of
// opening ([Host.AskedAgain]). Close syncs.
//
// Ownership: the caller owns what it is given; the store keeps nothing that it
// is given. What is passed to next is only lent: next may read it but not change
// it, and who wants a Body of Robots longer than next runs must copy it.
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
	// called twice for every request, so that it should cost little for a host
	// whose Robots are large and stay as they are. next must be pure, since an
	// engine may call it again, and must not use the store. The Name of what it
	// returns is taken to be name. An error of next ends the Update, which
	// returns it wrapped and changes nothing.
	Update(ctx context.Context, name string, next func(old *Host) (*Host, error)) error

	// Scan yields the records in ascending order of their names, as strings of
	// bytes. It is weak, as crawldb.Store's. The loop may write and may break.
	Scan(ctx context.Context) iter.Seq2[Host, error]

	// Sync makes durable what Update returned from before.
	Sync(ctx context.Context) error

	// Close syncs and ends the use of the store. A second Close does nothing.
	Close() error
}
