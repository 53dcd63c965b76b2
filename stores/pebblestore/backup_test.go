package pebblestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// sameAs checks that a store is sound, from end to end, and holds what another held.
func sameAs(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	_, err := pebblestore.Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) { t.Errorf("%s is not sound: %v", dir, f) }})
	if err != nil {
		t.Fatal(err)
	}
	db := openSound(t, dir)
	defer db.Close()
	got, err := readAll(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s is\n%.300s\nand was\n%.300s", dir, name, got[name], want[name])
		}
	}
}

func openToChange(t *testing.T, dir string) *pebblestore.DB {
	t.Helper()
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestBackup(t *testing.T) {
	for _, killed := range []bool{false, true} { // after a kill there are parts that are not committed
		for _, o := range []pebblestore.BackupOptions{{}, {Copy: true}} {
			dir := sound(t, 400, killed)
			db := openToChange(t, dir)
			want, err := readAll(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "backup")
			r, err := db.Backup(t.Context(), to, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Backup(t.Context(), to, o); err == nil {
				t.Error("a backup was made over another")
			}
			if _, err := db.Backup(t.Context(), filepath.Join(dir, "segments", "backup"), o); err == nil {
				t.Error("a backup was made in the store")
			}
			var size int64
			shared := false
			for _, name := range files(t, to) {
				info, err := os.Stat(filepath.Join(to, name))
				if err != nil {
					t.Fatal(err)
				}
				size += info.Size()
				if other, err := os.Stat(filepath.Join(dir, name)); err == nil && os.SameFile(info, other) {
					if shared = true; strings.HasSuffix(name, ".open") || strings.HasSuffix(name, ".log") || strings.Contains(name, "MANIFEST") {
						t.Errorf("%s is shared, and changes", name)
					}
				}
			}
			if shared == o.Copy {
				t.Errorf("%+v: files are shared: %v", o, shared)
			}
			if n := int64(len(files(t, to))); r.Files != n || r.Bytes != size {
				t.Errorf("%+v, and there are %d files of %d bytes", r, n, size)
			}
			sameAs(t, to, want)
			// Changes to one do not affect the other.
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			sameAs(t, to, want)
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(to), "*")); err != nil || len(left) != 1 {
				t.Errorf("beside the backup there is %v, %v", left, err)
			}
		}
	}
}

// What a killed process has left is not part of the store, and the next opening removes it; a
// copy is started over.
func TestBackupIsBegunAnew(t *testing.T) {
	dir := sound(t, 100, false)
	left := filepath.Join(dir, "BACKUP.new", "segments", "20260101000000000")
	if err := os.MkdirAll(left, 0o777); err != nil {
		t.Fatal(err)
	}
	sameAs(t, dir, nil)
	openToChange(t, dir).Close()
	if _, err := os.Stat(filepath.Join(dir, "BACKUP.new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left is there: %v", err)
	}
	db := openToChange(t, dir)
	want, err := readAll(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "backup")
	work := to + ".backup"
	for _, name := range []string{filepath.Join(work, "store", "db"), to} {
		if err := os.MkdirAll(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Backup(t.Context(), to, pebblestore.BackupOptions{Copy: true}); err == nil {
		t.Error("somebody's directory was cleared away")
	}
	if err := os.WriteFile(filepath.Join(work, "BACKUP"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Backup(t.Context(), to, pebblestore.BackupOptions{Copy: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(work); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was worked in is there: %v", err)
	}
	sameAs(t, to, want)
}

// A store that cannot be changed is copied as it is, also one that was killed.
func TestBackupOfAStoreOpenForReading(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := sound(t, 400, killed)
		before := bytesOf(t, dir)
		db, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		want, err := readAll(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "backup")
		r, err := db.Backup(t.Context(), to, pebblestore.BackupOptions{})
		if err != nil || r.Files < 10 || r.Bytes < 1000 {
			t.Errorf("killed %v: %+v, %v", killed, r, err)
		}
		if bytesOf(t, dir) != before {
			t.Errorf("killed %v: the store has changed", killed)
		}
		sameAs(t, to, want)
		if _, err := db.Backup(t.Context(), to, pebblestore.BackupOptions{}); err == nil {
			t.Error("a backup was made over another")
		}
	}
}

// What a killed backup has left beside its place goes with the next, however that is made.
func TestBackupRemovesWhatIsLeft(t *testing.T) {
	db := openToChange(t, sound(t, 90, false))
	to := filepath.Join(t.TempDir(), "backup")
	work := to + ".backup"
	leave := func() {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Join(work, "store", "db"), 0o777), os.WriteFile(filepath.Join(work, "BACKUP"), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	gone := func() {
		t.Helper()
		if _, err := os.Stat(work); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", work, err)
		}
	}
	leave()
	if _, err := db.Backup(t.Context(), to, pebblestore.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	gone()
	// This one was killed when it was done.
	leave()
	if _, err := db.Backup(t.Context(), to, pebblestore.BackupOptions{}); err == nil {
		t.Error("a backup was made over another")
	}
	gone()
}
