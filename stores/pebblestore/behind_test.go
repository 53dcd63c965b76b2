package pebblestore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/verify"
)

// Damage in the last block of a table hides no record of the tables behind it from those who go
// around it.
func TestBehindTheLastBlockOfATable(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	const n = 100_000
	b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch, ETag: fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(i))))}, nil
	}}
	for i := range n {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h.example/%06d", i))
	}
	if err := db.Crawl().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	levels, err := db.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	var name, largest string
	for _, file := range levels[len(levels)-1] {
		if name == "" && file.Smallest.UserKey[0] == byte(crawlTable) {
			name, largest = filepath.Join(db.path, sstName(uint64(file.FileNum))), string(file.Largest.UserKey)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if largest == "" || largest[0] != byte(crawlTable) || crawldb.URLOf(largest[1:]) == b.URLs[n-1] {
		t.Fatalf("the first table ends with %q", largest)
	}
	file, err := openTable(vfs.Default, name)
	if err != nil {
		t.Fatal(err)
	}
	last := file.data[len(file.data)-1].at
	file.close()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text[last+20] ^= 1
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}

	r, err := Verify(t.Context(), dir, verify.Options{})
	if err != nil || r.Findings == 0 {
		t.Errorf("%d findings, %v", r.Findings, err)
	}
	if lost := n - r.Records; lost < 1 || lost > n/10 {
		t.Errorf("Verify has seen %d records of %d", r.Records, n)
	}
	if db, err = Open(dir, small()); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var damage *crawldb.CorruptError
	for _, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		errors.As(err, &damage)
	}
	if damage == nil || damage.File != name || damage.Offset != last || damage.Behind != largest[1:]+"\x00" {
		t.Errorf("a scan ends with %+v", damage)
	}
}
