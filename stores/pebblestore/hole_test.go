package pebblestore_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A table that has lost its end to a hole is read in time proportional to the file.
func TestSalvageOfATableWithAHole(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	n, hole := 4000, testlevel.Pick[int64](8<<20, 64<<20)
	dir := sound(t, n, false)
	src := openSound(t, dir)
	want := leaseless(t, src)
	src.Close()
	holes := 0
	for _, name := range files(t, dir) {
		if filepath.Ext(name) != ".sst" {
			continue
		}
		full := filepath.Join(dir, name)
		info, err := os.Stat(full)
		if err == nil {
			err = os.Truncate(full, info.Size()+hole)
		}
		if err != nil {
			t.Fatal(err)
		}
		holes++
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // which one of them took before by far
	defer cancel()
	to := filepath.Join(t.TempDir(), "new")
	if _, err := pebblestore.Salvage(ctx, dir, to, pebblestore.SalvageOptions{}); err != nil || holes == 0 {
		t.Fatalf("%d holes: %v", holes, err)
	}
	db := openSound(t, to)
	defer db.Close()
	if got := leaseless(t, db); !maps.Equal(got, want) {
		t.Error("something is lost")
	}
}

// denied is a disk that does not let one kind of files be opened.
type denied struct {
	vfs.FS
	prefix string
}

func (d denied) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if strings.HasPrefix(filepath.Base(name), d.prefix) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	return d.FS.Open(name, o...)
}

// What may not be opened is no damage: a salvage that went on without the manifest would
// bring back what was removed.
func TestSalvageOfWhatMayNotBeOpened(t *testing.T) {
	for _, prefix := range []string{"MANIFEST-", "OPTIONS-"} {
		for _, killed := range []bool{false, true} {
			dir := sound(t, 100, killed)
			to := filepath.Join(t.TempDir(), "new")
			_, err := pebblestore.SalvageFrom(t.Context(), denied{vfs.Default, prefix}, dir, to, pebblestore.SalvageOptions{})
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s, killed %v: %v", prefix, killed, err)
			}
			if _, err := os.Stat(to); err == nil {
				t.Errorf("%s, killed %v: there is a new store", prefix, killed)
			}
		}
	}
}

// The name of a directory is no pattern.
func TestVerifyInADirectoryWithABracket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "crawl [1")
	if err := os.Rename(sound(t, 100, false), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := pebblestore.Verify(t.Context(), dir, verify.Options{}); err != nil {
		t.Error(err)
	}
}
