// Package storedir accesses the directory of a pebblestore apart from the engine: its lock, the
// small files beside the database, and a file system in which nothing can be changed. It does
// not know what the files mean. Machine is the file system that a store uses.
package storedir

import "errors"

// Errors that a store returns as its own.
var (
	ErrLocked   = errors.New("pebblestore: directory is in use")
	ErrReadOnly = errors.New("pebblestore: store is open for reading only")
)
