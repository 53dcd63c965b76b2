package crawldb

import (
	"fmt"
	"strings"
)

// CorruptError says that what was read is not what was written. Every store in
// this module reports damage with this type, to be found with errors.As.
type CorruptError struct {
	// File names the file or other place, or segment and part.
	File string
	// Offset is where in the file the damage begins; for a place without offsets,
	// the number of the block. It is negative if not known, as for a record that
	// can be read but makes no sense.
	Offset int64
	// URL is the URL of the damaged record; empty if it is not a single record.
	URL string
	// ResumeKey is a key after the damage, from which a scan may resume; empty if none
	// is known.
	ResumeKey string
	Err       error
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
