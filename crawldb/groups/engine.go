package groups

import (
	"context"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// Stores are the stores of one group.
type Stores struct {
	Crawl    crawldb.Store
	Links    linkdb.Store
	Segments segment.Store
	// Hosts is one host db for all groups: it makes all workers one polite client.
	Hosts hostdb.Store
}

// MarkName names a mark of a group.
type MarkName struct {
	Group int // a number of the table, or Outside
	Name  string
}

// An Engine keeps a divided crawl: the table, the leases, and for each group the stores.
//
// Each group has records, marks, links and segments of its own. The epoch is checked in the
// atomic step of every write: once a lease has ended, the stores that were opened with it
// change nothing, and their methods that write return an error that is [crawldb.ErrFenced]. A write that
// is under way while the lease ends is done before that, or fenced.
type Engine interface {
	Coordinator

	// Table returns the current division of the crawl.
	Table(ctx context.Context) (Table, error)

	// SetTable replaces the table whose version is one less. If that is not the current one, it
	// changes nothing and returns an error that is ErrTaken. New groups begin without an owner
	// and without contents. Callers are Split, Merge and the workers that complete a Move.
	SetTable(ctx context.Context, t Table) error

	// Open returns the stores of a group, to be used while the lease lasts. Others read them,
	// too: see Marks. They belong to the engine; closing them does nothing.
	Open(ctx context.Context, l Lease) (Stores, error)

	// Marks returns the values of marks of any groups, in the order of the names, empty where
	// there is none. It takes no lease. What it returns is durable: no crash takes it back.
	Marks(ctx context.Context, names []MarkName) ([]string, error)

	// Post adds a row to those of [Outside] for a group: it has the number of the next row, and
	// is durable when Post returns. It takes no lease, and rows of many callers are added one
	// after the other. Rows up to the inbox mark of the group may be removed.
	Post(ctx context.Context, group int, row string) error

	// Close ends the use of the engine, and closes its stores. A second Close does nothing.
	Close() error
}
