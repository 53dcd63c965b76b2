package pebblestore

import (
	"bytes"
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

// The state of the due index is read as it was written, or rejected.
func FuzzDueState(f *testing.F) {
	f.Add((&dueState{mark: []byte("mark"), built: []byte("built")}).append(nil))
	f.Add((&dueState{whole: true}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok, err := parseState(b)
		if err != nil || !ok {
			return
		}
		again, ok, err := parseState(s.append(nil))
		if err != nil || !ok || !bytes.Equal(again.mark, s.mark) || !bytes.Equal(again.built, s.built) || again.whole != s.whole {
			t.Fatalf("%x: %+v and then %+v, %v", b, s, again, err)
		}
	})
}
