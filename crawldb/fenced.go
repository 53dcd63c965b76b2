package crawldb

import "errors"

// ErrFenced says that a store was opened for a lease that has passed to another process: the
// write changed nothing, and neither will any other write of this store.
var ErrFenced = errors.New("crawldb: the lease has passed to another process")
