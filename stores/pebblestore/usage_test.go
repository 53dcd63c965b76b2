package pebblestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

func TestUsageIsTheSizeOfTheFiles(t *testing.T) {
	dir := t.TempDir()
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	segment := filepath.Join(dir, "segments", "20260101000000-000")
	if err := os.Mkdir(segment, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(segment, "content"), make([]byte, 12345), 0o666); err != nil {
		t.Fatal(err)
	}
	parts, free, err := db.Usage(t.Context())
	if err != nil || parts["segments"] != 12345 || parts["db"] < 1000 || len(parts) != 2 || free <= 0 {
		t.Errorf("%v, %d bytes free, %v", parts, free, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Usage(t.Context()); err == nil {
		t.Error("a closed store has a size")
	}
}
