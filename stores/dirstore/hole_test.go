package dirstore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/recrawl/recrawl/stores/dirstore"
)

// A hole after damage is passed in time proportional to the file.
func TestWholeOfAFileWithAHole(t *testing.T) {
	const hole = 64 << 20
	dir := t.TempDir()
	s, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := s.Append(t.Context(), "a-000", "content", 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Append(t.Context(), []byte("block")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "a-000", "content.open")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-5-1]++ // in the header of the last block
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, hole); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // which it took before, and is a fraction of a second now
	defer cancel()
	blocks, errs := 0, 0
	for _, err := range s.Whole(ctx, "a-000", "content") {
		if err == nil {
			blocks++
		} else {
			errs++
		}
	}
	if ctx.Err() != nil || blocks != 2 || errs != 1 {
		t.Errorf("%d blocks, %d errors, %v", blocks, errs, ctx.Err())
	}
}
