package groups

import "context"

// A Lease is the right of one worker to write to a group. It has no end: it lasts until its
// owner releases it or another worker, which has seen no sign of life of the owner for the time
// of a lease, expels the owner.
type Lease struct {
	Group int
	Owner string
	// Epoch is greater for each lease of a group than for all before it.
	Epoch int64
}

// State is what all workers see of each other.
type State struct {
	// Groups are the groups by ascending number.
	Groups []GroupState
	// Workers are the workers by ascending name.
	Workers []WorkerState
}

// GroupState says which worker has a group; Owner is empty if none has.
type GroupState struct {
	Group int
	Owner string
	Epoch int64
}

// WorkerState is the sign of life of a worker: a counter that grows with each Renew.
type WorkerState struct {
	Owner   string
	Counter int64
}

// A Coordinator keeps the leases of the groups of one crawl.
//
// It has no clock and no notion of how long a lease lasts. A worker calls Renew every now and
// then, and counts its own time from before the call: until a lease time later it may send
// requests for the groups that Renew returned. A worker that has seen the counter of another
// one unchanged for a lease time, by its own monotonic clock, may call Expel. So no decision
// compares the clocks of two machines, and no clock that is set makes a difference.
//
// Fencing: from the moment at which a lease ends, by Release or Expel, nothing is written with
// it: see [Engine].Open.
//
// Concurrency: every method may be called from many goroutines and processes at once, and each
// takes effect at one moment between call and return. After an error other than ErrTaken,
// ErrFenced and ErrNoGroup it may have taken effect or not; State and Renew say which.
//
// Durability: what a method has done survives any end of the process or machine, except that of
// an engine whose processes all end with its stores, as those of [Local].
//
// Cancellation: a method whose context is done before it starts returns an error that is ctx.Err()
// and changes nothing.
type Coordinator interface {
	// State returns the groups of the table and the workers.
	State(ctx context.Context) (State, error)

	// Renew adds one to the counter of a worker, and returns the leases that it holds, by
	// ascending group. A worker that is not known begins with the counter 1. Renew must not wait
	// for an Update of a group that is under way.
	Renew(ctx context.Context, owner string) ([]Lease, error)

	// Acquire gives a worker a group that has no owner. The new epoch is greater than all before.
	// If the group has an owner, or the worker is not known, it changes nothing and returns an
	// error that is ErrTaken.
	Acquire(ctx context.Context, owner string, group int) (Lease, error)

	// Release ends a lease. If it has ended before, it changes nothing and returns an error that
	// is [crawldb.ErrFenced].
	Release(ctx context.Context, l Lease) error

	// Expel ends the leases of a worker and forgets the worker, if its counter still is the one
	// in w; otherwise it changes nothing and returns an error that is ErrTaken. A worker that
	// leaves expels itself.
	Expel(ctx context.Context, w WorkerState) error
}
