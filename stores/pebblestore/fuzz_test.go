package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
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

// A seal is checked, or says that it is damaged.
func FuzzSeal(f *testing.F) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("db", 0o755); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"db/000001.log", "db/MANIFEST-000001"} {
		file, err := mem.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := file.Write([]byte(name)); err != nil {
			f.Fatal(err)
		}
		if err := file.Close(); err != nil {
			f.Fatal(err)
		}
	}
	text, err := sealText(mem, "db")
	if err != nil || checkSeal(text, mem, "db") != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(sealMagic))
	f.Add([]byte(sealMagic + "x\n00000000\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// As it is, and with a check that is right.
		summed := append([]byte(sealMagic), text...)
		for _, b := range [][]byte{text, fmt.Appendf(summed, "%08x\n", crc32.Checksum(summed, castagnoli))} {
			var damage *crawldb.CorruptError
			if err := checkSeal(b, mem, "db"); err != nil && !errors.As(err, &damage) && !errors.Is(err, ErrDamaged) {
				t.Logf("%v", err) // what the file system says of a name
			}
		}
	})
}

// Whatever is in a log, reading it ends, and finds what a reader of whole records
// finds.
func FuzzRecords(f *testing.F) {
	one := func(kind byte, number uint32, body string) []byte {
		b := []byte{0, 0, 0, 0, byte(len(body)), byte(len(body) >> 8), kind, byte(number), byte(number >> 8), byte(number >> 16), byte(number >> 24)}
		if kind > 2*recordsPerSet {
			b = append(b, 1, 0, 0, 0, 0, 0, 0, 0)
		}
		b = append(b, body...)
		sum := crc32.Checksum(b[6:], castagnoli)
		sum = (sum>>15 | sum<<17) + 0xa282ead8
		b[0], b[1], b[2], b[3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		return b
	}
	f.Add(append(one(5, 7, "body"), one(9, 7, "more")...))
	f.Add(append(one(6, 7, "body"), one(8, 7, "more")...))
	f.Add(append(append(one(9, 7, "body"), 1, 2, 3), one(9, 7, "more")...))
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRecords(bytes.NewReader(b), int64(len(b)), 7)
		if err != nil || r.end > int64(len(b)) && r.end%recordBlock != 0 || r.tail > int64(len(b)) {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := eachRecord(bytes.NewReader(b), int64(len(b)), 7, func(rec []byte) { readBatch(rec, map[string]version{}); logOf(rec) }, func(int64) {}); err != nil {
			t.Fatal(err)
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
