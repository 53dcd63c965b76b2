package pgstore

import (
	"log/slog"
	"time"
)

// Options are the settings of a store that are not part of the connection string.
type Options struct {
	// ReadOnly opens an existing crawl and changes nothing in it. The crawl may be open
	// elsewhere for writing. Changes return an error that is ErrReadOnly.
	ReadOnly bool
	// MustExist makes it an error that is ErrNoCrawl if there is no such crawl, which is not
	// made then.
	MustExist bool
	// Patience is how long a call repeats what failed because the server was not there, as
	// during a restart or a failover; zero means a minute. A negative value repeats nothing
	// but transactions that the server asks to repeat.
	Patience time.Duration
	// Logger receives lost connections and repeated transactions. Nil discards them.
	Logger *slog.Logger

	leaseTime time.Duration // for tests
}
