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
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// manyRecords is a store whose records take several tables.
func manyRecords(t *testing.T) (dir string, db *DB, b crawldb.Batch) {
	t.Helper()
	dir = t.TempDir()
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	b.Next = func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch, ETag: fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(i))))}, nil
	}
	for i := range 100_000 {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h.example/%06d", i))
	}
	if err := errors.Join(db.Crawl().Update(t.Context(), b), db.Compact(t.Context())); err != nil {
		t.Fatal(err)
	}
	return dir, db, b
}

// Damage in the last block of a table hides no record of the tables after it from those that go
// around it.
func TestDamagedLastBlockHidesNoLaterTable(t *testing.T) {
	dir, db, b := manyRecords(t)
	levels, err := db.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	var name, largest string
	for _, file := range levels[len(levels)-1] {
		if name == "" && file.Smallest.UserKey[0] == byte(codec.CrawlTable) {
			name, largest = filepath.Join(db.path, sstables.FileName(uint64(file.FileNum))), string(file.Largest.UserKey)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if largest == "" || largest[0] != byte(codec.CrawlTable) || crawldb.URLOf(largest[1:]) == b.URLs[len(b.URLs)-1] {
		t.Fatalf("the first table ends with %q", largest)
	}
	file, err := sstables.Open(vfs.Default, name)
	if err != nil {
		t.Fatal(err)
	}
	last := file.Data[len(file.Data)-1].At
	file.Close()
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
	if n := int64(len(b.URLs)); n-r.Records < 1 || n-r.Records > n/10 {
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
	if damage == nil || damage.File != name || damage.Offset != last || damage.ResumeKey != largest[1:]+"\x00" {
		t.Errorf("a scan ends with %+v", damage)
	}
}

// What cannot be read in a file that has rows of two tables makes nobody who reads one of them
// go on behind those of the other, which is where the first one begins.
func TestDamageInOneTableDoesNotFailAnotherInTheFile(t *testing.T) {
	dir, db, b := manyRecords(t)
	files, err := sstables.Files(db.db)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, file := range files {
		if file.Smallest.UserKey[0] == byte(codec.CrawlTable) && file.Largest.UserKey[0] > byte(codec.CrawlTable) {
			name = filepath.Join(db.path, sstables.FileName(uint64(file.FileNum)))
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if name == "" {
		t.Fatal("no file has rows of two tables")
	}
	file, err := sstables.Open(vfs.Default, name)
	if err != nil {
		t.Fatal(err)
	}
	places := []int64{file.Size - 30} // in what it ends with
	for _, block := range file.Data {
		if len(block.After) > 0 && block.After[0] == byte(codec.CrawlTable) && block.Last[0] > byte(codec.CrawlTable) {
			places = append(places, block.At+20)
		}
	}
	file.Close()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(places) < 2 {
		t.Fatal("no block has rows of two tables")
	}
	for _, at := range places {
		text[at] ^= 1
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) {
			if f.File == "" && f.URL != "" && f.Segment == "" {
				t.Errorf("with damage at %d: %v", at, f)
			}
		}})
		if n := int64(len(b.URLs)); err != nil || r.Findings == 0 || r.Records >= n {
			t.Errorf("with damage at %d verify has %d findings and has seen %d records of %d, %v", at, r.Findings, r.Records, n, err)
		}
		text[at] ^= 1
	}
}
