//go:build unix && !solaris && !aix

package pebblestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// Something that is not a regular file, in the place of one, makes nothing hang: a store is not
// opened with less than it had, Verify reports it, and Salvage keeps the rest.
func TestIrregularFilesAreReportedAndSalvaged(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	dir := sound(t, 240, true)
	var names []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && e.Type().IsRegular() && !strings.HasPrefix(rel, "segments") {
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for k, kind := range []struct {
		name string
		put  func(path string) error
	}{
		{"pipe", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"link", func(path string) error { return os.Symlink(filepath.Join(dir, "gone", "file"), path) }},
		{"circle", func(path string) error { return os.Symlink(path, path) }},
		{"directory", func(path string) error { return os.Mkdir(path, 0o700) }},
	} {
		for i, name := range names {
			if !testlevel.Exhaustive && (k+i)%4 != 0 { // one kind for each file
				continue
			}
			t.Run(kind.name+"/"+name, func(t *testing.T) {
				copied := filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(copied, name)
				if err := errors.Join(os.Remove(path), kind.put(path)); err != nil {
					t.Fatal(err)
				}
				r, err := pebblestore.Verify(t.Context(), copied, verify.Options{Now: soundTime})
				reported := err != nil || r.Findings > 0 || !slices.Contains(names, name)
				if replaced := strings.Contains(name, "MANIFEST") && r.Findings == 0; !reported && !unread(name) && !replaced {
					t.Errorf("verify: %+v, %v", r, err)
				}
				db, err := pebblestore.Open(copied, pebblestore.Options{})
				if err == nil {
					err = db.Close()
				}
				if reported && err == nil {
					t.Error("the store was opened")
				}
				if _, err := pebblestore.Salvage(t.Context(), copied, filepath.Join(t.TempDir(), "new"), pebblestore.SalvageOptions{}); err != nil {
					t.Errorf("salvage: %v", err)
				}
			})
		}
	}
}
