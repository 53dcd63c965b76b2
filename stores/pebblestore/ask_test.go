package pebblestore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

// The process that has the store open makes backups for others: several at once, one of them
// to an impossible place.
func TestAskBackup(t *testing.T) {
	dir := sound(t, 100, true)
	above := t.TempDir()
	if _, err := pebblestore.AskBackup(t.Context(), dir, filepath.Join(above, "none"), pebblestore.BackupOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nobody has the store: %v", err)
	}
	db := openToChange(t, dir)
	want, err := readAll(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	answering, stop := context.WithCancel(t.Context())
	var both sync.WaitGroup
	defer both.Wait()
	defer stop()
	both.Go(func() { db.AnswerBackups(answering) })
	var asking sync.WaitGroup
	for _, to := range []string{"a", "b"} {
		asking.Go(func() {
			to := filepath.Join(above, to)
			r, err := pebblestore.AskBackup(t.Context(), dir, to, pebblestore.BackupOptions{Copy: true})
			if err != nil || r.Files != int64(len(files(t, to))) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	asking.Wait()
	if _, err := pebblestore.AskBackup(t.Context(), dir, filepath.Join(above, "not", "there"), pebblestore.BackupOptions{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("to a directory that is not there: %v", err)
	}
	stop()
	both.Wait()
	// Nobody answers from now on.
	ctx, cancel := context.WithCancel(t.Context())
	asking.Go(func() {
		if _, err := pebblestore.AskBackup(ctx, dir, filepath.Join(above, "c"), pebblestore.BackupOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	})
	for {
		if _, err := os.Stat(filepath.Join(dir, "ASK")); err == nil {
			break
		}
	}
	cancel()
	asking.Wait()
	left, err := filepath.Glob(filepath.Join(dir, "A*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
	// The request of a killed process is removed by the next opening.
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ASK"), []byte(`{"id":"x","dir":"/nowhere"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	sameAs(t, dir, want)
	openToChange(t, dir).Close()
	if _, err := os.Stat(filepath.Join(dir, "ASK")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was asked is there: %v", err)
	}
	sameAs(t, filepath.Join(above, "a"), want)
	sameAs(t, filepath.Join(above, "b"), want)
}
