package logcheck

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
)

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
	if err != nil || CheckSeal(text, mem, "db") != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(sealMagic))
	f.Add([]byte(sealMagic + "x\n00000000\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// As it is, and with a check that is right.
		summed := append([]byte(sealMagic), text...)
		for _, b := range [][]byte{text, fmt.Appendf(summed, "%08x\n", crc32.Checksum(summed, crc32.MakeTable(crc32.Castagnoli)))} {
			var corrupt *crawldb.CorruptError
			if err := CheckSeal(b, mem, "db"); err != nil && !errors.As(err, &corrupt) && !errors.Is(err, damage.Err) {
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
		sum := crc32.Checksum(b[6:], crc32.MakeTable(crc32.Castagnoli))
		sum = (sum>>15 | sum<<17) + 0xa282ead8
		b[0], b[1], b[2], b[3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		return b
	}
	f.Add(append(one(5, 7, "body"), one(9, 7, "more")...))
	f.Add(append(one(6, 7, "body"), one(8, 7, "more")...))
	f.Add(append(append(one(9, 7, "body"), 1, 2, 3), one(9, 7, "more")...))
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(bytes.NewReader(b), int64(len(b)), 7)
		if err != nil || r.End > int64(len(b)) && r.End%recordBlock != 0 || r.Tail > int64(len(b)) {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := EachRecord(bytes.NewReader(b), int64(len(b)), 7, func(rec []byte) { logOf(rec) }, func(int64) {}); err != nil {
			t.Fatal(err)
		}
	})
}
