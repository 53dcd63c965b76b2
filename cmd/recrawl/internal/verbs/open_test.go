package verbs

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A verb waits a minute for a process that has the directory open and leaves no status of a run;
// then status says that there is nothing to report.
func TestLockedDirectoryIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "crawl")
		open := func() *pebblestore.DB {
			db, err := pebblestore.Open(dir, pebblestore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return db
		}
		var errs strings.Builder
		status := func() error {
			return (&app{out: io.Discard, err: &errs}).status().Run(t.Context(), []string{"status", "-d", dir})
		}
		db, began := open(), time.Now()
		if err := status(); !errors.Is(err, pebblestore.ErrLocked) || !strings.Contains(err.Error(), "and this is neither") {
			t.Errorf("%v", err)
		}
		if waited := time.Since(began); waited < lockPatience || waited > lockPatience+time.Second || strings.Count(errs.String(), "waiting for it to end") != 1 {
			t.Errorf("waited %v, and said %q", waited, &errs)
		}
		began = time.Now()
		go func() { time.Sleep(10 * time.Second); db.Close() }()
		if err := status(); err != nil || time.Since(began) < 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
