package salvage

import (
	"testing"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// A step in a log is read as far as it is valid, whatever it is.
func FuzzReadBatch(f *testing.F) {
	f.Add(make([]byte, 12))
	f.Add(append(make([]byte, 8), 1, 0, 0, 0, 1, 1, 'k', 1, 'v'))
	f.Fuzz(func(t *testing.T, b []byte) { readBatch(b, map[string]sstables.Version{}) })
}
