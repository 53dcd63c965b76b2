package pebblestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A file that has become a terabyte, and is not a table, is reported and not read.
func TestTooLongFileIsReportedUnread(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for _, killed := range []bool{false, true} {
		for _, pattern := range []string{"FORMAT", "SEAL", "db/OPTIONS-*", "db/MANIFEST-*", "db/*.log"} {
			if killed && pattern == "SEAL" { // it is not there
				continue
			}
			dir := sound(t, 240, killed)
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(names) == 0 {
				t.Fatal(pattern, err)
			}
			name := names[len(names)-1]
			if err := os.Truncate(name, 1<<40); err != nil {
				t.Fatal(err)
			}
			named := false
			_, err = pebblestore.Verify(t.Context(), dir, verify.Options{Now: soundTime, Found: func(f verify.Finding) {
				named = named || strings.Contains(f.Error(), filepath.Base(name))
			}})
			if !named || err != nil {
				t.Errorf("killed %v, %s: Verify does not name the file: %v", killed, pattern, err)
			}
			db, err := pebblestore.Open(dir, pebblestore.Options{})
			switch {
			case pattern == "SEAL": // which proves nothing then
				if err != nil {
					t.Errorf("%s: %v", pattern, err)
				}
			case err == nil:
				t.Errorf("killed %v, %s: the store was opened", killed, pattern)
			default:
				var damage *crawldb.CorruptError
				if !errors.As(err, &damage) || filepath.Base(damage.File) != filepath.Base(name) {
					t.Errorf("killed %v, %s: %v", killed, pattern, err)
				}
			}
			if db != nil {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
			if testlevel.Exhaustive && killed && pattern == "db/*.log" {
				// Salvage reads as much of the log as one may have, which takes seconds.
				report, err := pebblestore.Salvage(t.Context(), dir, filepath.Join(t.TempDir(), "new"), pebblestore.SalvageOptions{})
				if err != nil || report.Losses == 0 || report.Records < 200 {
					t.Errorf("salvage: %+v, %v", report, err)
				}
			}
		}
	}
}
