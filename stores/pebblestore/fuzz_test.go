package pebblestore

import (
	"errors"
	"strconv"
	"testing"
)

// A FORMAT is this version's or an older one's, byte by byte, or an error that says
// what it is.
func FuzzFormat(f *testing.F) {
	f.Add(formatMagic + "4\n")
	f.Add(formatMagic + "04\n")
	f.Add(formatMagic + "99999999999999999999\n")
	f.Add("tar\n")
	f.Fuzz(func(t *testing.T, text string) {
		err := checkFormat(text)
		known := false
		for v := oldestVersion; v <= formatVersion; v++ {
			known = known || text == formatMagic+strconv.Itoa(v)+"\n"
		}
		if (err == nil) != known || err != nil && !errors.Is(err, ErrNotStore) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrDamaged) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
