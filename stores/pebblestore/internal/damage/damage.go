// Package damage makes the errors for what is not as it was written: each is [Err] and a
// [*crawldb.CorruptError] that names the place. It finds nothing itself.
package damage

import (
	"errors"
	"fmt"

	"github.com/recrawl/recrawl/crawldb"
)

// Err says that what was read is not what was written. It is an error of the store as a whole:
// pebblestore.ErrDamaged.
var Err = errors.New("pebblestore: damaged")

// At returns the error for damage at an offset of a file; -1 if the offset is unknown.
func At(file string, offset int64, err error) error {
	return fmt.Errorf("%w: %w", Err, &crawldb.CorruptError{File: file, Offset: offset, Err: err})
}
