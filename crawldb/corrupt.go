package crawldb

import (
	"fmt"
	"strings"
)

// CorruptError says that what was read is not what was written. It is the one
// type in which every store of the module tells of damage, to be found with
// errors.As.
type CorruptError struct {
	// File names the file or other place, or segment and part.
	File string
	// Offset is where in the file the damage begins; with a place that has no
	// offsets, the number of the block. It is negative if that is not known, as of
	// a record that reads well and makes no sense.
	Offset int64
	// URL is whose record is damaged; empty if it is not one record.
	URL string
	// Behind is a key behind the damage, from which a scan may go on; empty if none
	// is known.
	Behind string
	Err    error
}

// Error names the place.
func (e *CorruptError) Error() string {
	var b strings.Builder
	if e.URL != "" {
		fmt.Fprintf(&b, "the record of %q in ", e.URL)
	}
	b.WriteString(e.File)
	b.WriteString(" is damaged")
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at %d", e.Offset)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }
